"""The provider recalls what a turn is about, follows curated memory, and keeps its settings."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import ConfigError, ProviderError
from memoranda.external.holographic import HolographicProvider
from memoranda.external.holographic.user_facts import has_facts

pytestmark = pytest.mark.slow


def _started(home: Path, **settings: Any) -> HolographicProvider:
    made = HolographicProvider(home, settings)
    made.initialize("s1", platform="cli")
    return made


@pytest.fixture
def provider(home: Path) -> Iterator[HolographicProvider]:
    made = _started(home)
    yield made
    made.shutdown()


def _add(provider: HolographicProvider, *texts: str) -> None:
    for text in texts:
        provider.handle_tool_call("fact_store", {"action": "add", "content": text})


def _facts(provider: HolographicProvider) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(provider.handle_tool_call("fact_store", {"action": "list"}))["facts"]
    return listed


def _contents(provider: HolographicProvider) -> set[str]:
    return {fact["content"] for fact in _facts(provider)}


def test_a_turn_is_given_what_it_is_about(provider: HolographicProvider) -> None:
    """A line per fact, with age and trust; and the facts are counted."""
    _add(provider, "Ana lives in Berlin", "The release of Atlas is on Friday", "Bob likes tea")
    recalled = provider.prefetch("Where does Ana live?", session_id="s1")
    assert re.fullmatch(r"- Ana lives in Berlin \(today, trust 0\.50, fact 1\)", recalled)
    assert [fact["retrieval_count"] for fact in _facts(provider)] == [0, 0, 1]


def test_a_turn_about_something_else_is_given_nothing(provider: HolographicProvider) -> None:
    """Nothing rather than noise."""
    _add(provider, "Ana lives in Berlin", "The release of Atlas is on Friday")
    for query in ("Please write a sorting function in Rust", "ok thanks", "", "\ud800", "what is the"):
        assert provider.prefetch(query) == ""


def test_a_question_in_other_words_is_given_the_fact(provider: HolographicProvider) -> None:
    """A class stands for its members and a word for its synonyms, where the user asks about the user's own things."""
    _add(provider, "User has a cat named Miso", "User has two children, Leo and Mia", "User studied physics in Vienna")
    assert "Miso" in provider.prefetch("What is the name of my pet?")
    assert "Leo and Mia" in provider.prefetch("How old are my kids?")
    assert "physics" in provider.prefetch("What did I major in at university?")


def test_a_fact_is_recalled_by_the_tags_that_the_model_gave_it(provider: HolographicProvider) -> None:
    """Words that no table connects with the fact; other questions about the user are met with silence."""
    fact = {"action": "add", "content": "Neus designs lighting for the Rialto", "tags": "job, profession, theatre"}
    provider.handle_tool_call("fact_store", fact)
    provider.handle_tool_call("fact_store", {"action": "add", "content": "Neus keeps two tortoises"})
    assert provider.prefetch("What is her profession?").startswith("- Neus designs lighting")
    assert not provider.prefetch("What is my favourite theatre play of the last winter season?")


def test_a_prompt_that_asks_nothing_needs_more_than_a_related_word(provider: HolographicProvider) -> None:
    """Related words alone are too weak for a request."""
    _add(provider, "User has a cat named Miso")
    assert provider.prefetch("Draw a small animal in the corner of the page") == ""


def test_a_number_alone_recalls_nothing(provider: HolographicProvider) -> None:
    """Nor does a word that says little; with another word both count."""
    _add(provider, "The night train leaves at 12 from platform 45")
    assert provider.prefetch("What is 45 times 12?") == ""
    assert provider.prefetch("Which train leaves from 45?") != ""


def test_what_is_asked_is_in_the_last_clause(provider: HolographicProvider) -> None:
    """A statement about the user does not make a general question one about the user."""
    _add(provider, "Spare key is with neighbour Gus")
    assert provider.prefetch("I want to sort a list of dicts by two keys in Python, how?") == ""
    assert "Gus" in provider.prefetch("I am locked out, who has our key?")


def test_an_addition_to_a_question_is_not_a_question(provider: HolographicProvider) -> None:
    """What follows the comma has no question word, so the question before it counts."""
    _add(provider, "The user is a nurse", "Ana has a form")
    assert "nurse" in provider.prefetch("What is my job, for the visa application?")


