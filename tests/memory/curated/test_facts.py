"""Facts about entries: from the journal, kept when a person edits the file, and followed by the prompt."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from memoranda.memory.curated import change_history
from memoranda.memory.curated.facts import EntryFacts, category_of, parse_until
from memoranda.memory.curated.operations import Add, MemoryReceipt, MemoryRefusal, Put, Replace
from memoranda.memory.curated.relative_time import with_day, without_day
from memoranda.memory.curated.settings import Target
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.tool import MemoryTool
from memoranda.support.origin import PERSON, Origin
from tests.memory.curated.storages import open_store

pytestmark = pytest.mark.slow

_PAST, _FUTURE = "2020-01-31", "2999-01-31"


def _facts(store: MemoryStore, part: str) -> EntryFacts:
    return next(each for each in store.facts("memory") if part in each.entry.text)


def test_the_journal_says_who_wrote_an_entry_where_and_when(store: MemoryStore) -> None:
    """Conversation, message and actor of the change that wrote it."""
    store.add("memory", "CI runs on Debian 12.", Origin("agent", "s1", message=7))
    found = _facts(store, "CI")
    assert (found.actor, found.session, found.message, found.confirmed) == ("agent", "s1", 7, None)
    assert abs(found.written - datetime.now(UTC).timestamp()) < 60


@pytest.mark.about_files
def test_an_edit_by_hand_keeps_the_facts(store: MemoryStore, write: Callable[..., Path]) -> None:
    """Before and after the journal knows of the edit; the reworded entry counts as confirmed."""
    store.apply("memory", [Add("The API is frozen for release 4.", _FUTURE)], Origin("agent", "s1", message=7))
    store.add("memory", "Uses tabs.", Origin("agent", "s2"))
    write("Uses tabs.\n§\nThe public API is frozen for release 4.\n")
    for each in (store, open_store(store.directory)):
        found = _facts(each, "frozen")
        assert (found.until, found.session, found.message) == (_FUTURE, "s1", 7)
        assert found.confirmed is not None and _facts(each, "tabs").session == "s2"
    assert isinstance(store.add("memory", "Another."), MemoryRefusal)
    store.add("memory", "Another.")
    assert _facts(open_store(store.directory), "frozen").until == _FUTURE


@pytest.mark.about_files
def test_an_edit_by_hand_keeps_the_facts_of_an_entry_without_a_last_day(
    store: MemoryStore, write: Callable[..., Path]
) -> None:
    """Who wrote it is that of the wording before."""
    store.add("memory", "Uses tabs.", Origin("agent", "s2"))
    write("Uses tabs everywhere.\n")
    found = _facts(store, "tabs")
    assert (found.actor, found.session) == ("agent", "s2")


def test_an_expired_entry_leaves_the_next_prompt_and_stays_in_the_file(store: MemoryStore) -> None:
    """The tool, which shows the file, names it as expired."""
    store.apply("memory", [Add("The API is frozen.", _PAST), Add("Uses tabs.")], PERSON)
    fresh = open_store(store.directory)
    fresh.load_from_disk()
    block = fresh.format_for_system_prompt("memory") or ""
    assert "Uses tabs." in block and "frozen" not in block
    assert fresh.entries("memory") == ("The API is frozen.", "Uses tabs.")
    assert fresh.valid_entries("memory") == ("Uses tabs.",)
    answer = MemoryTool(fresh, Origin()).call({"target": "memory", "action": "add", "content": "New."})
    assert answer["expired_entries"] == ["The API is frozen."]
    late = MemoryTool(fresh, Origin()).call({"action": "add", "content": "The freeze is on.", "until": _PAST})
    assert late["note"] == "Its last day is over, so no session shows it." and "visible_from" not in late


def test_a_last_day_can_be_changed_and_removed(store: MemoryStore) -> None:
    """By adding the same text again, and by replacing; a reworded entry keeps it, another one does not."""
    store.apply("memory", [Add("The API is frozen now.", _PAST)], PERSON)
    assert isinstance(store.apply("memory", [Add("The API is frozen now.", _FUTURE)], PERSON), MemoryReceipt)
    assert _facts(store, "API").until == _FUTURE
    store.apply("memory", [Replace("frozen", "The API is frozen again.")], PERSON)
    assert _facts(store, "API").until == _FUTURE
    store.apply("memory", [Add("The API is frozen again.", "never")], PERSON)
    assert _facts(store, "API").until == ""
    store.apply("memory", [Replace("frozen", "Anything may change.")], PERSON)
    assert _facts(store, "Anything").until == ""


def test_the_same_text_in_two_files_has_two_last_days(store: MemoryStore) -> None:
    """What is known about the one says nothing about the other."""
    for target in ("memory", "user"):
        store.apply(target, [Add("The API is frozen.")], PERSON)
    store.apply("memory", [Add("The API is frozen.", _PAST)], PERSON)
    change_history.confirm_entry(store, ["user"], "frozen", PERSON)
    for _ in range(2):
        (noted,), (profile,) = store.facts("memory"), store.facts("user")
        assert (noted.until, profile.until) == (_PAST, "")
        assert noted.confirmed is None and profile.confirmed is not None
        change_history.purge(store)


def test_a_last_day_survives_a_purge_and_an_undo(store: MemoryStore) -> None:
    """What was expired does not come back into the prompt."""
    store.apply("memory", [Add("The API is frozen.", _PAST)], PERSON)
    store.remove("memory", "frozen", PERSON)
    change_history.undo(store, None, PERSON)
    assert _facts(store, "API").until == _PAST
    change_history.purge(store, None)
    assert _facts(open_store(store.directory), "API").expired


def test_a_key_replaces_its_earlier_value_without_its_text(store: MemoryStore) -> None:
    """The entry is plain text, which a person may have written too."""
    store.add("user", "Time zone: Europe/London")
    outcome = store.apply("user", [Put("time zone", "Europe/Berlin")], PERSON)
    assert isinstance(outcome, MemoryReceipt)
    assert store.entries("user") == ("time zone: Europe/Berlin",)
    assert (store.get("Time Zone"), store.get("editor")) == ("Europe/Berlin", None)
    change_history.undo(store, None, PERSON)
    assert store.get("time zone") == "Europe/London"


def test_a_keyed_value_is_not_given_after_its_last_day(store: MemoryStore) -> None:
    """The entry is still listed."""
    store.apply("memory", [Put("on call", "Ana", _PAST)], PERSON)
    assert store.get("on call") is None and store.entries("memory") == ("on call: Ana",)


def test_the_tool_takes_a_key_and_a_last_day(store: MemoryStore) -> None:
    """A last day that is no date is refused, and nothing is written."""
    tool = MemoryTool(store, Origin("agent", "s1"))
    call = {"target": "user", "action": "add", "key": "time zone", "content": "Europe/Berlin", "until": _FUTURE}
    assert tool.call(call)["success"]
    assert tool.call(call | {"content": "Asia/Tokyo"})["current_entries"] == ["time zone: Asia/Tokyo"]
    refused = tool.call({"action": "add", "content": "x", "until": "some day"})
    assert refused["reason"] == "invalid" and "some day" in refused["error"] and store.entries("memory") == ()


def test_a_proposal_keeps_the_key_and_the_last_day(store: MemoryStore) -> None:
    """Approval writes them."""
    proposal = store.proposals.add("user", [Put("time zone", "Asia/Tokyo", _FUTURE)], Origin("agent"), [None])
    found = store.proposals.get(proposal.id)
    assert found is not None and isinstance(store.approve(found), MemoryReceipt)
    assert store.get("time zone") == "Asia/Tokyo" and store.facts("user")[0].until == _FUTURE


@pytest.mark.parametrize(
    ("target", "text", "category"),
    [
        ("user", "Prefers short answers.", "preference"),
        ("user", "Name is Ana; works at Acme.", "identity"),
        ("user", "Plays the cello.", "identity"),
        ("memory", "The staging server is down until Friday.", "state"),
        ("memory", "The project uses pytest with xdist.", "convention"),
        ("memory", "Heron is the staging database.", "other"),
    ],
)
def test_the_category_follows_from_the_words(target: Target, text: str, category: str) -> None:
    """No model is asked."""
    assert category_of(target, text) == category


def test_a_last_day_is_a_date_or_a_period() -> None:
    """A time is cut to its day."""
    assert parse_until("2027-01-31T10:00") == "2027-01-31"
    assert parse_until("2w") == (datetime.now(UTC).date() + timedelta(14)).isoformat()
    with pytest.raises(ValueError, match="until must be"):
        parse_until("soon")


def test_the_day_of_writing_is_shown_after_a_word_of_relative_time(store: MemoryStore) -> None:
    """In the prompt and in the tool's answer; the text stays as it was said, and what is shown names its entry."""
    text, plain = "We switched to Fastify yesterday.", "The shop uses Fastify."
    for each in (text, plain):
        store.add("memory", each)
    shown = f"{text} [{date.today().isoformat()}]"
    assert store.entries("memory") == (text, plain) and text in store.path("memory").read_text()
    store.load_from_disk()
    prompt = store.format_for_system_prompt("memory")
    assert prompt is not None and shown in prompt and f"{plain} [" not in prompt
    answer = MemoryTool(store, PERSON).call({"action": "add", "content": "Uses make."})
    assert answer["current_entries"] == [shown, plain, "Uses make."]
    assert isinstance(store.replace("memory", shown, "Fastify 5 is used.", PERSON), MemoryReceipt)
    assert store.entries("memory")[0] == "Fastify 5 is used."


