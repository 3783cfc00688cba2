"""Importers: how fast they are, and how much memory they take, on transcripts of any size.

    python benchmarks/import_speed.py                       # 100 MB of each source
    python benchmarks/import_speed.py --size 1000 claude-code
    python benchmarks/import_speed.py --path DIRECTORY codex  # on files that are there already

Each source runs in a process of its own: preview, import, index, one search, and a second import, which must add
nothing.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from memoranda.importers.importer import Importer
from memoranda.importers.sources import SOURCES
from memoranda.recall.settings import RecallSettings
from memoranda.recall.tool import SessionSearchTool
from memoranda.safety.redaction import Redactor
from memoranda.session_db import SessionDB

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.export_archives import MAKERS

_MB = 1_000_000


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def peak() -> float:
    """The most memory that this process ever had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def measure(name: str, where: Path, home: Path) -> dict[str, Any]:
    """One source, from preview to search, in this process."""
    reader = SOURCES[name].load()
    items = reader.scan(where)
    size = sum(item.size for item in items)
    start = peak()
    db = SessionDB(home / "state.db", redactor=Redactor())
    engine = Importer(home, db)
    planning, planned = timed(lambda: engine.plan(reader, items))
    after_plan = peak()
    importing, done = timed(lambda: engine.apply(reader, items))
    after_import = peak()
    if planned.messages != done.messages:
        raise SystemExit(f"{planned.messages} messages were planned, and {done.messages} imported.")
    again, nothing = timed(lambda: engine.apply(reader, items))
    if nothing.messages:
        raise SystemExit(f"A second import added {nothing.messages} messages.")
    engine.close()
    indexing, _ = timed(db.index.catch_up)
    search = SessionSearchTool(lambda: db, RecallSettings())
    searching, found = timed(lambda: search.call({"query": "deadlock in the payment webhook"}))
    if not found["success"] or not found["results"]:
        raise SystemExit(f"Nothing is found after the import: {found}")
    db.close()
    stored = sum(file.stat().st_size for file in home.iterdir() if file.is_file())
    return {
        "source": name, "megabytes": size / _MB, "files": len(items), "sessions": done.count("new"),
        "messages": done.messages, "preview_mb_per_s": size / _MB / planning, "import_mb_per_s": size / _MB / importing,
        "import_seconds": importing, "index_seconds": indexing, "search_ms": searching * 1000, "again_seconds": again,
        "memory_before_mb": start, "memory_after_preview_mb": after_plan, "memory_after_import_mb": after_import,
        "memory_peak_mb": peak(), "home_megabytes": stored / _MB, "problems": done.problem_count,
    }  # fmt: skip


def run_apart(name: str, size: int, path: Path | None) -> dict[str, Any]:
    """Measure one source in a process of its own, so that its memory is its own."""
    with TemporaryDirectory(prefix="memoranda-importing-") as scratch:
        where = path or Path(scratch) / "source"
        if path is None:
            MAKERS[name](where, size * _MB)
        home = Path(scratch) / "home"
        home.mkdir()
        command = [sys.executable, __file__, "--worker", str(home), "--path", str(where), name]
        return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("sources", nargs="*", choices=[[], *SOURCES], default=[])
    parser.add_argument("--size", type=int, default=100, help="megabytes of each source")
    parser.add_argument("--path", type=Path, help="measure on these files")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.worker:
        print(json.dumps(measure(given.sources[0], given.path, given.worker)))
        return
    results = [run_apart(name, given.size, given.path) for name in given.sources or MAKERS]
    if given.json:
        print(json.dumps(results, indent=2))
        return
    print("source          MB  messages  preview MB/s  import MB/s  index s  search ms  again s  peak MB (before)")
    for row in results:
        print(
            f"{row['source']:<12}{row['megabytes']:>6,.0f}{row['messages']:>10,}{row['preview_mb_per_s']:>14.1f}"
            f"{row['import_mb_per_s']:>13.1f}{row['index_seconds']:>9.1f}{row['search_ms']:>11.1f}"
            f"{row['again_seconds']:>9.2f}{row['memory_after_import_mb']:>9.0f} ({row['memory_before_mb']:.0f})"
        )


if __name__ == "__main__":
    main()
