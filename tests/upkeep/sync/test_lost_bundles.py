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
from memoranda.upkeep.sync.bundle_files import SUFFIX, SharedFolder
from tests.cli.terminal import Terminal
from tests.search.past import BEGIN, tell
from tests.upkeep.sync.machines import Machine, sent_records, sync_all


def _bundle(machine: Machine) -> Path:
    return machine.folder / f"{machine.machine_id()}{SUFFIX}"


def _damage(path: Path, part: int) -> None:
    """Damage the head of a bundle (0), or one of its parts."""
    shared = SharedFolder(path.parent)
    head = shared.head(path.stem)
    starts = [0, *(found.start for found in shared.parts(head, head.end))]
    content = bytearray(path.read_bytes())
    content[starts[part] : starts[part] + 20] = os.urandom(20)
    path.write_bytes(content)


def _truncate(path: Path, part: int) -> None:
    """Cut off a bundle in its head (0), or in one of its parts."""
    shared = SharedFolder(path.parent)
    head = shared.head(path.stem)
    ends = [head.end, *(found.end for found in shared.parts(head, head.end))]
    path.write_bytes(path.read_bytes()[: ends[part] - 5])


def _empty_folder(path: Path, _: int) -> None:
    for each in path.parent.iterdir():
        each.unlink()


def _replace_by_directory(path: Path, _: int) -> None:
    path.unlink()
    path.mkdir()


FAULTS: dict[str, Callable[[Path, int], object]] = {
    "lost": lambda path, _: path.unlink(),
    "damaged": _damage,
    "truncated": _truncate,
    "emptied": lambda path, _: path.write_bytes(b""),
    "renamed by a cloud service": lambda path, _: path.rename(path.with_name(f"{path.stem} (1){SUFFIX}")),
    "a conflicted copy": lambda path, _: path.rename(path.with_name(f"{path.stem} (Ana's conflicted copy){SUFFIX}")),
    "replaced by a directory": _replace_by_directory,
    "the whole folder emptied": _empty_folder,
}


@pytest.fixture
def three(tmp_path: Path, folder: Path) -> Any:
    """Three machines; the first has sent three parts, and only the second has read them."""
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
        # What is damaged may be any of the parts; for the other faults `make torture` tries all of them.
        pytest.param(
            fault, number, marks=() if number == 1 or name in ("damaged", "truncated") else pytest.mark.torture
        )
        for name, fault in FAULTS.items()
        for number in (0, 1, 2, 3)
    ],
    ids=[f"{name}-{number}" for name in FAULTS for number in (0, 1, 2, 3)],
)
def test_the_owner_writes_again_what_the_folder_has_lost(
    three: list[Machine], fault: Callable[[Path, int], object], number: int
) -> None:
    """Whichever part it is; the other machines report it, lose nothing, and get everything when it is written again."""
    a, b, c = three
    fault(_bundle(a), number)
    tell(a.db, "new", ["said later"], at=BEGIN + 9)
    before = b.contents()
    assert (b.sync().overdue, b.contents()) == ([], before)
    assert c.sync().overdue == []
    assert "lost or damaged" in " ".join(a.sync().notes)
    sync_all(three, 2)
    assert (c.sync().waiting, c.report.refused) == ([], [])
    assert a.contents() == b.contents() == c.contents()
    assert set(c.contents()["sessions"]) == {"s0", "s1", "s2", "new"}
    assert a.sync().notes == [] and a.report.parts_written == 0


def test_what_comes_before_a_damaged_part_is_read(three: list[Machine]) -> None:
    """And the rest when it is whole again, without a new bundle."""
    a, _, c = three
    kept = _bundle(a).read_bytes()
    _damage(_bundle(a), 2)
    assert "damaged" in c.sync().waiting[0]
    assert set(c.contents()["sessions"]) == {"s0"}
    _bundle(a).write_bytes(kept)
    assert c.sync().waiting == []
    assert set(c.contents()["sessions"]) == {"s0", "s1", "s2"}


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


@pytest.mark.slow
def test_a_machine_that_returns_with_an_old_bundle_does_not_restore_what_was_forgotten(three: list[Machine]) -> None:
    """Nor does it keep it itself: neither a text, nor a conversation, nor an entry."""
    a, b, c = three
    a.memory.remember("The zanzibar entry.")
    tell(a.db, "told", ["The code is zanzibar"], at=BEGIN + 20)
    sync_all(three, 1)
    old = _bundle(c).read_bytes()
    tell(c.db, "away", ["Unsent words of zanzibar"], at=BEGIN + 30)
    b.memory.forget("zanzibar")
    b.db.delete_session("s1")
    sync_all([b, a], 2)
    _bundle(c).write_bytes(old)
    sync_all([c, a, b], 2)
    assert a.contents() == b.contents() == c.contents()
    assert "zanzibar" not in str(c.contents()) and "s1" not in c.contents()["sessions"]
    assert "zanzibar" not in str(sent_records(a.folder))


def test_copies_of_bundles_go_with_what_they_contain(three: list[Machine]) -> None:
    """A copy that a cloud service has made of a bundle is removed when the bundle is written again."""
    a = three[0]
    shutil.copy(_bundle(a), _bundle(a).with_name(f"{a.machine_id()} (conflicted copy){SUFFIX}"))
    assert a.sync().notes == []
    a.db.delete_session("s1")
    a.sync()
    assert [path for path in a.folder.iterdir() if a.machine_id() in path.name] == [_bundle(a)]


@pytest.mark.slow
def test_a_wait_that_does_not_end_is_an_error_that_says_what_to_do(
    three: list[Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the command line with another exit code; the doctor sees it; what arrives ends it."""
    a, _, c = three
    damaged = _bundle(a)
    content = damaged.read_bytes()
    _damage(damaged, 1)
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
    assert not [issue for issue in examine(Home(a.home)) if "bundle" in issue.problem]
    _bundle(a).unlink()
    (issue,) = (issue for issue in examine(Home(a.home)) if "bundle" in issue.problem)
    assert "the bundle of this machine is missing or damaged" in issue.problem
    assert issue.remedy.startswith(f"run 'memoranda sync {a.folder}'")
    shutil.rmtree(a.folder)
    assert not [issue for issue in examine(Home(a.home)) if "bundle" in issue.problem]


@pytest.mark.slow
def test_the_data_of_a_machine_that_is_gone_is_sent_by_another(three: list[Machine]) -> None:
    """Its bundle is deleted; a machine that has read it sends everything again."""
    a, b, c = three
    a.close()
    _bundle(a).unlink()
    assert c.sync().received == {}
    b.sync(rewrite=True)
    c.sync()
    assert set(c.contents()["sessions"]) == {"s0", "s1", "s2"}
    three[0] = Machine(a.home, a.folder)


def test_a_full_disk_loses_nothing(three: list[Machine], monkeypatch: pytest.MonkeyPatch) -> None:
    """The run says what happened, leaves no half of a file, and the next one sends what was not sent."""
    a, b, _ = three
    tell(a.db, "new", ["said later"], at=BEGIN + 9)
    before = _bundle(a).read_bytes()

    def full(*args: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("memoranda.support.durable_files.os.fsync", full)
        with pytest.raises(SyncError, match="No space left on device"):
            a.sync()
    assert _bundle(a).read_bytes() == before
    sync_all([a, b], 2)
    assert a.report.notes == []
    assert a.contents() == b.contents() and "new" in b.contents()["sessions"]