def test_a_question_about_a_person_without_a_name_is_about_what_the_user_knows(provider: HolographicProvider) -> None:
    """Like a question about the user, it needs less than a general one."""
    _add(provider, "Mother turned seventy in April", "Heike works as a translator")
    assert "seventy" in provider.prefetch("How old is mum these days?")
    assert "translator" in provider.prefetch("What is her profession these days?")


def test_a_question_word_prefers_facts_that_answer_it(provider: HolographicProvider) -> None:
    """Of two facts about one thing, "when" gets the one with a time first, "who" the one with a name."""
    _add(provider, "The backup is checked by Ingrid", "The backup is checked every Tuesday")
    assert "Tuesday" in provider.prefetch("When do we check our backup?").splitlines()[0]
    assert "Ingrid" in provider.prefetch("Who checks our backup?").splitlines()[0]


def test_a_name_that_no_fact_has_counts_against_all_facts(provider: HolographicProvider) -> None:
    """A question about a country does not recall where a relative lives; the same question about the relative does."""
    _add(provider, "Grandma Ilse lives in a care home in Graz")
    assert provider.prefetch("How many people live in Brazil?") == ""
    assert "Graz" in provider.prefetch("In what kind of home does Ilse live?")


def test_a_question_about_the_user_prefers_facts_about_the_user(provider: HolographicProvider) -> None:
    """The newer of two facts that match equally well comes second, if it is about someone else."""
    _add(provider, "The user drinks green tea at night")
    _add(provider, "Bruno drinks black tea at night")
    assert "user" in provider.prefetch("Which tea do I drink at night?").splitlines()[0]


def test_a_name_is_recalled_by_its_other_name(provider: HolographicProvider) -> None:
    """An alias finds the facts, whatever name they contain."""
    _add(provider, "Guido aka BDFL is Dutch", "Guido works on speed")
    assert "Guido works on speed" in provider.prefetch("What does BDFL do these days?")


def test_curated_memory_is_followed(provider: HolographicProvider) -> None:
    """Add, replace and remove, each of which may be delivered twice."""
    for _ in range(2):
        provider.on_memory_write("add", "user", "Prefers dark mode", {"session_id": "s7", "tool_call_id": "c1"})
        provider.on_memory_write("add", "memory", "Atlas listens on port 8080")
    (atlas, dark) = _facts(provider)
    assert (dark["category"], dark["entities"]) == ("user_pref", ["user"])
    assert dark["provenance"] == {"session_id": "s7", "message": "c1", "written_by": "mirror:memory"}
    for _ in range(2):
        provider.on_memory_write("replace", "memory", "Atlas listens on port 9090", {"old_text": "port 8080"})
    assert _contents(provider) == {"Prefers dark mode", "Atlas listens on port 9090"}
    assert [fact["fact_id"] for fact in _facts(provider)] == [atlas["fact_id"], dark["fact_id"]]
    for _ in range(2):
        provider.on_memory_write("remove", "user", "", {"old_text": "dark mode"})
    assert _contents(provider) == {"Atlas listens on port 9090"}


def test_replacing_with_an_existing_text_leaves_one_fact(provider: HolographicProvider) -> None:
    """The outdated copy is removed, the other fact stays."""
    _add(provider, "Atlas listens on port 9090")
    provider.on_memory_write("add", "memory", "Atlas listens on port 8080")
    provider.on_memory_write("replace", "memory", "Atlas listens on port 9090", {"old_text": "8080"})
    assert _contents(provider) == {"Atlas listens on port 9090"}


def test_only_copies_are_removed(provider: HolographicProvider) -> None:
    """A separate fact, or one of the other target, stays although the text is the same."""
    _add(provider, "Ana lives in Berlin")
    provider.on_memory_write("add", "user", "Knows Berlin well")
    provider.on_memory_write("remove", "memory", "", {"old_text": "Berlin"})
    provider.on_memory_write("remove", "memory", "Ana lives in Berlin", {})
    provider.on_memory_write("dance", "memory", "x")
    assert _contents(provider) == {"Ana lives in Berlin", "Knows Berlin well"}


