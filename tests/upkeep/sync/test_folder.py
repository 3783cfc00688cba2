"""A shared folder may be half copied, damaged or hostile: what cannot be used is reported and has no effect."""

import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import SyncError
from memoranda.upkeep.sync.bundle_files import SUFFIX
from memoranda.upkeep.sync_state import is_synchronised
from tests.search.past import BEGIN, tell
from tests.upkeep.sync.machines import Machine, bundles, sync_all

FOREIGN = "0123456789ab"


def _plant(folder: Path, records: list[Any], **head: Any) -> Path:
    """Write a bundle with one part that has these records."""
    return _plant_bytes(
        folder, gzip.compress(b"".join(json.dumps(record).encode() + b"\n" for record in records)), **head
    )


def _plant_bytes(folder: Path, content: bytes, **head: Any) -> Path:
    path = folder / f"{FOREIGN}{SUFFIX}"
    first = {"memoranda_sync": 2, "machine": FOREIGN, "generation": "g", "name": "foreign", "key": ""} | head
    part = {"at": 1, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in (first, part)) + content)
    return path


_STAMP = f"{0:016d}.{1:016d}.{FOREIGN}"


def _session(**changes: Any) -> dict[str, Any]:
    head = {"id": "evil", "source": "cli", "started_at": 1.0, "relation": None, "parent": None}
    return {"t": "session", "key": "evil@1.0", "head": head | changes, "rows": {}}


def _message(**changes: Any) -> dict[str, Any]:
    fields = {"role": "user", "content": "x", "timestamp": 2.0}
    return {"t": "message", "key": "evil@1.0", "gid": "m:1", "v": _STAMP, "n": 1, "m": fields} | changes


def _entry(text: str, **changes: Any) -> dict[str, Any]:
    facts = dict.fromkeys(("at", "confirmed", "actor", "session", "until"), "")
    state = {"text": text, "facts": facts, "sources": []}
    return {"t": "thing", "kind": "entry", "name": "memory u", "v": _STAMP, "base": "", "state": state} | changes


HOSTILE: dict[str, Callable[[Path], object]] = {
    "another machine": lambda folder: _plant(folder, [_session()], machine="ffffffffffff"),
    "a later format": lambda folder: _plant(folder, [_session()], memoranda_sync=99),
    "not JSON": lambda folder: _plant_bytes(folder, gzip.compress(b"{not json\n")),
    "not compressed": lambda folder: _plant_bytes(folder, b"plain"),
    "truncated": lambda folder: _plant_bytes(folder, gzip.compress(b'{"a":1}\n' * 1000)[:-20]),
    "unknown record": lambda folder: _plant(folder, [_session(), {"t": "exec", "command": "rm"}]),
    "a field that is no column": lambda folder: _plant(
        folder, [_session() | {"rows": {"label": [_STAMP, "", {"id = 'x'; DROP TABLE sessions; --": 1}]}}]
    ),
    "no start": lambda folder: _plant(folder, [_session(started_at="now")]),
    "NaN": lambda folder: _plant(folder, [_session(started_at=float("nan"))]),
    "a long id": lambda folder: _plant(folder, [_session(id="x" * 5000)]),
    "a message without a role": lambda folder: _plant(folder, [_session(), _message(m={"timestamp": 1.0})]),
    "flags": lambda folder: _plant(folder, [_session(), _message(flags=[7, 0, None])]),
    "the future": lambda folder: _plant(folder, [_session(), _message(v=f"{0:016d}.9999999999999999.m")]),
    "no stamp": lambda folder: _plant(folder, [_session(), _message(v="1")]),
    "another user": lambda folder: _plant(
        folder,
        [_session(), {"t": "item", "id": "i", "item": {"user_id": "ana", "namespace": ["n"], "key": "k",
         "versions": [{"version": 1, "event": "add", "updated_at": 1.0, "created_at": 1.0, "value": 1}]}}],
    ),
    "a NUL in an entry": lambda folder: _plant(folder, [_session(), _entry("a\0b")]),
    "an unknown target": lambda folder: _plant(folder, [_session(), _entry("a", name="../x u")]),
}  # fmt: skip


