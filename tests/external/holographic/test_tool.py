"""The tools answer with one JSON object, whatever they are asked."""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.external.holographic import HolographicProvider
from memoranda.external.holographic.tool import ACTIONS
from tests.examples import examples

pytestmark = pytest.mark.slow


@pytest.fixture
def provider(home: Path) -> Iterator[HolographicProvider]:
    made = HolographicProvider(home)
    made.initialize("s1")
    yield made
    made.shutdown()


def _ask(provider: HolographicProvider, tool: str = "fact_store", **arguments: Any) -> dict[str, Any]:
    answer = json.loads(provider.handle_tool_call(tool, arguments, session_id="s1", tool_call_id="c9"))
    assert isinstance(answer, dict)
    return answer


def test_every_action_has_its_answer(provider: HolographicProvider) -> None:
    """The replies of a fact's whole life."""
    first = _ask(provider, action="add", content="Ana lives in Berlin", category="user_pref", tags="home,city")
    assert first == {"fact_id": 1, "status": "added", "entities": ["Ana", "Berlin"]}
    assert _ask(provider, action="add", content="ana lives in berlin")["status"] == "exists"
    _ask(provider, action="add", content="Ana lives in Tokyo")
    _ask(provider, action="add", content="They met there", entities=["Ana", "Bob"])
    found = _ask(provider, action="search", query="where does Ana live?")
    assert (found["count"], found["results"][0]["content"]) == (2, "Ana lives in Tokyo")
    assert found["results"][0]["provenance"] == {"session_id": "s1", "message": "c9", "written_by": "tool"}
    assert _ask(provider, action="probe", entity="Ana")["count"] == 3
    assert _ask(provider, action="probe", entity="Berln")["taken_for"] == {"Berln": ["Berlin"]}
    related = _ask(provider, action="related", entity="Bob")
    assert [entity["name"] for entity in related["entities"]] == ["Ana"]
    assert _ask(provider, action="reason", entities=["Ana", "Bob"])["results"][0]["content"] == "They met there"
    (pair,) = _ask(provider, action="contradict")["results"]
    assert {pair["fact_a"]["fact_id"], pair["fact_b"]["fact_id"]} == {1, 2}
    updated = _ask(provider, action="update", fact_id="1", content="Ana lived in Berlin", trust_delta=0.2)
    assert (updated["updated"], updated["trust_score"]) == (True, 0.7)
    assert _ask(provider, action="contradict")["count"] == 0
    listed = _ask(provider, action="list", category="user_pref")
    assert [fact["content"] for fact in listed["facts"]] == ["Ana lived in Berlin"]
    assert listed["facts"][0]["retrieval_count"] > 0
    assert _ask(provider, action="remove", fact_id=1)["removed"] is True
    assert _ask(provider, action="remove", fact_id=1) == {"removed": False, "error": "There is no fact 1."}


def test_feedback_moves_trust(provider: HolographicProvider) -> None:
    """And says from where to where."""
    _ask(provider, action="add", content="Ana lives in Berlin")
    answer = _ask(provider, "fact_feedback", action="helpful", fact_id=1)
    assert answer == {"fact_id": 1, "old_trust": 0.5, "new_trust": 0.55, "helpful_count": 1}
    assert _ask(provider, "fact_feedback", action="unhelpful", fact_id=1)["new_trust"] == 0.45
    assert _ask(provider, "fact_feedback", action="helpful", fact_id=7) == {"error": "There is no fact 7."}


def test_a_distrusted_fact_is_no_longer_returned(provider: HolographicProvider) -> None:
    """A lower min_trust returns it."""
    _ask(provider, action="add", content="Ana lives in Berlin")
    _ask(provider, action="update", fact_id=1, trust_delta=-0.3)
    assert _ask(provider, action="probe", entity="Ana")["count"] == 0
    assert _ask(provider, action="probe", entity="Ana", min_trust=0.1)["count"] == 1
    assert _ask(provider, action="list")["count"] == 1


