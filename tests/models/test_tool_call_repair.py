"""Calls that a model got wrong are sent back in a form that services accept, and stay in the record as they were."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.models.sdk_model import repair_call

pytestmark = pytest.mark.slow

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.text(max_size=80) | st.none(), st.text(max_size=40) | _json.map(json.dumps) | st.none())
def test_any_call_becomes_one_that_services_take(name: Any, arguments: Any) -> None:
    """A name of plain characters, and arguments that are a JSON object."""
    call = repair_call({"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}})
    assert _NAME.fullmatch(call["function"]["name"])
    assert isinstance(json.loads(call["function"]["arguments"]), dict)


def test_a_valid_call_is_not_changed() -> None:
    """Every byte stays, because a cached prefix depends on it."""
    good = {"id": "c", "type": "function", "function": {"name": "memory", "arguments": '{"a":  1}'}}
    assert repair_call(good) == good
