"""Skills, proposals, facts, items and the links of sessions are the same on all machines."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.external.holographic.fact_store import FactStore
from memoranda.memory.curated.moves import move_entry
from memoranda.memory.curated.operations import Add, MemoryReceipt
from memoranda.memory.curated.settings import CuratedSettings
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.record.health import check
from memoranda.memory.record.rotation import Summary
from memoranda.memory.skills import change_history
from memoranda.memory.skills.store import SkillStore
from memoranda.support.origin import PERSON, Origin
from memoranda.upkeep.sync.conflicts import read_log
from tests.search.past import BEGIN, tell
from tests.upkeep.sync.machines import Machine, bundles, sync_all

_SKILL = "---\nname: {0}\ndescription: How to {0}.\n---\n{1}\n"


def _skills(machine: Machine) -> SkillStore:
    return SkillStore(machine.home / "skills")


def _facts(machine: Machine) -> FactStore:
    store = FactStore(machine.home, "")
    store.refresh()
    return store


@pytest.mark.slow
def test_an_entry_that_was_a_note_meanwhile_keeps_its_facts_on_another_machine(pair: list[Machine]) -> None:
    """The journal there never had it: when it was written, by whom, and its last day come with the note."""
    a, b = pair
    origin = Origin("agent", "s1", explicit=True)
    a.memory.curated.apply("memory", [Add("The office is closed.", until="2031-01-31")], origin)
    (written,) = a.memory.curated.facts("memory")
    assert isinstance(move_entry(a.memory.curated, "memory", "office", "notes", PERSON), MemoryReceipt)
    sync_all(pair)
    assert isinstance(move_entry(b.memory.curated, "notes", "office", "user", PERSON), MemoryReceipt)
    (found,) = b.memory.curated.facts("user")
    assert (found.written, found.actor, found.session, found.until) == (written.written, "agent", "s1", "2031-01-31")
    assert found.confirmed is not None and found.confirmed > written.written


@pytest.mark.slow
def test_skills_travel_with_their_files(pair: list[Machine]) -> None:
    """Also those that a person has copied, scripts that can be executed, changes and removals."""
    a, b = pair
    _skills(a).create("deploy", _SKILL.format("deploy", "Run it."), PERSON)
    script = a.home / "skills" / "ops" / "restart" / "scripts" / "restart.sh"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    (script.parents[1] / "SKILL.md").write_text(_SKILL.format("restart", "Use the script."))
    sync_all(pair, 2)
    assert a.contents() == b.contents()
    assert [skill.name for skill in _skills(b).catalogue().skills] == ["deploy", "restart"]
    _skills(b).edit("deploy", _SKILL.format("deploy", "Run it twice."), PERSON)
    shutil.rmtree(script.parents[1])
    sync_all(pair, 2)
    assert a.contents() == b.contents()
    assert [skill.name for skill in _skills(b).catalogue().skills] == ["deploy"]
    assert a.sync().sent == b.sync().sent == {}


@pytest.mark.slow
def test_of_two_changes_to_a_skill_the_later_wins_and_the_other_can_be_restored(pair: list[Machine]) -> None:
    """The journal of skills has the text that was replaced."""
    a, b = pair
    _skills(a).create("deploy", _SKILL.format("deploy", "Run it."), PERSON)
    sync_all(pair, 2)
    _skills(a).edit("deploy", _SKILL.format("deploy", "First."), PERSON)
    a.sync()
    _skills(b).edit("deploy", _SKILL.format("deploy", "Second."), PERSON)
    sync_all([b, a], 2)
    assert a.contents() == b.contents()
    assert "Second." in (a.home / "skills" / "deploy" / "SKILL.md").read_text()
    assert change_history.log(_skills(a))[-1].actor.startswith("sync:")
    change_history.undo(_skills(a), None, PERSON)
    assert "First." in (a.home / "skills" / "deploy" / "SKILL.md").read_text()


def test_a_skill_that_is_broken_for_a_moment_is_not_removed_elsewhere(pair: list[Machine]) -> None:
    """Its text travels as it is."""
    a, b = pair
    _skills(a).create("deploy", _SKILL.format("deploy", "Run it."), PERSON)
    sync_all(pair, 2)
    (a.home / "skills" / "deploy" / "SKILL.md").write_text("no front matter\n")
    sync_all(pair, 2)
    assert (b.home / "skills" / "deploy" / "SKILL.md").read_text() == "no front matter\n"


@pytest.mark.slow
def test_a_proposal_is_decided_on_either_machine(pair: list[Machine]) -> None:
    """Approved on one, it is an entry on both; rejected on one, it is rejected on both and can be restored."""
    a, b = pair
    asking = MemoryStore(a.home / "memories", CuratedSettings(write_approval="propose"))
    for text in ("Likes tea.", "Likes coffee."):
        asking.apply("memory", [Add(text)], Origin("agent"))
    sync_all(pair, 2)
    tea, coffee = b.memory.curated.proposals.all()
    b.memory.curated.approve(tea)
    b.memory.curated.proposals.reject(coffee)
    sync_all(pair, 2)
    assert a.contents() == b.contents()
    assert a.entries() == {"Likes tea."}
    assert a.memory.curated.proposals.all() == []
    a.memory.curated.proposals.restore(a.memory.curated.proposals.rejected()[0])
    sync_all(pair, 2)
    assert [proposal.id for proposal in b.memory.curated.proposals.all()] == [coffee.id]


@pytest.mark.slow
def test_facts_travel_with_their_trust(pair: list[Machine]) -> None:
    """A fact that is rated or removed on one machine is on the other, and it is found there."""
    a, b = pair
    with closing(_facts(a)) as facts:
        plum, _ = facts.add("The plum tree is in the garden of Ana", category="project", tags=["garden"])
        facts.add("Bob prefers pears")
    sync_all(pair, 2)
    assert a.contents() == b.contents()
    with closing(_facts(b)) as facts:
        (found,) = [fact for fact in facts.list_facts() if fact.content.startswith("Bob")]
        facts.rate(found.fact_id, helpful=True)
    with closing(_facts(a)) as facts:
        facts.remove(plum.fact_id)
    sync_all(pair, 2)
    assert a.contents() == b.contents()
    with closing(_facts(a)) as facts:
        (bob,) = facts.list_facts()
        assert (bob.content, bob.helpful_count) == ("Bob prefers pears", 1)


def _last_days(machine: Machine) -> list[str]:
    return [each.until for each in machine.memory.curated.facts("memory")]


@pytest.mark.slow
def test_the_last_day_of_an_entry_travels(pair: list[Machine]) -> None:
    """With the entry, and when it alone changes or is removed on either machine."""
    a, b = pair
    a.memory.curated.apply("memory", [Add("The office is closed.", until="2031-01-31")], PERSON)
    sync_all(pair, 2)
    assert _last_days(b) == ["2031-01-31"]
    for machine, until, expected in ((b, "2032-02-01", "2032-02-01"), (a, "never", "")):
        machine.memory.curated.apply("memory", [Add("The office is closed.", until=until)], PERSON)
        sync_all(pair, 2)
        assert (_last_days(a), _last_days(b)) == ([expected], [expected])
        assert a.sync().parts_written == b.sync().parts_written == 0


def test_untrusted_sources_of_an_entry_travel(pair: list[Machine]) -> None:
    """The other machine shows them in its prompt, too."""
    a, b = pair
    a.memory.curated.apply("memory", [Add("The plum tree is old.")], Origin("agent", sources=("web_search",)))
    sync_all(pair, 1)
    assert a.memory.curated.journal.sources("memory") == b.memory.curated.journal.sources("memory") != {}


@pytest.mark.slow
@pytest.mark.parametrize("first", ["parent", "child"])
def test_a_child_is_linked_when_its_parent_arrives(pair: list[Machine], tmp_path: Path, first: str) -> None:
    """In whatever order the bundles of two machines arrive at a third."""
    a, b = pair
    tell(a.db, "s1", ["one", "two"])
    sync_all(pair, 1)
    a.db.set_session_archived("s1", True)
    last = b.db.get_messages("s1")[-1]["id"]
    b.db.rotate_session("s1", "s2", [Summary("They talked.")], last_seen=last)
    b.db.create_session("s3", "tool", parent_session_id="s2", started_at=BEGIN + 50)
    sync_all(pair, 2)
    found = sorted(bundles(a.folder), key=lambda path: (path.stem == a.machine_id()) == (first == "child"))
    third = Machine(tmp_path / "c", tmp_path / "elsewhere")
    third.folder.mkdir()
    for path in found:
        shutil.copy(path, third.folder)
        third.sync()
    assert third.contents()["sessions"] == a.contents()["sessions"] == b.contents()["sessions"]
    assert third.db.get_compression_lineage("s1") == ["s1", "s2"]
    assert third.db.get_session("s3")["parent_session_id"] == "s2"
    third.close()


@pytest.mark.slow
def test_of_two_continuations_the_older_one_continues_everywhere(pair: list[Machine]) -> None:
    """The other one is a branch with its own conversation, and what continues it stays with it."""
    a, b = pair
    tell(a.db, "s1", ["one", "two"])
    sync_all(pair, 2)
    for machine, name in ((b, "older"), (a, "newer")):
        last = machine.db.get_messages("s1")[-1]["id"]
        machine.db.rotate_session("s1", name, [Summary("They talked.")], last_seen=last)
    last = a.db.append_message("newer", "user", "more")
    a.db.rotate_session("newer", "newest", [Summary("They talked more.")], last_seen=last)
    sync_all(pair, 2)
    assert a.contents() == b.contents()
    for machine in pair:
        assert machine.db.get_compression_lineage("s1") == ["s1", "older"]
        assert machine.db.get_compression_lineage("newest") == ["newer", "newest"]
        assert machine.db.get_session("newer")["relation"] == "branch"
    a.db.delete_session("older")
    sync_all(pair, 2)
    assert a.contents() == b.contents()


@pytest.mark.slow
def test_messages_that_both_machines_add_are_united(pair: list[Machine]) -> None:
    """Those of each machine stay in their order; the search finds all of them, and nothing is sent twice."""
    a, b = pair
    tell(a.db, "s1", ["one", "two"])
    sync_all(pair, 2)
    for machine, letter in ((a, "a"), (b, "b")):
        machine.db.append_messages("s1", [{"role": "user", "content": f"{letter}{number} plum"} for number in range(3)])
    sync_all(pair, 2)
    assert a.contents() == b.contents()
    for machine in pair:
        texts = [row["content"] for row in machine.db.get_messages("s1")]
        for letter in "ab":
            assert [text for text in texts if text[0] == letter] == [f"{letter}{number} plum" for number in range(3)]
    assert list(check(a.home / "state.db", lambda *_: None)) == []
    assert a.memory.search("b0 plum")["matched"] != "nothing found"
    assert a.sync().sent == b.sync().sent == {}


@pytest.mark.slow
def test_of_two_titles_the_later_stays_and_the_other_is_in_the_log(pair: list[Machine]) -> None:
    """What one machine counts meanwhile does not replace a title, and a change that was known is not in the log."""
    a, b = pair
    tell(a.db, "s1", ["one", "two"])
    sync_all(pair, 2)
    a.db.set_session_title("s1", "Cake")
    b.db.update_token_counts("s1", input_tokens=5)
    sync_all(pair, 2)
    assert (b.db.get_session_title("s1"), a.db.get_session("s1")["input_tokens"]) == ("Cake", 5)
    assert read_log(a.home) == read_log(b.home) == []
    a.db.set_session_title("s1", "Plum cake")
    b.db.set_session_title("s1", "Pie")
    sync_all(pair, 2)
    for machine in pair:
        assert machine.db.get_session_title("s1") == "Pie"
        ((kind, name, lost),) = [(row["kind"], row["name"], row["lost"]) for row in read_log(machine.home)]
        assert (kind, name, lost) == ("label", "s1", {"title": "Plum cake"})
    a.db.delete_session("s1")
    sync_all(pair, 2)
    assert read_log(b.home) == []


@pytest.mark.slow
def test_the_history_of_an_item_has_the_versions_of_both_machines(pair: list[Machine]) -> None:
    """In the order of their times; the latest one is the item."""
    a, b = pair
    a.db.items.put(("n",), "k", {"value": 1})
    sync_all(pair, 2)
    a.db.items.put(("n",), "k", {"value": 2})
    b.db.items.put(("n",), "k", {"value": 3})
    sync_all(pair, 3)
    assert a.contents() == b.contents()
    for machine in pair:
        assert [version.value for version in machine.db.items.history(("n",), "k")] == [
            {"value": 1},
            {"value": 2},
            {"value": 3},
        ]
        assert machine.db.items.get(("n",), "k").value == {"value": 3}
    b.db.items.delete(("n",), "k")
    sync_all(pair, 2)
    assert a.db.items.get(("n",), "k") is None
    assert a.sync().sent == b.sync().sent == {}


def test_an_item_is_sent_only_when_it_changed_here(pair: list[Machine]) -> None:
    """What is the same as before, or came from the other machine, is not sent again."""
    a, b = pair
    for key in ("k1", "k2"):
        a.db.items.put(("n",), key, {"value": 1})
    sync_all(pair, 2)
    assert a.sync().sent == b.sync().sent == {}
    a.db.items.put(("n",), "k2", {"value": 2})
    assert a.sync().sent == {"items": 1}
    assert (b.sync().received, b.report.sent) == ({"items": 1}, {})


def test_a_removed_item_is_removed_elsewhere_unless_it_was_written_since(pair: list[Machine]) -> None:
    """Removed with its history, because its name was forgotten."""
    a, b = pair
    for key in ("zanzibar one", "zanzibar two"):
        a.db.items.put(("n",), key, {"value": 1})
    sync_all(pair, 2)
    a.memory.forget(text="zanzibar")
    b.db.items.put(("n",), "zanzibar two", {"value": 2})
    sync_all(pair, 3)
    assert a.contents() == b.contents()
    assert [item.key for item in b.db.items.list_items(("n",))] == ["zanzibar two"]
    assert a.sync().sent == b.sync().sent == {}