def test_invalid_input_gets_an_explanation(provider: HolographicProvider) -> None:
    """It is one sentence in `error`."""
    rows: list[tuple[dict[str, Any], str]] = [
        ({}, "action must be one of add, search"),
        ({"action": "dance"}, "not 'dance'"),
        ({"action": "add"}, "content is missing"),
        ({"action": "add", "content": "  "}, "content is empty"),
        ({"action": "add", "content": 5}, "content must be text"),
        ({"action": "add", "content": "x" * 5000}, "at most 4000"),
        ({"action": "add", "content": "x", "category": "food"}, "category must be one of"),
        ({"action": "add", "content": "x", "entities": [1]}, "entities must be a list of names"),
        ({"action": "add", "content": "x", "entities": [str(n) for n in range(17)]}, "at most 16"),
        ({"action": "add", "content": "x", "tags": {}}, "tags must be"),
        ({"action": "search"}, "query is missing"),
        ({"action": "probe", "entity": "..."}, "is not a name"),
        ({"action": "reason", "entities": []}, "entities is missing"),
        ({"action": "update", "fact_id": 1}, "There is nothing to update"),
        ({"action": "update", "fact_id": 1, "content": "x"}, "There is no fact 1"),
        ({"action": "update", "fact_id": True, "content": "x"}, "fact_id must be"),
        ({"action": "update", "fact_id": 1, "trust_delta": float("nan")}, "trust_delta must be"),
        ({"action": "remove"}, "fact_id is missing"),
        ({"action": "remove", "fact_id": 2**80}, "fact_id must be"),
        ({"action": "list", "limit": 0}, "limit must be a number at least 1"),
        ({"action": "list", "min_trust": "high"}, "min_trust must be"),
    ]
    for arguments, error in rows:
        assert error in _ask(provider, **arguments)["error"]


def test_changing_a_fact_into_another_is_refused_in_words(provider: HolographicProvider) -> None:
    """The error names the other fact."""
    _ask(provider, action="add", content="Ana lives in Berlin")
    _ask(provider, action="add", content="Ana lives in Tokyo")
    answer = _ask(provider, action="update", fact_id=2, content="Ana lives in Berlin")
    assert answer["error"].startswith("Fact 1 already says that")


def test_unknown_tools_and_closed_facts_are_answered_too(home: Path) -> None:
    """Before the start, after the end, and for tools that are not ours."""
    provider = HolographicProvider(home)
    assert "not open" in _ask(provider, action="list")["error"]
    provider.initialize("s1")
    assert "There is no tool 'other'" in _ask(provider, "other")["error"]
    assert "must be an object" in provider.handle_tool_call("fact_store", [], session_id="")  # type: ignore[arg-type]
    provider.shutdown()
    provider.shutdown()
    assert "not open" in _ask(provider, action="list")["error"]


_anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=60),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_likely = st.sampled_from(
    ['"', "* OR NEAR(", "Ana", "user_%", "\x00", "田中", "aka aka", "\ud800", "1", 1, -1, [], ["Ana"]]
)
_names = st.sampled_from(
    ["content", "query", "entity", "entities", "fact_id", "category", "tags", "trust_delta", "min_trust", "limit"]
)


@pytest.fixture(scope="module")
def lasting() -> Iterator[HolographicProvider]:
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        made = HolographicProvider(Path(name), {"dimension": 256})
        made.initialize("s1")
        yield made
        made.shutdown()


@settings(max_examples=examples(250), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    tool=st.sampled_from(["fact_store", "fact_store", "fact_feedback", "other"]),
    action=st.sampled_from([*ACTIONS, "helpful"]) | _anything,
    arguments=st.dictionaries(_names, _likely | _anything, max_size=6),
)
def test_whatever_is_sent_is_answered_in_json(
    lasting: HolographicProvider, tool: str, action: Any, arguments: dict[str, Any]
) -> None:
    """Never an exception, always an object that can be sent on."""
    answer = lasting.handle_tool_call(tool, arguments | {"action": action})
    answer.encode()
    assert isinstance(json.loads(answer), dict)
