"""Killed writers and several processes: what was acknowledged is there, what was not is gone."""

import time
from functools import partial
from pathlib import Path

import pytest

from memoranda.memory.skills import change_history
from memoranda.memory.skills.skill_text import with_front_matter
from memoranda.memory.skills.store import SkillStore
from memoranda.memory.skills.write_result import SkillReceipt, SkillRefusal
from memoranda.support.origin import PERSON, Origin
from tests.conftest import tree
from tests.forked import Forked, Say, forking

AGENT = Origin("agent", "s1")
DEPLOY = with_front_matter("deploy", "How to deploy.", "1. Build.\n2. Push.")


def _die(*arguments: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("what", ["create", "patch", "delete", "undo"])
def test_a_change_that_was_journalled_and_never_made_is_void(root: Path, what: str) -> None:
    """The next writer settles it: the files are as before, and the journal says so."""
    store = SkillStore(root)
    store.create("other", with_front_matter("other", "x", "y"), AGENT)
    if what != "create":
        store.create("deploy", DEPLOY, AGENT)
    if what == "undo":
        store.delete("deploy", AGENT)
    before = {name: text for name, text in tree(root).items() if ".journal" not in name}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memoranda.storage.files.journaled_writer.publish", _die)
        patch.setattr("memoranda.storage.files.journaled_writer._recover", lambda *arguments: None)
        patch.setattr("memoranda.memory.skills.writer.os.rename", _die)
        patch.setattr("memoranda.memory.skills.writer.SkillWriter._settle", lambda writer: None)
        with pytest.raises(KeyboardInterrupt):
            match what:
                case "create":
                    store.create("deploy", DEPLOY, AGENT)
                case "patch":
                    store.patch("deploy", "2. Push.", "2. Pull.", AGENT)
                case "delete":
                    store.delete("deploy", AGENT)
                case _:
                    change_history.undo(store, None, PERSON)
    after = SkillStore(root)
    assert isinstance(after.create("third", with_front_matter("third", "x", "y"), AGENT), SkillReceipt)
    after.delete("third", PERSON)
    history_now = list(after.journal.changes())
    assert after.journal.find_loss() == ""
    assert [change.action for change in history_now[-2:]] == ["create", "delete"]
    left = {name: text for name, text in tree(root).items() if ".journal" not in name and "third" not in name}
    assert left == before
    assert not (root / "deploy").exists() or what not in ("create", "undo")


def test_a_failing_disk_leaves_everything_as_it_was(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal, no leftovers, and the next write works."""
    store = SkillStore(root)
    store.create("deploy", DEPLOY, AGENT)

    def refuse(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    for target in (
        "memoranda.storage.files.journaled_writer.stage",
        "memoranda.storage.files.journaled_writer.publish",
    ):
        with monkeypatch.context() as patch:
            patch.setattr(target, refuse)
            outcome = store.patch("deploy", "2. Push.", "2. Pull.", AGENT)
        assert isinstance(outcome, SkillRefusal) and outcome.reason == "storage"
        assert (root / "deploy" / "SKILL.md").read_text() == DEPLOY
    with monkeypatch.context() as patch:
        patch.setattr("memoranda.memory.skills.writer.os.rename", refuse)
        assert isinstance(store.delete("deploy", AGENT), SkillRefusal)
    assert [change.action for change in store.journal.changes()] == ["create"]
    assert isinstance(store.delete("deploy", AGENT), SkillReceipt)
    assert not store.writer.leftover.exists()


def _write(root: Path, who: str, many: int, say: Say) -> None:
    """Make, patch and sometimes delete so many skills, and say a line for each step that was done."""
    store = SkillStore(root)
    for number in range(many):
        name = f"skill-{who}-{number}"
        store.create(name, with_front_matter(name, "x", "step one"), AGENT)
        say(f"made {name}\n".encode())
        store.patch(name, "step one", "step two", AGENT)
        say(f"patched {name}\n".encode())
        if number % 3 == 0:
            store.delete(name, AGENT)
            say(f"deleted {name}\n".encode())


def _acknowledged(root: Path, said: list[bytes]) -> None:
    """Everything that a writer said it had done is done; the journal has it all, each number once."""
    store = SkillStore(root)
    with store.exclusive():
        pass
    numbers = [change.number for change in store.journal.changes()]
    assert numbers == sorted(set(numbers)) and store.journal.damaged_lines() == []
    lines = [line.decode().split() for line in said]
    deleted = {words[1] for words in lines if words[0] == "deleted"}
    for words in lines:
        # The one that was being worked on may be further than was said.
        path = root / words[1] / "SKILL.md"
        if words[1] in deleted:
            assert not path.exists()
        elif path.exists():
            assert words[0] == "made" or "step two" in path.read_text()
        else:
            assert [change.action for change in change_history.log(store, words[1])][-1] == "delete"


@pytest.mark.slow
@forking
def test_several_processes_lose_nothing(root: Path) -> None:
    """Three write at once; every skill and every line is there."""
    writers = [Forked(partial(_write, root, str(number), 8)) for number in range(3)]
    said = [line for writer in writers for line in writer.rest().splitlines()]
    assert len(said) == 3 * (8 + 8 + 3)
    _acknowledged(root, said)
    assert len(SkillStore(root).catalogue().skills) == 3 * 5


@pytest.mark.slow
@forking
def test_kill_9_at_any_moment_leaves_whole_skills(tmp_path: Path) -> None:
    """Whatever was acknowledged is there, nothing is half written, and the next writer continues."""
    for number in range(12):
        root = tmp_path / str(number)
        writer = Forked(partial(_write, root, "a", 200))
        said = writer.heard()
        time.sleep(0.003 + 0.011 * number)
        said += writer.kill()
        _acknowledged(root, said.splitlines())
        store = SkillStore(root)
        assert isinstance(store.create("next", with_front_matter("next", "x", "y"), AGENT), SkillReceipt)
        assert [problem for problem in store.catalogue().problems if "no SKILL.md" in problem.problem] == []
        assert not store.writer.leftover.exists()