def test_an_unclear_removal_removes_nothing(provider: HolographicProvider, caplog: pytest.LogCaptureFixture) -> None:
    """Two copies that might be meant both stay, and the log says so; the exact text is clear."""
    provider.on_memory_write("add", "memory", "Atlas runs")
    provider.on_memory_write("add", "memory", "Atlas runs fast")
    provider.on_memory_write("remove", "memory", "", {"old_text": "Atlas"})
    assert len(_contents(provider)) == 2
    assert "mirror an entry" in caplog.text
    provider.on_memory_write("remove", "memory", "", {"old_text": "Atlas runs"})
    assert _contents(provider) == {"Atlas runs fast"}


MESSAGES = [
    {"role": "user", "content": "I need help. I prefer tabs over spaces.", "id": "m1"},
    {"role": "assistant", "content": "I prefer spaces."},
]


def test_nothing_is_extracted_unless_asked_for(provider: HolographicProvider) -> None:
    """It is off by default."""
    provider.on_session_end(MESSAGES, session_id="s1")
    assert _facts(provider) == []


def test_statements_are_extracted_with_their_provenance(home: Path) -> None:
    """Once, however often the end of the session is delivered; requests are not kept."""
    provider = _started(home, auto_extract="true")
    provider.on_session_switch("s2", reset=True)
    for _ in range(2):
        provider.on_session_end(MESSAGES)
    (fact,) = _facts(provider)
    provider.shutdown()
    assert fact["content"] == 'The user said: "I prefer tabs over spaces."'
    assert (fact["category"], fact["entities"]) == ("user_pref", ["user"])
    assert fact["provenance"] == {"session_id": "s2", "message": "m1", "written_by": "extraction"}


def test_settings_are_kept_with_their_types(home: Path) -> None:
    """Text from a form gets the type of the schema, and survives a restart."""
    provider = HolographicProvider(home)
    kinds = {field["key"]: type(field["default"]) for field in provider.get_config_schema()}
    provider.save_config({"auto_extract": "false", "dimension": "512", "half_life_days": "30"}, str(home))
    saved = json.loads((home / "providers" / "holographic.json").read_text())
    assert saved == {"auto_extract": False, "dimension": 512, "half_life_days": 30.0}
    assert all(type(value) is kinds[key] for key, value in saved.items())
    provider.initialize("s1", hermes_home=str(home))
    provider.on_session_end(MESSAGES)
    assert _facts(provider) == []
    provider.shutdown()


@pytest.mark.parametrize(
    "values", [{"dimension": 3}, {"auto_extract": "perhaps"}, {"min_trust": "x"}, {"dimension": 300.5}]
)
def test_settings_that_cannot_be_are_refused(home: Path, values: dict[str, Any]) -> None:
    """Nothing is saved."""
    with pytest.raises(ConfigError):
        HolographicProvider(home).save_config(values, str(home))
    assert list(home.iterdir()) == []


def test_the_home_may_come_with_the_start(home: Path) -> None:
    """From the manager's facts; without any home the start fails with words, and a delivery waits."""
    provider = HolographicProvider()
    with pytest.raises(ProviderError):
        provider.initialize("s1")
    with pytest.raises(ProviderError):
        provider.on_memory_write("add", "memory", "x")
    assert provider.prefetch("x") == ""
    provider.initialize("s1", hermes_home=str(home))
    _add(provider, "Ana lives in Berlin")
    provider.shutdown()
    assert has_facts(home, "")


def test_the_model_gets_both_tools(provider: HolographicProvider) -> None:
    """Each has a name, a description and a JSON schema."""
    assert (provider.name, provider.is_available()) == ("holographic", True)
    assert "fact_store" in provider.system_prompt_block()
    store, feedback = provider.get_tool_schemas()
    assert (store["name"], feedback["name"]) == ("fact_store", "fact_feedback")
    assert set(store["parameters"]["properties"]) == {
        "action", "content", "query", "entity", "entities", "fact_id", "category", "tags", "trust_delta", "min_trust",
        "limit",
    }  # fmt: skip
    json.dumps([store, feedback])
