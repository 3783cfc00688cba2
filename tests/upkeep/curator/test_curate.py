"""The curator tidies up by rules, drops nothing, and gives way to whatever else writes."""

import os
import shutil
import subprocess
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.memory.curated import change_history
from memoranda.memory.curated.moves import move_entry
from memoranda.memory.curated.notes import Notes
from memoranda.memory.curated.operations import MemoryReceipt, MemoryRefusal
from memoranda.memory.curated.settings import NOTES_NAMESPACE, project_target
from memoranda.memory.record.items import Items
from memoranda.support.origin import PERSON
from tests.examples import is_full_run
from tests.forked import forking

OLD, OTHER = "The API listens on port 8080.", "Anna owns billing."
NEW = "The API listens on port 8080. It answers with JSON."


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[memoranda.Memory]:
    """A home with two entries of which the newer one contains the older one, and a third."""
    with memoranda.open(tmp_path / "home") as opened:
        for text in (OLD, OTHER, NEW):
            opened.remember(text)
        yield opened


def _notes(memory: memoranda.Memory) -> list[str]:
    return [found.item.value["text"] for found in memory.items.search((NOTES_NAMESPACE,))]


def test_curate_shows_what_it_would_do(memory: memoranda.Memory) -> None:
    """With the rule, the entries before and after, and a reason; nothing is written."""
    (change,) = memory.curate()["changes"]
    assert change == {
        "rule": "contained",
        "target": "memory",
        "project": "",
        "before": [OLD, NEW],
        "after": [NEW],
        "reason": "The newer entry says all of the older one, and more.",
    }
    assert memory.entries() == (OLD, OTHER, NEW)


def test_what_leaves_the_prompt_is_in_notes(memory: memoranda.Memory) -> None:
    """With where it was, and the journal names it."""
    answer = memory.curate(apply=True)
    assert memory.entries() == (OTHER, NEW)
    (note,) = memory.items.search((NOTES_NAMESPACE,))
    assert (note.item.value["text"], note.item.value["from"]) == (OLD, "memory")
    last = change_history.log(memory.curated)[-1]
    assert answer["applied"] == [last.number]
    assert (last.actor, [edit.before for edit in last.edits if edit.after is None]) == ("curator", [OLD])


def test_what_was_confirmed_later_stays(memory: memoranda.Memory) -> None:
    """A person has said the shorter entry again, after the one that says more."""
    change_history.confirm_entry(memory.curated, ["memory"], OLD, PERSON)
    assert memory.curate()["changes"] == []


def test_a_statement_that_was_said_again_is_history(tmp_path: Path) -> None:
    """Nothing shows it beside the newer one but a search, which says so; an undo makes it an entry like others."""
    with memoranda.open(tmp_path) as memory:
        memory.remember("The API of billing listens on port 8080.")
        memory.remember("The API of billing listens on port 8080. Port 9090 is for staging.")
        memory.curate(apply=True)
        question = "Which port does the API of billing listen on?"
        assert len(memory.recall(question).entries["memory"]) == 1
        (note,) = memory.search(question)["notes"]
        assert (note["text"], "replaced" in note) == ("The API of billing listens on port 8080.", True)
        change_history.undo(memory.curated, None, PERSON)
        assert len(memory.recall(question).entries["memory"]) == 2
        assert _notes(memory) == []


def test_the_memory_of_a_project_is_curated_too(memory: memoranda.Memory) -> None:
    """By itself: an entry of one project says nothing about another."""
    one, two = "project:github.com/acme/one", "project:github.com/acme/two"
    memory.remember(OLD, one)
    memory.remember(NEW, one)
    memory.remember(OLD, two)
    changes = [each for each in memory.curate(apply=True)["changes"] if each["project"]]
    assert [(each["rule"], each["project"]) for each in changes] == [("contained", "github.com/acme/one")]
    left = {target: memory.curated.entries(target) for target in memory.curated.storage.targets()}
    assert [entries for target, entries in left.items() if target.startswith("project:")] == [(NEW,), (OLD,)]


def test_one_undo_takes_a_run_back(memory: memoranda.Memory) -> None:
    """All entries that the run changed in a file."""
    memory.remember("We switched to uv yesterday.")
    memory.remember("Anna owns billing and Ben owns search.")
    before = memory.entries()
    memory.curate(apply=True)
    assert memory.entries() != before
    assert isinstance(change_history.undo(memory.curated, None, PERSON), MemoryReceipt)
    assert memory.entries() == before