@pytest.mark.slow
def test_a_planted_entry_that_is_valid_arrives(pair: list[Machine], folder: Path) -> None:
    """So that those that are refused are refused for what is wrong with them."""
    _plant(folder, [_session(), _message(), _entry("Likes tea.")])
    assert (pair[0].sync().refused, pair[0].entries()) == ([], {"Likes tea."})


@pytest.mark.slow
@pytest.mark.parametrize("plant", HOSTILE.values(), ids=HOSTILE)
def test_a_bundle_that_is_not_valid_is_refused_as_a_whole(
    pair: list[Machine], folder: Path, plant: Callable[[Path], object]
) -> None:
    """Its valid records have no effect either, the error names the file, and other machines' bundles are read."""
    a, b = pair
    tell(a.db, "s1", ["one"])
    a.sync()
    plant(folder)
    report = b.sync()
    assert len(report.refused) == 1
    assert FOREIGN in report.refused[0]
    assert set(b.contents()["sessions"]) == {"s1"}
    assert b.entries() == set()


@pytest.mark.slow
def test_a_small_file_with_endless_text_is_refused(
    pair: list[Machine], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it fills the memory."""
    monkeypatch.setattr("memoranda.upkeep.sync.bundle_files._MAX_TEXT_BYTES", 5_000_000)
    _plant_bytes(folder, gzip.compress(b" " * 20_000_000))
    assert "more text than any bundle" in pair[0].sync().refused[0]


def test_links_are_not_followed(pair: list[Machine], folder: Path, tmp_path: Path) -> None:
    """A bundle is a file."""
    planted = _plant(folder, [_session()])
    outside = tmp_path / "outside"
    planted.rename(outside)
    planted.symlink_to(outside)
    assert "is a link" in pair[0].sync().refused[0]


def test_a_bundle_that_has_not_arrived_is_waited_for(pair: list[Machine], folder: Path) -> None:
    """What is before it is used, and when it is complete, everything arrives."""
    a, b = pair
    for number in range(3):
        tell(a.db, f"s{number}", ["one"], at=BEGIN + number)
        a.sync()
    (bundle,) = bundles(folder)
    content = bundle.read_bytes()
    for size in (10, len(content) - 10):
        bundle.write_bytes(content[:size])
        assert "has not arrived completely" in b.sync().waiting[0]
    assert set(b.contents()["sessions"]) == {"s0", "s1"}
    bundle.write_bytes(content)
    assert b.sync().waiting == []
    assert a.contents() == b.contents()


@pytest.mark.slow
def test_much_is_written_in_several_parts(pair: list[Machine], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when everything is written again."""
    monkeypatch.setattr("memoranda.upkeep.sync.synchroniser.MAX_PART_BYTES", 1_000)
    a, b = pair
    tell(a.db, "s1", [f"said {number} " + "x" * 200 for number in range(20)])
    tell(a.db, "s2", ["gone"], at=BEGIN + 1)
    assert a.sync().parts_written > 3
    b.sync()
    a.db.delete_session("s2")
    assert a.sync().parts_written > 3
    tell(a.db, "s3", [f"said {number} " + "x" * 200 for number in range(20)], at=BEGIN + 2)
    assert a.sync().parts_written > 3
    b.sync()
    assert a.contents() == b.contents()


def test_a_folder_of_the_earlier_form_is_refused(pair: list[Machine], folder: Path) -> None:
    """The error says what to do, and nothing in the folder changes."""
    (folder / FOREIGN).mkdir()
    old = folder / FOREIGN / f"000001-000001-000000-{'0' * 64}.jsonl.gz"
    old.write_bytes(b"x")
    with pytest.raises(SyncError, match="create a new folder"):
        pair[0].sync()
    assert [path for path in folder.rglob("*") if path.is_file()] == [old]


def test_what_else_is_in_the_folder_is_ignored(pair: list[Machine], folder: Path) -> None:
    """Files of git, of programs that copy folders, and copies that they make of conflicting files."""
    tell(pair[0].db, "s1", ["one"])
    pair[0].sync()
    (bundle,) = bundles(folder)
    (folder / ".git").mkdir()
    (folder / "README.md").write_text("x")
    bundle.with_name(f"{bundle.stem} (conflicted copy){SUFFIX}").write_bytes(b"x")
    bundle.with_name(f".{bundle.name}.tmp").write_bytes(b"x")
    report = pair[1].sync()
    assert (report.refused, report.waiting, report.received["sessions"]) == ([], [], 1)


@pytest.mark.slow
@pytest.mark.usefixtures("quick_passphrases")
def test_a_passphrase_encrypts_the_folder(pair: list[Machine], folder: Path) -> None:
    """Without it, with another one, and with a plain bundle among them, the error says what is wrong."""
    a, b = pair
    tell(a.db, "s1", ["the plum cake"])
    a.sync(passphrase="right")
    assert all(b"plum" not in path.read_bytes() for path in folder.rglob("*") if path.is_file())
    for machine in (a, b):
        before = [path.read_bytes() for path in sorted(folder.iterdir())]
        # There is nothing new to send or read for the first of them.
        with pytest.raises(SyncError, match="are encrypted"):
            machine.sync()
        with pytest.raises(SyncError, match="passphrase is wrong"):
            machine.sync(passphrase="wrong")
        assert [path.read_bytes() for path in sorted(folder.iterdir())] == before
    a.sync(passphrase="right")
    b.sync(passphrase="right")
    assert a.contents() == b.contents()
    _plant(folder, [_session()])
    assert "not encrypted" in a.sync(passphrase="right").refused[0]


def test_a_dry_run_changes_nothing(pair: list[Machine], folder: Path) -> None:
    """It counts what would be sent and received."""
    a, b = pair
    tell(a.db, "s1", ["one", "two"])
    assert a.sync(dry_run=True).sent == {"sessions": 1, "messages": 2}
    assert bundles(folder) == []
    a.sync()
    assert b.sync(dry_run=True).received == {"sessions": 1, "messages": 2}
    assert b.contents()["sessions"] == {}
    assert b.sync().received == {"sessions": 1, "messages": 2}


def test_a_folder_that_does_not_exist_is_an_error(pair: list[Machine], tmp_path: Path) -> None:
    """It is not created, because a network drive may not be mounted."""
    pair[0].folder = tmp_path / "missing"
    with pytest.raises(SyncError, match="not a directory"):
        pair[0].sync()
    assert not (tmp_path / "missing").exists()


_KILLED = """
import sys
from pathlib import Path
from memoranda.support import durable_files
from memoranda.memory.record.transfer.synced_rows import SyncedRows
import os, signal
home, folder, step, count = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
calls = 0
def killing(call):
    def run(*args, **kwargs):
        global calls
        calls += 1
        result = call(*args, **kwargs) if step.endswith("after") else None
        if calls >= count:
            os.kill(os.getpid(), signal.SIGKILL)
        return result if step.endswith("after") else call(*args, **kwargs)
    return run
name = step.split()[0]
if name == "put":
    SyncedRows.put_messages = killing(SyncedRows.put_messages)
elif name == "add":
    SyncedRows.add_session = killing(SyncedRows.add_session)
else:
    from memoranda.upkeep.sync.bundle_files import SharedFolder
    SharedFolder.append = killing(SharedFolder.append)
from tests.upkeep.sync.machines import Machine
Machine(home, folder).sync()
"""


@pytest.mark.slow
@pytest.mark.parametrize("step", ["put after", "add after", "append", "append after"])
def test_a_run_that_is_killed_is_continued_by_the_next(pair: list[Machine], step: str) -> None:
    """At every step, nothing is lost and nothing is doubled."""
    a, b = pair
    for number in range(3):
        tell(a.db, f"s{number}", ["one", "two"], at=BEGIN + number)
    if "append" in step:
        b.sync()
    a.sync()
    tell(b.db, "own", ["three"], at=BEGIN + 9)
    b.close()
    command = [sys.executable, "-c", _KILLED, str(b.home), str(b.folder), step, "1" if "append" in step else "2"]
    result = subprocess.run(command, cwd=Path(__file__).parents[3], env=os.environ, check=False)
    assert result.returncode == -signal.SIGKILL
    b = pair[1] = Machine(b.home, b.folder)
    sync_all(pair, 3)
    assert a.contents() == b.contents()
    assert sum(len(session["messages"]) for session in a.contents()["sessions"].values()) == 7
    assert is_synchronised(b.home)
