"""The arguments of a caller's own tool are checked against its schema, and the model reads what is wrong."""

import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.agent.tool_dispatch import describe_problems, execute_call
from memoranda.models.model import ToolCall
from memoranda.support.tool import Tool

ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "item": {"type": "string", "minLength": 2},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "size": {"enum": ["small", "large"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "to": {"type": "object", "properties": {"street": {"type": "string"}}, "required": ["street"]},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "price": {"type": ["number", "null"]},
        "kind": {"const": "bread"},
    },
    "required": ["item"],
    "additionalProperties": False,
}


def test_a_wrong_field_is_named_with_what_it_must_be() -> None:
    """Arguments that fit are accepted."""
    rows: list[tuple[dict[str, Any], str]] = [
        ({"item": "rye"}, ""),
        ({"item": "rye", "count": 3.0, "size": "small", "tags": ["a"], "note": None, "price": None}, ""),
        ({"item": "rye", "to": {"street": "Elm", "floor": 2}, "kind": "bread"}, ""),
        ({}, "'item' is missing."),
        ({"item": 5}, "'item' must be a string, not 5."),
        ({"item": "x"}, "'item' must be at least 2 characters, not 1."),
        ({"item": "rye", "count": "three"}, "'count' must be a whole number, not 'three'."),
        ({"item": "rye", "price": 10**400}, ""),
        ({"item": "rye", "price": float("nan")}, "'price' must be a number or null, not nan."),
        ({"item": "rye", "count": True}, "'count' must be a whole number, not True."),
        ({"item": "rye", "count": 10}, "'count' must be at most 9, not 10."),
        ({"item": "rye", "size": "huge"}, "'size' must be one of 'small', 'large', not 'huge'."),
        ({"item": "rye", "tags": ["a", 2]}, "'tags[1]' must be a string, not 2."),
        ({"item": "rye", "tags": "a"}, "'tags' must be a list, not 'a'."),
        ({"item": "rye", "tags": ["a", "b", "c"]}, "'tags' must be at most 2 items, not 3."),
        ({"item": "rye", "to": {}}, "'to.street' is missing."),
        ({"item": "rye", "note": 4}, "'note' must be a string, not 4."),
        ({"item": "rye", "price": "free"}, "'price' must be a number or null, not 'free'."),
        ({"item": "rye", "kind": "cake"}, "'kind' must be 'bread', not 'cake'."),
        ({"itme": "rye"}, "'item' is missing. There is no argument 'itme'. Did you mean 'item'?"),
    ]
    for arguments, problem in rows:
        assert describe_problems(arguments, ORDER) == problem


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_SCHEMA_WORDS = st.sampled_from(["type", "enum", "properties", "required", "items", "anyOf", "minimum", "maxLength"])


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=5), _JSON), st.dictionaries(_SCHEMA_WORDS, _JSON) | _JSON)
def test_the_check_never_raises(arguments: dict[str, Any], schema: Any) -> None:
    """Whatever a model sends and a developer wrote, the answer is a short text."""
    assert isinstance(describe_problems(arguments, schema), str)


def test_a_tool_is_not_called_with_wrong_arguments(caplog: pytest.LogCaptureFixture) -> None:
    """The model reads which field is wrong; no traceback is logged."""
    called: list[Any] = []

    def order(arguments: dict[str, object]) -> dict[str, object]:
        called.append(arguments)
        return {"success": True}

    tool = Tool("order", "Order bread.", ORDER, order)
    with caplog.at_level(logging.DEBUG):
        answer = execute_call(ToolCall("c", "order", json.dumps({"items": "rye"})), [tool])
    assert answer["reason"] == "invalid"
    assert answer["error"].startswith("'item' is missing.")
    assert answer["error"].endswith("order was not called.")
    assert not called
    assert not caplog.records
    assert execute_call(ToolCall("c", "order", json.dumps({"item": "rye"})), [tool])["success"]
