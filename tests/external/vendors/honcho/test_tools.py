"""The tools of Honcho have the names and arguments that models know."""

import pytest

from tests.external.vendors.honcho.double import HonchoDouble
from tests.external.vendors.honcho.home import Home, call_tool, send_turn

pytestmark = pytest.mark.slow


def test_the_tools_have_the_names_and_arguments_that_models_know(home: Home) -> None:
    """Those of the plugins that people used before."""
    schemas = {schema["name"]: set(schema["parameters"]["properties"]) for schema in home.start().get_tool_schemas()}
    assert schemas == {
        "honcho_profile": {"peer", "card"},
        "honcho_search": {"peer", "query", "max_tokens"},
        "honcho_context": {"peer"},
        "honcho_reasoning": {"peer", "query", "reasoning_level"},
        "honcho_conclude": {"peer", "conclusion", "delete_id", "list", "query"},
    }


def test_the_tools_answer(home: Home) -> None:
    """From what was said, concluded and written on the card."""
    provider = home.start()
    send_turn(provider, "I drink green tea.")
    found = call_tool(provider, "honcho_search", query="tea")["results"][0]
    assert {**found, "time": ""} == {"text": "I drink green tea.", "author": "user", "session": "s1", "time": ""}
    assert call_tool(provider, "honcho_profile", card=["Lives in Lisbon"]) == {"card": ["Lives in Lisbon"]}
    context = call_tool(provider, "honcho_context")
    assert "green tea" in context["representation"]
    assert context["card"] == ["Lives in Lisbon"]
    assert context["recent_messages"][0]["text"] == "I drink green tea."
    assert "green tea" in call_tool(provider, "honcho_reasoning", query="What do I drink?")["result"]


def test_an_empty_card_clears_it(home: Home) -> None:
    """An empty list is a value, not a missing one."""
    provider = home.start()
    call_tool(provider, "honcho_profile", card=["Lives in Lisbon"])
    assert call_tool(provider, "honcho_profile", card=[]) == {"card": []}
    assert call_tool(provider, "honcho_profile")["card"] == []


def test_conclusions_are_stored_listed_and_deleted(home: Home) -> None:
    """Exactly one of the three at a time."""
    provider = home.start()
    stored = call_tool(provider, "honcho_conclude", conclusion="Likes chess.")["id"]
    call_tool(provider, "honcho_conclude", conclusion="Owns a bike.")
    assert len(call_tool(provider, "honcho_conclude", list=True)["conclusions"]) == 2
    nearest = call_tool(provider, "honcho_conclude", list=True, query="chess")["conclusions"]
    assert [row["content"] for row in nearest] == ["Likes chess."]
    assert call_tool(provider, "honcho_conclude", delete_id=stored)["result"] == "deleted"
    for wrong in ({}, {"conclusion": "x", "list": True}, {"conclusion": "x", "query": "y"}, {"delete_id": "none"}):
        assert "error" in call_tool(provider, "honcho_conclude", **wrong)


def test_a_session_that_only_reads_cannot_write_with_a_tool(home: Home, double: HonchoDouble) -> None:
    """It can still read."""
    provider = home.start(context="cron")
    for tool, args in (
        ("honcho_profile", {"card": ["x"]}),
        ("honcho_conclude", {"conclusion": "x"}),
        ("honcho_conclude", {"delete_id": "x"}),
    ):
        assert "only the main conversation writes" in call_tool(provider, tool, **args)["error"]
    assert call_tool(provider, "honcho_search", query="x") == {"results": [], "count": 0}
    assert double.stored_texts() == []


def test_nothing_is_known_before_the_first_turn(home: Home) -> None:
    """Peers that do not exist yet are no error."""
    provider = home.start()
    assert provider.prefetch("What do I drink?", session_id="s1") == ""
    assert call_tool(provider, "honcho_profile")["card"] == []
    assert call_tool(provider, "honcho_context")["representation"] == ""
    assert call_tool(provider, "honcho_reasoning", query="Who am I?")["result"] == ""