def test_a_run_that_changed_everything_finds_nothing_more(memory: memoranda.Memory) -> None:
    """The second run is empty."""
    memory.curate(apply=True)
    assert memory.curate(apply=True)["changes"] == []


def test_an_expired_entry_goes_to_notes(memory: memoranda.Memory) -> None:
    """Its last day is the reason."""
    memory.remember("The freeze is on.", until="2020-01-31")
    changes = memory.curate(apply=True)["changes"]
    assert ("expired", "Its last day was 2020-01-31.") in [(each["rule"], each["reason"]) for each in changes]
    assert "The freeze is on." in _notes(memory)


@pytest.mark.slow
def test_a_full_memory_gives_what_is_of_least_use_to_notes(tmp_path: Path) -> None:
    """Entries that conversations used stay, and so do preferences."""
    with memoranda.open(tmp_path / "home") as memory:
        used = "The deploy target is the heron cluster."
        memory.remember("User prefers short answers.")
        memory.remember(used)
        for number in range(60):
            text = f"Service number{number} is written by team{number}."
            if len("".join(memory.entries())) + len(text) < 1_800:
                memory.remember(text)
        with memory.session() as session, session.turn("Where is the deploy target, the heron cluster?") as turn:
            turn.done("In rack four.")
        rules = {each["rule"] for each in memory.curate(apply=True)["changes"]}
        assert rules == {"full"}
        view = memory.curated.view("memory")
        assert view.used <= 0.8 * view.limit
        assert {used, "User prefers short answers."} <= set(memory.entries())


