"""Measures how fast importers are, and how much memory they use, on transcripts of any size.

    python benchmarks/import_speed.py                       # 100 MB of each source
    python benchmarks/import_speed.py --size 1000 claude-code
    python benchmarks/import_speed.py --path DIRECTORY codex  # on existing files

Each source runs in a separate process: preview, import, index, one search, and a second import, which must add
nothing. The CPU seconds of an import are those of its thread, without the index that follows it. Where the files have
JSON lines, they are compared with a bare import in the same process: each line is decoded and inserted as text, with a
commit for each file.
"""

import argparse
import json
import resource
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from memoranda.home.session_db import SessionDB
from memoranda.importers.importer import Importer
from memoranda.importers.reader_protocol import ImportItem
from memoranda.importers.sources import SOURCES
from memoranda.safety.redaction import Redactor
from memoranda.search.settings import RecallSettings
from memoranda.search.tool import SessionSearchTool

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.transcripts import MAKERS

_MB = 1_000_000


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def peak_memory() -> float:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def bare_seconds(items: Sequence[ImportItem], path: Path) -> float:
    """Return the CPU seconds of a bare import of the items with JSON lines."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE lines (id INTEGER PRIMARY KEY, kind TEXT, text TEXT)")
        started = time.thread_time()
        for item in items:
            if item.file.suffix == ".jsonl":
                texts = item.file.read_text("utf-8").splitlines()
                rows = [(json.loads(text).get("type"), text) for text in texts]
                connection.executemany("INSERT INTO lines (kind, text) VALUES (?, ?)", rows)
                connection.commit()
        return time.thread_time() - started


def measure(name: str, path_to_read: Path, home: Path) -> dict[str, Any]:
    """Measure one source, from preview to search, in this process."""
    reader = SOURCES[name].load()
    items = reader.scan(path_to_read)
    size = sum(item.size for item in items)
    start = peak_memory()
    db = SessionDB(home / "state.db", redactor=Redactor())
    importer = Importer(home, db)
    planning, planned = timed(lambda: importer.plan(reader, items))
    after_plan = peak_memory()
    cpu = time.thread_time()
    importing, imported = timed(lambda: importer.apply(reader, items))
    cpu = time.thread_time() - cpu
    after_import = peak_memory()
    if planned.messages != imported.messages:
        raise SystemExit(f"{planned.messages} messages were planned, and {imported.messages} imported.")
    has_lines = any(item.file.suffix == ".jsonl" for item in items)
    bare = bare_seconds(items, home / "bare.db")
    (home / "bare.db").unlink()
    again, second = timed(lambda: importer.apply(reader, items))
    if second.messages:
        raise SystemExit(f"A second import added {second.messages} messages.")
    importer.close()
    indexing, _ = timed(db.index.catch_up)
    search = SessionSearchTool(lambda: db, RecallSettings())
    searching, found = timed(lambda: search.call({"query": "deadlock in the payment webhook"}))
    if not found["success"] or not found["results"]:
        raise SystemExit(f"The search after the import found nothing: {found}")
    db.close()
    stored = sum(file.stat().st_size for file in home.iterdir() if file.is_file())
    return {
        "source": name, "megabytes": size / _MB, "files": len(items), "sessions": imported.count("new"),
        "messages": imported.messages, "preview_mb_per_s": size / _MB / planning,
        "import_mb_per_s": size / _MB / importing, "import_seconds": importing,
        "import_mb_per_cpu_second": size / _MB / cpu, "times_bare": cpu / bare if has_lines else None,
        "index_seconds": indexing, "search_ms": searching * 1000, "again_seconds": again,
        "memory_before_mb": start, "memory_after_preview_mb": after_plan, "memory_after_import_mb": after_import,
        "memory_peak_mb": peak_memory(), "home_megabytes": stored / _MB, "problems": imported.problem_count,
    }  # fmt: skip


def measure_in_process(name: str, size: int, path: Path | None) -> dict[str, Any]:
    """Measure one source in a separate process, so that its memory is measured alone."""
    with TemporaryDirectory(prefix="memoranda-importing-") as scratch:
        path_to_read = path or Path(scratch) / "source"
        if path is None:
            MAKERS[name](path_to_read, size * _MB)
        home = Path(scratch) / "home"
        home.mkdir()
        command = [sys.executable, __file__, "--worker", str(home), "--path", str(path_to_read), name]
        return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("sources", nargs="*", choices=[[], *SOURCES], default=[])
    parser.add_argument("--size", type=int, default=100, help="megabytes of each source")
    parser.add_argument("--path", type=Path, help="measure on these files")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(measure(options.sources[0], options.path, options.worker)))
        return
    results = [measure_in_process(name, options.size, options.path) for name in options.sources or MAKERS]
    if options.json:
        print(json.dumps(results, indent=2))
        return
    print(
        "source          MB  messages  preview MB/s  import MB/s  per CPU s  x bare  index s  search ms  again s"
        "  peak MB (before)"
    )
    for row in results:
        print(
            f"{row['source']:<12}{row['megabytes']:>6,.0f}{row['messages']:>10,}{row['preview_mb_per_s']:>14.1f}"
            f"{row['import_mb_per_s']:>13.1f}{row['import_mb_per_cpu_second']:>11.1f}{row['times_bare'] or 0:>8.1f}"
            f"{row['index_seconds']:>9.1f}{row['search_ms']:>11.1f}"
            f"{row['again_seconds']:>9.2f}{row['memory_after_import_mb']:>9.0f} ({row['memory_before_mb']:.0f})"
        )


if __name__ == "__main__":
    main()
