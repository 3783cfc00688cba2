"""Exports and imports need little memory, however much there is, and an export is whole or not there."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memoranda.cli.sessions.transfer import read_lines
from memoranda.home.session_db import SessionDB
from memoranda.memory.record.store import open_store
from memoranda.memory.record.transfer.sessions import ImportedIds
from memoranda.support.durable_files import write_private_parts
from tests.memory.peak import PEAK

pytestmark = pytest.mark.slow

# One long session and many short ones, of 40 MB together.
_FILL = """
import sys
from pathlib import Path
from memoranda.memory.record.store import open_store

with open_store(Path(sys.argv[1]) / "state.db") as store:
    store.engine._writer.execute("PRAGMA synchronous=OFF")
    for number in range(40):
        store.sessions.create_session(f"s{number}", "cli", started_at=float(number))
        store.messages.append_messages(f"s{number}", [{"role": "user", "content": "x" * 10_000}] * 50)
    store.messages.append_messages("s7", [{"role": "user", "content": "y" * 20_000}] * 1_000)
"""
# Runs a command of the program and prints by how much its memory grew.
_RUN = (
    PEAK
    + """
import sys
from memoranda.cli.main import command

before = peak()
try:
    command(sys.argv[1:], standalone_mode=False)
finally:
    print(peak() - before, file=sys.stderr)
"""
)


def _run(program: str, *words: str) -> int:
    """Run a program in a process; returns the last number that it printed, or 0."""
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True)
    return int(done.stderr.split()[-1]) if done.stderr else 0


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
def test_an_export_does_not_fit_into_memory_and_need_not(tmp_path: Path) -> None:
    """The process needs far less than the 40 MB of text."""
    home, file = tmp_path / "home", tmp_path / "past.jsonl"
    home.mkdir(mode=0o700)
    _run(_FILL, str(home))
    grown = _run(_RUN, "--home", str(home), "sessions", "export", "--output", str(file))
    assert file.stat().st_size > 40_000_000
    assert grown < 30_000_000
    lines = file.read_bytes().splitlines()
    assert len(lines) == 40
    with SessionDB(home / "state.db") as db:
        assert [json.loads(line) for line in lines] == list(db.iter_export())


def test_a_line_is_the_exported_session(tmp_path: Path) -> None:
    """With the same fields in the same order, also when it is read in many parts."""
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("s", "cli", title="T", note="kept")
        db.append_messages("s", [{"role": "user", "content": f"é {number} \ud800"} for number in range(450)])
        db.append_messages("s", [{"role": "user", "content": "long " * 300_000}] * 3)
        db.rewind_to_message("s", db.append_message("s", "user", "gone"))
        db.create_session("empty", "cli")
        for name in ("s", "empty"):
            line = "".join(db.transfer.export_line(name))
            assert line.endswith("}\n")
            assert json.dumps(json.loads(line)) == json.dumps(db.export_session(name))
        assert "".join(db.transfer.export_line("missing")) == ""
        parts = list(read_lines(db, ["s", "empty"]))
        assert len(parts) > 3
        assert len(b"".join(parts).splitlines()) == 2


def _failing(error: BaseException) -> Iterator[bytes]:
    yield b"the first part"
    raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("x"), OSError("full")])
def test_an_interrupted_file_is_not_there(tmp_path: Path, error: BaseException) -> None:
    """And an existing one stays as it was."""
    new, existing = tmp_path / "new", tmp_path / "existing"
    existing.write_bytes(b"before")
    for path in (new, existing):
        with pytest.raises(type(error)):
            write_private_parts(path, _failing(error))
    assert [file.name for file in tmp_path.iterdir()] == ["existing"]
    assert existing.read_bytes() == b"before"


def test_a_store_is_not_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next session is read after the one before was written."""
    written: list[int] = []
    with SessionDB(tmp_path / "state.db") as db:
        for number in range(5):
            db.create_session(f"s{number}", "cli")
            db.append_message(f"s{number}", "user", "z" * 200_000)
        read: list[str] = []
        export: Callable[[str], Iterator[str]] = db.transfer.export_line

        def note(name: str) -> Iterator[str]:
            read.append(name)
            return export(name)

        monkeypatch.setattr(db.transfer, "export_line", note)
        for _ in read_lines(db, [f"s{number}" for number in range(5)]):
            written.append(len(read))
    assert written[:5] == [1, 2, 3, 4, 5]


def test_imported_ids_are_a_map() -> None:
    """Of any whole numbers, in little memory."""
    ids, plain = ImportedIds(), {}
    for old in (*range(1, 500), 0, -7, 10**6, 2**70, 31, 32):
        ids[old] = plain[old] = old % 1000 + 1
    for old in (*plain, 501, -8, 2**70 + 1, 10**6 - 1):
        assert ids.get(old) == plain.get(old)


def test_a_file_with_a_million_ids_needs_few_bytes_for_each(tmp_path: Path) -> None:
    """An import remembers every id of a message, for the copies and references that come later."""
    program = (
        "import tracemalloc; from memoranda.memory.record.transfer.sessions import ImportedIds\n"
        "tracemalloc.start(); ids = ImportedIds()\n"
        "for old in range(100_000): ids[old] = old + 7\n"
        "import sys; print(tracemalloc.get_traced_memory()[1], file=sys.stderr)"
    )
    assert _run(program) < 2_500_000


def test_an_open_store_exports_what_is_in_scope(tmp_path: Path) -> None:
    """The ids in their order, filtered by source."""
    with open_store(tmp_path / "state.db") as store:
        for number, source in enumerate(("cli", "cron", "cli")):
            store.sessions.create_session(f"s{number}", source, started_at=10.0 - number)
        assert store.transfer.exported_ids() == ["s2", "s1", "s0"]
        assert store.transfer.exported_ids("cli") == ["s2", "s0"]