def test_a_file_that_the_project_no_longer_has_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of its history; one that it never had is left alone."""
    project = tmp_path / "project"
    (project / "tools").mkdir(parents=True)
    (project / "tools" / "release.sh").write_text("exit 0\n")
    git = ["git", "-C", str(project), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"], ["rm", "-q", "tools/release.sh"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.chdir(project)
    with memoranda.open(tmp_path / "home") as memory:
        memory.remember("Publish with tools/release.sh.")
        memory.remember("Publish the docs with tools/never.sh.")
        (change,) = memory.curate()["changes"]
        assert (change["rule"], change["before"]) == ("gone", ["Publish with tools/release.sh."])


@contextmanager
def _before_the_first_note(memory: memoranda.Memory, act: Callable[[], object]) -> Iterator[None]:
    """Something that happens when a run has planned and stores its first note."""
    acts = [act]

    def items() -> Items:
        if acts:
            acts.pop()()
        return memory.sessions.items

    memory.curated.notes = Notes(items)
    yield
    assert not acts
    memory.curated.notes = Notes(lambda: memory.sessions.items)


def test_a_write_during_a_run_wins(memory: memoranda.Memory) -> None:
    """The run plans again on what is there now."""
    port = "The API listens on port 8080. It answers with XML."
    with _before_the_first_note(memory, lambda: memory.curated.replace("memory", NEW, port, PERSON)):
        memory.curate(apply=True)
    assert memory.entries() == (OTHER, port)
    assert change_history.log(memory.curated)[-2].actor == "person"


def test_a_hand_edit_during_a_run_wins_in_every_file(memory: memoranda.Memory) -> None:
    """What a person types into one file is kept, and the others are curated all the same; no note is left over."""
    memory.remember(OLD, "user")
    memory.remember(NEW, "user")
    path = memory.curated.path("memory")
    with _before_the_first_note(memory, lambda: path.write_text(f"{OLD}\n§\nTyped by hand.")):
        memory.curate(apply=True)
    assert (memory.entries(), memory.entries("user")) == ((OLD, "Typed by hand."), (NEW,))
    assert [(note.text, note.owner) for note in Notes(lambda: memory.sessions.items).all()] == [(OLD, "user")]


def test_two_equal_entries_become_one(memory: memoranda.Memory) -> None:
    """As a person may have left them in the file; the next run finds nothing."""
    memory.curated.path("user").write_text(f"{OTHER}\n§\n{OTHER}")
    memory.curate(apply=True)
    assert memory.entries("user") == (OTHER,)
    assert memory.curate()["changes"] == []


def _fill_all(memory: memoranda.Memory) -> None:
    for target in ("user", "project:github.com/acme/one", "project:github.com/acme/two"):
        for text in (OLD, NEW):
            memory.remember(text, target)


def _everything(memory: memoranda.Memory) -> dict[str, tuple[str, ...]]:
    return {target: memory.curated.entries(target) for target in memory.curated.storage.targets()}


def test_one_undo_takes_a_run_over_all_files_back(memory: memoranda.Memory) -> None:
    """Entries and notes are as before, and another undo does the run again."""
    _fill_all(memory)
    before = _everything(memory)
    (number,) = memory.curate(apply=True)["applied"]
    after = _everything(memory)
    assert [len(before[target]) - len(after[target]) for target in before] == [1, 1, 1, 1] and len(_notes(memory)) == 4
    outcome = change_history.undo(memory.curated, None, PERSON)
    assert isinstance(outcome, MemoryReceipt)
    assert (_everything(memory), _notes(memory)) == (before, [])
    assert isinstance(change_history.undo(memory.curated, number, PERSON), MemoryRefusal)
    assert isinstance(change_history.undo(memory.curated, outcome.change, PERSON), MemoryReceipt)
    assert (_everything(memory), len(_notes(memory))) == (after, 4)


def test_an_undo_that_no_longer_fits_one_file_changes_none(memory: memoranda.Memory) -> None:
    """All of a run is taken back, or nothing."""
    _fill_all(memory)
    memory.remember("We switched to uv yesterday.", "user")
    dated = memory.curated.path("user").read_text().split("\n§\n")[-1]
    memory.curated.path("user").write_text(f"{OLD}\n§\n{NEW}\n§\nWe switched to uv yesterday.")
    memory.curate(apply=True)
    memory.curated.remove("user", dated[:20], PERSON)
    before = _everything(memory)
    assert isinstance(change_history.undo(memory.curated, 10, PERSON), MemoryRefusal)
    assert _everything(memory) == before


_STEPS = ("open", "write", "fsync", "replace", "close", "unlink", "ftruncate")


def _curate_until(step: int, home: Path) -> None:
    left = [step]
    with memoranda.open(home) as memory:
        assert memory.curated.entries("memory") and memory.sessions.items.list_items() == []
        for name in _STEPS:
            real = getattr(os, name)

            def dying(*arguments: object, _real: Any = real, **more: object) -> object:
                left[0] -= 1
                if left[0] == 0:
                    os._exit(9)
                return _real(*arguments, **more)

            setattr(os, name, dying)
        os._exit(0 if memory.curate(apply=True)["applied"] else 1)


def _dies_at(step: int, home: Path) -> bool:
    """Curate in a forked process that dies right before its n-th system call; False when it got through."""
    child = os.fork()
    if child == 0:
        try:
            _curate_until(step, home)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 9)
    return status == 9


@pytest.mark.slow
@forking
def test_dying_at_any_step_leaves_the_old_or_the_new_state_of_all_files(tmp_path: Path) -> None:
    """The next one who opens the home sees it; the journal agrees, nothing is left over, and a run completes it.

    `make torture` tries each step, `make test-all` every third.
    """
    made = tmp_path / "made"
    with memoranda.open(made) as memory:
        for target in ("memory", "user", "project:github.com/acme/one"):
            for text in (OLD, NEW):
                memory.remember(text, target)
        memory.sessions.items.put(("x",), "k", 1)
        memory.sessions.items.delete(("x",), "k")
        old = _everything(memory)
    new = {target: (NEW,) for target in old}
    seen = []
    for step in count(1, 1 if is_full_run() else 3):
        home = shutil.copytree(made, tmp_path / str(step))
        if not _dies_at(step, home):
            break
        with memoranda.open(home) as memory:
            found = _everything(memory)
            seen.append(found)
            assert found in (old, new), (step, found)
            assert not memory.curated.storage.leftovers() and memory.curated.journal.find_loss() == ""
            for target in found:
                assert memory.curated.journal.entries_after(target) == list(found[target])
            if step % 4:
                continue
            memory.curate(apply=True)
            assert _everything(memory) == new and len(_notes(memory)) == 3
            assert "outside" not in [change.action for change in memory.curated.journal.changes()]
            assert isinstance(change_history.undo(memory.curated, None, PERSON), MemoryReceipt)
            assert (_everything(memory), _notes(memory)) == (old, [])
    assert old in seen and new in seen


@pytest.mark.parametrize(("mode", "entries"), [("off", 3), ("propose", 3), ("auto", 2)])
def test_the_mode_says_what_happens_after_a_session(tmp_path: Path, mode: str, entries: int) -> None:
    """Only `auto` changes anything, and not twice on one day."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text(f'curate:\n  mode: "{mode}"\n')
    with memoranda.open(home) as memory:
        for text in (OLD, OTHER, NEW):
            memory.remember(text)
        for _ in range(2):
            with memory.session() as session, session.turn("Hello.") as turn:
                turn.done("Hello.")
            assert len(memory.entries()) == entries
            memory.remember(OTHER)


