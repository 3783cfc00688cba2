"""Every change can be undone until the history is purged."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.memory.skills import change_history
from memoranda.memory.skills.skill_text import with_front_matter
from memoranda.memory.skills.store import SkillStore
from memoranda.memory.skills.write_result import SkillReceipt, SkillRefusal, SkillWriteResult
from memoranda.memory.skills.writer import PassageEdit
from memoranda.support.origin import PERSON, Origin
from tests.conftest import tree

pytestmark = pytest.mark.slow

AGENT = Origin("agent", "s1")
DEPLOY = with_front_matter("deploy", "How to deploy.", "1. Build.\n2. Push.")


def files(root: Path) -> dict[str, bytes]:
    return {name: content for name, content in tree(root).items() if not name.startswith(".")}


def done(outcome: SkillWriteResult) -> SkillReceipt:
    assert isinstance(outcome, SkillReceipt), outcome
    return outcome


def test_undoing_every_change_leads_back_to_where_it_began(skills: SkillStore, root: Path) -> None:
    """From the latest to the first, each step restores the bytes that were there before it."""
    steps: list[Callable[[], SkillWriteResult]] = [
        lambda: skills.create("deploy", DEPLOY, AGENT),
        lambda: skills.patch("deploy", "2. Push.", "2. Pull.", AGENT),
        lambda: skills.write_file("deploy", "refs/a.md", "one", AGENT),
        lambda: skills.write_file("deploy", "refs/a.md", "two", AGENT),
        lambda: skills.remove_file("deploy", "refs/a.md", AGENT),
        lambda: skills.edit("deploy", with_front_matter("deploy", "x", "y"), AGENT),
        lambda: skills.delete("deploy", AGENT),
    ]
    states = [files(root)]
    for step in steps:
        done(step())
        states.append(files(root))
    for expected in reversed(states[:-1]):
        done(change_history.undo(skills, None, PERSON))
        assert files(root) == expected
    assert isinstance(change_history.undo(skills, None, PERSON), SkillRefusal)


def test_an_undo_can_be_undone(skills: SkillStore, root: Path) -> None:
    """Of a text, of a removal and of a new skill."""
    done(skills.create("deploy", DEPLOY, AGENT))
    there = files(root)
    undone = done(change_history.undo(skills, None, PERSON))
    assert files(root) == {}
    redone = done(change_history.undo(skills, undone.change, PERSON))
    assert files(root) == there
    done(change_history.undo(skills, redone.change, PERSON))
    assert files(root) == {}


def test_what_was_changed_since_is_not_taken_back(skills: SkillStore, root: Path) -> None:
    """Neither by Memoranda nor by another program; the later change has to be undone first."""
    done(skills.create("deploy", DEPLOY, AGENT))
    done(skills.patch("deploy", "2. Push.", "2. Pull.", AGENT))
    before = files(root)
    for number in (1,):
        outcome = change_history.undo(skills, number, PERSON)
        assert isinstance(outcome, SkillRefusal) and outcome.reason == "conflict"
    assert files(root) == before
    path = root / "deploy" / "SKILL.md"
    path.write_text(path.read_text() + "by hand\n")
    outcome = change_history.undo(skills, 2, PERSON)
    assert isinstance(outcome, SkillRefusal) and outcome.reason == "conflict"


def test_a_new_skill_with_other_files_is_not_taken_away_by_undo(skills: SkillStore, root: Path) -> None:
    """They are a person's work."""
    done(skills.create("deploy", DEPLOY, AGENT))
    (root / "deploy" / "notes.txt").write_text("mine")
    assert isinstance(change_history.undo(skills, 1, PERSON), SkillRefusal)
    assert (root / "deploy" / "notes.txt").exists()


def test_a_removed_skill_does_not_come_back_over_another(skills: SkillStore, root: Path) -> None:
    """The place must be free."""
    done(skills.create("deploy", DEPLOY, AGENT))
    done(skills.delete("deploy", AGENT))
    done(skills.create("deploy", DEPLOY + "new\n", AGENT))
    outcome = change_history.undo(skills, 2, PERSON)
    assert isinstance(outcome, SkillRefusal) and outcome.reason == "exists"
    done(change_history.undo(skills, 3, PERSON))
    done(change_history.undo(skills, 2, PERSON))
    assert (root / "deploy" / "SKILL.md").read_text() == DEPLOY


