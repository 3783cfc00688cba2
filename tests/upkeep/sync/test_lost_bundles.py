"""A shared folder loses, damages and renames files: the machine that wrote them heals it, and no wait is silent."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import SyncError
from memoranda.support.home import Home
from memoranda.upkeep.doctor import examine
from memoranda.upkeep.sync import delivery
from tests.cli.terminal import Terminal
from tests.search.past import BEGIN, tell
from tests.upkeep.sync.machines import Machine, sync_all


def _bundles(machine: Machine) -> list[Path]:
    return sorted((machine.folder / machine.machine_id()).glob("*.jsonl.gz"))


def _damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[40:140] = os.urandom(100)
    path.write_bytes(content)


def _rename(path: Path) -> None:
    path.rename(path.with_name(path.name.replace(".jsonl.gz", ".jsonl (1).gz")))


def _replace_by_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


FAULTS: dict[str, Callable[[Path], object]] = {
    "lost": lambda path: path.unlink(),
    "damaged": _damage,
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:50]),
    "emptied": lambda path: path.write_bytes(b""),
    "renamed by a cloud service": _rename,
    "a conflicted copy": lambda path: path.rename(path.with_name(f"{path.stem} (Ana's conflicted copy).gz")),
    "replaced by a directory": _replace_by_directory,
    "the whole directory lost": lambda path: shutil.rmtree(path.parent),
}


@pytest.fixture
def three(tmp_path: Path, folder: Path) -> Any:
    """Three machines; the first has sent three bundles, and only the second has read them."""
    machines = [Machine(tmp_path / name, folder) for name in ("a", "b", "c")]
    for number in range(3):
        tell(machines[0].db, f"s{number}", [f"said {number}"], at=BEGIN + number)
        machines[0].sync()
    machines[1].sync()
    yield machines
    for machine in machines:
        machine.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "number"),
    [
        # What is lost or damaged may be any of the bundles; for the other faults `make torture` tries all of them.
        pytest.param(fault, number, marks=() if number == 1 or name in ("lost", "damaged") else pytest.mark.torture)
        for name, fault in FAULTS.items()
        for number in (0, 1, 2)
    ],
    ids=[f"{name}-{number}" for name in FAULTS for number in (0, 1, 2)],
)
def test_the_owner_writes_again_what_the_folder_has_lost(
    three: list[Machine], fault: Callable[[Path], object], number: int
) -> None:
    """Whichever bundle it is; machines that have read it do not need it, and the others get everything."""
    a, b, c = three
    fault(_bundles(a)[number])
    tell(a.db, "new", ["said later"], at=BEGIN + 9)
    assert (b.sync().waiting, b.report.overdue, b.report.refused) == ([], [], [])
    assert "lost or damaged" in " ".join(a.sync().notes)
    assert (c.sync().waiting, c.report.refused) == ([], [])
    sync_all(three, 2)
    assert a.contents() == b.contents() == c.contents()
    assert set(c.contents()["sessions"]) == {"s0", "s1", "s2", "new"}
    assert a.sync().notes == [] and a.report.parts_written == 0


@pytest.mark.slow
def test_a_reader_does_not_need_what_it_has_read(three: list[Machine]) -> None:
    """It reads what comes later, although an earlier bundle is gone."""
    a, b, c = three
    first, _, last = _bundles(a)
    tell(b.db, "own", ["of b"], at=BEGIN + 5)
    tell(a.db, "new", ["said later"], at=BEGIN + 9)
    kept = first.read_bytes()
    a.sync()
    first.unlink()
    assert b.sync().waiting == []
    assert "new" in b.contents()["sessions"]
    assert "bundle 1 has not arrived" in c.sync().waiting[0]
    first.write_bytes(kept)
    assert c.sync().waiting == [] and last.exists()


@pytest.mark.slow
def test_an_older_copy_of_the_folder_is_brought_up_to_date(three: list[Machine], tmp_path: Path) -> None:
    """What was written since is written again, and what was forgotten since is removed again."""
    a, b, c = three
    old = tmp_path / "old"
    shutil.copytree(a.folder, old)
    tell(a.db, "new", ["said later"], at=BEGIN + 9)
    a.db.delete_session("s1")
    sync_all([a, b], 2)
    shutil.rmtree(a.folder)
    shutil.copytree(old, a.folder)
    sync_all(three, 3)
    assert a.contents() == b.contents() == c.contents()
    assert set(c.contents()["sessions"]) == {"s0", "s2", "new"}


def test_copies_of_bundles_go_with_what_they_contain(three: list[Machine]) -> None:
    """A copy that a cloud service has made of a bundle is removed when the bundle is replaced."""
    a = three[0]
    for path in _bundles(a):
        shutil.copy(path, path.with_name(path.name.replace(".jsonl.gz", " (conflicted copy).jsonl.gz")))
    assert a.sync().notes == []
    a.db.delete_session("s1")
    a.sync()
    (left,) = (a.folder / a.machine_id()).iterdir()
    assert left == _bundles(a)[0]


@pytest.mark.slow
def test_a_wait_that_does_not_end_is_an_error_that_says_what_to_do(
    three: list[Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the command line with another exit code; the doctor sees it; what arrives ends it."""
    a, _, c = three
    damaged = _bundles(a)[1]
    content = damaged.read_bytes()
    _damage(damaged)
    assert c.sync().overdue == [] and len(c.report.waiting) == 1
    monkeypatch.setattr(delivery, "MAX_WAIT_SECONDS", 0.0)
    (overdue,) = c.sync().overdue
    assert "Run 'memoranda sync' on" in overdue and "--rewrite" in overdue
    issues = [issue for issue in examine(Home(c.home)) if "has not arrived" in issue.problem]
    assert [issue.remedy for issue in issues] == ["run 'memoranda sync', which says what to do"]
    c.close()
    shown = Terminal(c.home).run("sync", "--plain", str(c.folder))
    assert shown.exit_code == 1 and "Overdue: " in shown.output
    damaged.write_bytes(content)
    three[2] = c = Machine(c.home, c.folder)
    assert (c.sync().overdue, c.report.waiting) == ([], [])
    assert not [issue for issue in examine(Home(c.home)) if "has not arrived" in issue.problem]