@pytest.mark.parametrize(
    "text",
    [
        *("Ana left last week.", "Seit gestern Node 22.", "Vor zwei Wochen umgezogen.", "Depuis hier, Node 22."),
        *("La semaine prochaine.", "Desde ayer.", "Hace tres días.", "Desde ontem.", "Da ieri.", "Con вчера."),
        *("上周五发布了。", "昨日から。", "어제부터."),
    ],
)
def test_a_day_is_shown_in_every_language(text: str) -> None:
    """Once, and what is shown leads back to the text."""
    shown = with_day(text, 0.0)
    assert (shown, with_day(shown, 86_400.0), without_day(shown)) == (f"{text} [1970-01-01]", shown, text)


@pytest.mark.parametrize("text", ["Uses pnpm.", "Deploys on Fridays.", "Weekly report.", "部署在每周二。"])
def test_what_names_no_relative_time_has_no_day(text: str) -> None:
    """It means the same in a year."""
    assert with_day(text, 0.0) == text


def test_a_day_is_looked_for_in_one_pass() -> None:
    """A text with a long run of blanks is compared without its day, and stays as it is."""
    text = f"a{' ' * 400_000}b"
    assert without_day(text) == text
    assert without_day("Deploys moved yesterday. [2026-11-18]") == "Deploys moved yesterday."
