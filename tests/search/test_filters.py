"""A filter of the search is described once, and every way to search offers it under the same name."""

from pathlib import Path
from typing import Any, get_type_hints

import pytest

import memoranda
from memoranda.cli.retrieval.search import command
from memoranda.memory.record.schema import FILTERED_COLUMNS
from memoranda.search.request import FILTERS
from memoranda.search.tool import PARAMETERS
from memoranda.types import SearchFilters

NAMES = {each.name for each in FILTERS}


def test_the_tool_the_library_and_the_command_line_offer_every_filter() -> None:
    """The keyword arguments of the library are written out for type checkers, and must name the same filters."""
    assert set(PARAMETERS["properties"]) >= NAMES
    assert set(get_type_hints(SearchFilters)) == NAMES
    assert {parameter.name for parameter in command.params} >= NAMES


def test_http_offers_every_filter() -> None:
    """With the same names, in the body of a search."""
    search = pytest.importorskip("memoranda.service.http.routes.search")
    assert {field.name for field in search.SEARCH.fields} >= NAMES


def test_the_indexes_follow_every_column_that_a_filter_compares() -> None:
    """A column that they do not follow would find nothing."""
    assert {each.column for each in FILTERS if each.column} == set(FILTERED_COLUMNS)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_filter_that_says_nothing_is_no_filter(tmp_path: Path, name: str) -> None:
    """Neither None nor an empty text excludes anything."""
    with memoranda.open(tmp_path) as memory:
        memory.sessions.create_session("s", source="cli")
        memory.sessions.append_message("s", "user", "a heron")
        options: Any = {name: ""}
        assert memory.search("heron", **options)["count"] == 1
        options = {name: None}
        assert memory.search("heron", **options)["count"] == 1


def test_a_search_finds_only_conversations_with_a_model(tmp_path: Path) -> None:
    """A part of its name is enough, also when the conversation changes to another model later."""
    with memoranda.open(tmp_path) as memory:
        for name, model in (("a", "claude-opus-5"), ("b", "gpt-6"), ("c", None)):
            memory.sessions.create_session(name, source="cli", model=model)
            memory.sessions.append_message(name, "user", "a heron")

        def found(**options: Any) -> set[str]:
            return {hit["session_id"] for hit in memory.search("heron", **options)["results"]}

        assert found(model="Opus") == {"a"}
        assert found(model="opus,gpt") == {"a", "b"}
        assert found(model=["gpt"], source="cli") == {"b"}
        assert memory.search("heron", model="llama")["message"] == "No conversation has such a model."
        assert {hit["session_id"] for hit in memory.search(model="gpt")["results"]} == {"b"}
        memory.sessions.update_session("c", model="claude-opus-5")
        assert found(model="opus") == {"a", "c"}