@pytest.mark.slow
def test_the_doctor_sees_lost_bundles_of_this_machine(three: list[Machine]) -> None:
    """It names the folder and the command; a folder that is not there has lost nothing."""
    a = three[0]
    assert not [issue for issue in examine(Home(a.home)) if "bundles" in issue.problem]
    _bundles(a)[1].unlink()
    (issue,) = (issue for issue in examine(Home(a.home)) if "bundles" in issue.problem)
    assert "1 bundles of this machine are missing or damaged" in issue.problem
    assert issue.remedy.startswith(f"run 'memoranda sync {a.folder}'")
    shutil.rmtree(a.folder)
    assert not [issue for issue in examine(Home(a.home)) if "bundles" in issue.problem]


@pytest.mark.slow
def test_the_data_of_a_machine_that_is_gone_is_sent_by_another(three: list[Machine]) -> None:
    """Its directory is deleted; a machine that has read it sends everything again."""
    a, b, c = three
    a.close()
    shutil.rmtree(a.folder / a.machine_id())
    assert c.sync().received == {}
    b.sync(rewrite=True)
    c.sync()
    assert set(c.contents()["sessions"]) == {"s0", "s1", "s2"}
    three[0] = Machine(a.home, a.folder)


def test_a_full_disk_loses_nothing(three: list[Machine], monkeypatch: pytest.MonkeyPatch) -> None:
    """The run says what happened, leaves no half of a file, and the next one sends what was not sent."""
    a, b, _ = three
    tell(a.db, "new", ["said later"], at=BEGIN + 9)
    before = sorted((a.folder / a.machine_id()).iterdir())

    def full(*args: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("memoranda.support.durable_files.os.fsync", full)
        with pytest.raises(SyncError, match="No space left on device"):
            a.sync()
    assert sorted((a.folder / a.machine_id()).iterdir()) == before
    sync_all([a, b], 2)
    assert a.contents() == b.contents() and "new" in b.contents()["sessions"]


@pytest.mark.slow
@pytest.mark.usefixtures("quick_passphrases")
def test_a_lost_key_makes_everything_new(pair: list[Machine], folder: Path) -> None:
    """Without the passphrase nothing is written; with it, another key encrypts everything again."""
    a, b = pair
    tell(a.db, "s1", ["the plum cake"])
    a.sync(passphrase="right")
    (folder / a.machine_id() / "key.age").unlink()
    with pytest.raises(SyncError, match="are encrypted"):
        a.sync()
    a.sync(passphrase="right")
    b.sync(passphrase="right")
    assert a.contents() == b.contents()
    assert all(b"plum" not in path.read_bytes() for path in folder.rglob("*") if path.is_file())
