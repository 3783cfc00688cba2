"""JSON settings are changed by the smallest edits, so that unchanged parts keep their bytes and comments."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.integrations.hosts.settings_text import rewrite_json
from memoranda.support.relaxed_json import JsonTextError, parse

pytestmark = pytest.mark.slow

_names = st.text('abc"\\/é中 \n', max_size=4)
_scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | _names
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3), max_leaves=12
)
_objects = st.dictionaries(_names, _values, max_size=4)
_gaps = st.sampled_from(["", " ", "\n", "\n    ", " // a note\n", '/* a, "note": { */', "\t\r\n"])


def _written(value: Any, draw: Any) -> str:
    """A value as a person may write it: with comments and trailing commas anywhere."""

    def gap() -> str:
        return str(draw(_gaps))

    def comma(is_last: bool) -> str:
        return "," if not is_last or draw(st.booleans()) else ""

    if isinstance(value, dict):
        last = len(value) - 1
        inner = [
            f"{gap()}{json.dumps(key)}{gap()}:{gap()}{_written(each, draw)}{gap()}{comma(place == last)}"
            for place, (key, each) in enumerate(value.items())
        ]
        return "{" + "".join(inner) + gap() + "}"
    if isinstance(value, list):
        last = len(value) - 1
        inner = [f"{gap()}{_written(each, draw)}{gap()}{comma(place == last)}" for place, each in enumerate(value)]
        return "[" + "".join(inner) + gap() + "]"
    return json.dumps(value)


@given(st.data(), _objects)
def test_handwritten_json_is_read_by_its_meaning(data: st.DataObject, value: dict[str, Any]) -> None:
    """Comments, blanks and trailing commas change nothing."""
    assert parse(_written(value, data.draw) + data.draw(_gaps)).value == value


@given(st.data(), _objects, _objects)
def test_any_text_can_be_edited_to_any_value(
    data: st.DataObject, value: dict[str, Any], wanted: dict[str, Any]
) -> None:
    """The result has the wanted value, and a second edit changes nothing."""
    text = rewrite_json(_written(value, data.draw), wanted)
    assert parse(text).value == wanted
    assert rewrite_json(text, wanted) == text


@given(st.data(), _objects)
def test_an_added_key_can_be_removed_and_every_comment_stays(data: st.DataObject, value: dict[str, Any]) -> None:
    """Adding a key keeps the text around it, and removing it restores the value."""
    text = _written(value, data.draw)
    added = rewrite_json(text, {**value, "memoranda": {"command": "memoranda", "args": ["mcp"]}})
    assert added.count("note") == text.count("note")
    assert added.startswith(text[: text.rstrip("}").rfind("}")] if "}" in text[:-1] else "{")
    removed = rewrite_json(added, value)
    assert parse(removed).value == value
    assert removed.count("note") == text.count("note")


@given(st.text(max_size=40) | st.text('{}[]",:/* \n\\1atruefals', max_size=40))
def test_text_that_is_not_json_is_refused(text: str) -> None:
    """Valid JSON is read as by the standard library; everything else is JSON with comments, or an error."""
    ours, theirs = _read(parse, text), _read(json.loads, text)
    if ours is None:
        # It takes a few words that are no JSON.
        assert theirs is None or isinstance(theirs[0], float)
    elif theirs is None:
        assert "//" in text or "/*" in text or "," in text or "\ufeff" in text
    else:
        assert ours[0].value == theirs[0]


def _read(how: Callable[[str], Any], text: str) -> tuple[Any] | None:
    try:
        return (how(text),)
    except ValueError:
        return None


def test_a_person_s_file_keeps_its_layout() -> None:
    """Indentation, comments, trailing commas and the order of the keys stay as they are."""
    text = """{
\t// my servers
\t"mcpServers": {
\t\t"other": { "command": "x" }, // keep
\t},
\t"theme": "dark" /* always */
}
"""
    settings = parse(text).value
    servers = {**settings["mcpServers"], "memoranda": {"command": "memoranda", "args": ["mcp"]}}
    added = rewrite_json(text, {**settings, "mcpServers": servers})
    assert added == text.replace(
        '{ "command": "x" }, // keep\n',
        '{ "command": "x" }, // keep\n'
        '\t\t"memoranda": {\n\t\t\t"command": "memoranda",\n\t\t\t"args": [\n\t\t\t\t"mcp"\n\t\t\t]\n\t\t},\n',
    )
    assert rewrite_json(added, settings) == text


def test_a_file_of_one_line_stays_one_line() -> None:
    """And Windows line ends stay Windows line ends."""
    assert rewrite_json('{"a": 1}', {"a": 1, "b": [2]}) == '{"a": 1, "b": [2]}'
    crlf = rewrite_json('{\r\n  "a": 1\r\n}\r\n', {"a": 1, "b": {"c": 2}})
    assert crlf.count("\n") == crlf.count("\r\n") == 6


def test_an_empty_file_becomes_one_with_the_settings() -> None:
    """Blank counts as empty."""
    assert rewrite_json(" \n", {"a": 1}) == '{\n  "a": 1\n}\n'


def test_a_broken_file_is_refused_with_its_line() -> None:
    """So that a person can repair it."""
    with pytest.raises(JsonTextError, match="line 2"):
        parse('{\n  "a" 1\n}')
    with pytest.raises(JsonTextError, match="nested"):
        parse("[" * 5000)
