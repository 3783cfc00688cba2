"""Relaxed JSON: plain JSON means the same, what people add is understood, and errors name the line."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.support.relaxed_json import JsonTextError, parse, parse_json5

pytestmark = pytest.mark.slow

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(value=_values, plain=st.booleans(), indent=st.sampled_from([None, 2]))
def test_all_json_is_read_as_json_reads_it(value: Any, plain: bool, indent: int | None) -> None:
    """With escapes and without, on one line or many."""
    assert parse_json5(json.dumps(value, ensure_ascii=plain, indent=indent)) == value


@given(text=st.text(alphabet="{}[]:,'\"\\/*ab1.-+eExu \n", max_size=40) | st.text(max_size=40))
def test_any_other_text_is_refused_and_never_more_than_that(text: str) -> None:
    """A value, or a JsonTextError."""
    try:
        parse_json5(text)
    except JsonTextError as error:
        assert str(error).startswith("line ")


def test_what_people_write_by_hand_is_understood() -> None:
    """Comments, bare keys, single quotes, trailing commas, long strings and other numbers."""
    text = """\ufeff// settings
    { bare: 'it\\'s', /* a
      comment */ $key: [1, .5, +2, -0x1F, 1e3,], "long": 'a\\
b', t: true, n: null, 'q"': "\\x41\\u00e9\\ud83d\\ude00", }"""
    assert parse_json5(text) == {
        "bare": "it's", "$key": [1, 0.5, 2, -31, 1000.0], "long": "ab", "t": True, "n": None, 'q"': "Aé😀",
    }  # fmt: skip


def test_what_is_wrong_is_named_with_its_line() -> None:
    """So that a person finds it."""
    for text, line in [
        ("{\n a: 1,\n b: }", 3),
        ("[1,\n2", 2),
        ('"open\n"', 1),
        ("{a 1}", 1),
        ("1 2", 1),
        ("[" * 500, 1),
        ("\n'\\x4'", 2),
    ]:
        with pytest.raises(JsonTextError, match=f"line {line}: "):
            parse_json5(text)


def test_what_hosts_would_reject_is_rejected_in_their_dialect() -> None:
    """An edit must not write back settings that the host itself cannot read."""
    for text in ["{a: 1}", "{'a': 1}", "[.5]", "[+1]", "[0x1F]", '["a\\\nb"]', "[NaN]", '["\\x41"]']:
        parse_json5(text)
        with pytest.raises(JsonTextError):
            parse(text)


@given(value=_values)
def test_both_dialects_agree_on_plain_json(value: Any) -> None:
    """They differ in what they add, never in what JSON means."""
    text = json.dumps(value)
    assert parse(text).value == parse_json5(text) == value