def test_branches_and_commands_that_the_project_no_longer_has_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A branch that was merged and removed, and a target that left the Makefile; a branch that others name stays."""
    project = tmp_path / "project"
    project.mkdir()
    git = ["git", "-C", str(project), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    (project / "Makefile").write_text("check:\n\ttrue\nlegacy:\n\ttrue\n")
    steps = "init -q -b main|add .|commit -qm first|checkout -qb speedup|commit -q --allow-empty -m production"
    for step in f"{steps}|checkout -q main|merge -q --no-ff --no-edit speedup|branch -D speedup".split("|"):
        subprocess.run([*git, *step.split(" ")], check=True, stdout=subprocess.DEVNULL)
    (project / "Makefile").write_text("check:\n\ttrue\n")
    subprocess.run([*git, "commit", "-qam", "second"], check=True)
    monkeypatch.chdir(project)
    texts = ("Work on the speedup branch.", "Run make legacy.", "Run make check.", "Deploy from branch production.")
    with memoranda.open(tmp_path / "home") as memory:
        for text in texts:
            memory.remember(text)
        changes = memory.curate()["changes"]
    assert [(change["rule"], change["before"]) for change in changes] == [("gone", [text]) for text in texts[:2]]


def _ask_about(memory: memoranda.Memory, text: str, times: int) -> None:
    for number in range(times):
        with memory.session() as session, session.turn(f"{text} ({number})") as turn:
            turn.done("I looked it up.")


@pytest.mark.slow
def test_a_note_that_was_used_three_times_in_a_month_comes_back(tmp_path: Path) -> None:
    """To the memory of its project, as a move that one undo takes back; one that was used twice stays a note."""
    project = project_target("github.com/acme/heron")
    used, rare = "The Globex archive is on rack 14.", "The Initech archive is on rack 15."
    with memoranda.open(tmp_path / "home") as memory:
        for text in (used, rare):
            memory.remember(text, project)
            assert memory.curated.notes is not None
            move_entry(memory.curated, project, text, "notes", PERSON)
        _ask_about(memory, "Is Globex still on rack 14?", 3)
        _ask_about(memory, "Is Initech still on rack 15?", 2)
        (change,) = memory.curate()["changes"]
        assert (change["rule"], change["target"], change["before"], change["after"]) == ("used", project, [], [used])
        assert "3 conversations" in change["reason"]
        memory.curate(apply=True)
        assert memory.entries(project) == (used,) and _notes(memory) == [rare]
        assert memory.curate()["changes"] == []
        change_history.undo(memory.curated, None, PERSON)
        assert memory.entries(project) == () and sorted(_notes(memory)) == [used, rare]


@pytest.mark.slow
def test_a_replaced_statement_stays_a_note_when_what_replaced_it_is_gone(memory: memoranda.Memory) -> None:
    """It was wrong before that, however often it is mentioned."""
    memory.curate(apply=True)
    memory.curated.remove("memory", NEW, PERSON)
    _ask_about(memory, "Why was the API on port 8080?", 4)
    assert memory.curate()["changes"] == []


@pytest.mark.slow
def test_a_note_that_a_rule_would_take_out_again_stays_a_note(memory: memoranda.Memory) -> None:
    """However often the old port is mentioned."""
    memory.curate(apply=True)
    assert _notes(memory) == [OLD]
    _ask_about(memory, "Why was the API on port 8080?", 4)
    assert memory.curate()["changes"] == []


@pytest.mark.slow
def test_a_note_without_room_stays_a_note(tmp_path: Path) -> None:
    """The memory would be fuller than 80 %."""
    with memoranda.open(tmp_path / "home") as memory:
        memory.remember("Globex rack 14. " + "x" * 600)
        assert memory.curated.notes is not None
        move_entry(memory.curated, "memory", "Globex", "notes", PERSON)
        memory.remember("User prefers " + "short answers " * 100)
        _ask_about(memory, "Is Globex still on rack 14?", 4)
        assert memory.curate()["changes"] == []