def test_a_category_comes_back_with_its_last_skill(skills: SkillStore, put: Callable[..., Path], root: Path) -> None:
    """An empty folder goes, and is made again."""
    put("devops/deploy/SKILL.md")
    before = files(root)
    done(skills.delete("deploy", AGENT))
    assert not (root / "devops").exists()
    done(change_history.undo(skills, None, PERSON))
    assert files(root) == before


def test_purging_forgets_everything_but_the_skills(skills: SkillStore, root: Path) -> None:
    """History and archive go."""
    done(skills.create("deploy", DEPLOY, AGENT))
    done(skills.write_file("deploy", "a.md", "secret words", AGENT))
    done(skills.remove_file("deploy", "a.md", AGENT))
    purged = change_history.purge(skills)
    assert (purged.changes, purged.archived) == (3, 1)
    assert files(root) == {"deploy/SKILL.md": DEPLOY.encode()}
    assert b"secret words" not in b"".join(tree(root).values())
    done(skills.patch("deploy", "2. Push.", "2. Pull.", AGENT))
    assert [change.number for change in change_history.log(skills)] == [1]


def test_lines_of_the_journal_that_lead_elsewhere_are_passed_over(
    skills: SkillStore, root: Path, tmp_path: Path
) -> None:
    """A journal that a person edited cannot make undo touch other files."""
    done(skills.create("deploy", DEPLOY, AGENT))
    (tmp_path / "home" / "victim").mkdir()
    journal = root / ".journal.jsonl"
    line = journal.read_text()
    journal.write_text(line + line.replace('"number":1', '"number":2').replace("deploy/SKILL.md", "../victim/SKILL.md"))
    assert skills.journal.damaged_lines() == [2]
    assert isinstance(change_history.undo(skills, 2, PERSON), SkillRefusal)


@given(st.text("ab\n", max_size=30), st.text("ab\n", max_size=30))
def test_an_edit_leads_back_to_the_text_before(before: str, after: str) -> None:
    """For any two texts."""
    edit = PassageEdit.between(before, after)
    assert edit.reversed_in(after) == before
    assert before[: edit.start] + edit.after + before[edit.start + len(edit.before) :] == after


_JOURNAL_0_1 = """\
{"number":1,"skill":"deploy","path":"deploy/SKILL.md","action":"create","actor":"agent","session":"s1","before":"",\
"after":"bf2ab5dcf97b1f5924374e519892f583d8a5c7bfe453ca961d31bf01b2acd8c0","edit":{"start":0,"before":"",\
"after":"---\\nname: deploy\\ndescription: \\"How to deploy.\\"\\n---\\n\\n1. Build.\\n"},"moved":"","archive":"",\
"at":"2026-11-16T03:47:20.264976Z","refers_to":null,"note":""}
{"number":2,"skill":"deploy","path":"deploy/SKILL.md","action":"patch","actor":"agent","session":"s1",\
"before":"bf2ab5dcf97b1f5924374e519892f583d8a5c7bfe453ca961d31bf01b2acd8c0",\
"after":"87756a5c0f4c27815f1202eaa77ed9cf6f7d3dee2ecaca9eaf109cb7bafacaeb",\
"edit":{"start":52,"before":"1. Build.\\n","after":"1. Make.\\n"},"moved":"","archive":"",\
"at":"2026-11-16T03:47:20.295272Z","refers_to":null,"note":""}
{"number":3,"skill":"deploy","path":"deploy","action":"delete","actor":"agent","session":"s1","before":"","after":"",\
"edit":null,"moved":"away","archive":"3/deploy","at":"2026-11-16T03:47:20.306601Z","refers_to":null,"note":""}
"""


def test_a_journal_of_version_0_1_is_read_and_continued_in_the_same_form(root: Path) -> None:
    """Undo restores what was deleted and patched, and new lines have the same fields and a checksum."""
    archived = root / ".archive" / "3" / "deploy" / "SKILL.md"
    archived.parent.mkdir(parents=True)
    archived.write_text(with_front_matter("deploy", "How to deploy.", "1. Make."))
    journal = root / ".journal.jsonl"
    journal.write_text(_JOURNAL_0_1)
    store = SkillStore(root)
    done(change_history.undo(store, None, PERSON))
    done(change_history.undo(store, None, PERSON))
    assert (root / "deploy" / "SKILL.md").read_text().endswith("1. Build.\n")
    assert journal.read_text().startswith(_JOURNAL_0_1)
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [line["action"] for line in lines[3:]] == ["undo", "undo"]
    assert {tuple(line) for line in lines} == {tuple(lines[0]), (*lines[0], "checksum")}
