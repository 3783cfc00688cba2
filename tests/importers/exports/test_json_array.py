"""Large JSON lists are read one element at a time; broken elements are reported and cost no other element."""

import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.importers.exports import archives as module
from memoranda.importers.exports.archives import ArrayElement, read_elements
from memoranda.importers.reader_protocol import Problem
from tests.examples import examples

pytestmark = pytest.mark.slow

FILE = Path("conversations.json")
_words = st.text(max_size=12)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | _words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_words, inner, max_size=4),
    max_leaves=12,
)


def read(raw: bytes) -> list[ArrayElement | Problem]:
    return list(read_elements(io.BytesIO(raw), FILE))


def values(raw: bytes) -> list[Any]:
    return [each.value for each in read(raw) if isinstance(each, ArrayElement)]


def problems(raw: bytes) -> list[str]:
    return [each.text for each in read(raw) if isinstance(each, Problem)]


@settings(max_examples=examples(150))
@given(given_values=st.lists(_values, max_size=6), chunk=st.integers(1, 40), indent=st.sampled_from([None, 1]))
def test_a_list_is_read_in_chunks_of_any_size(given_values: list[Any], chunk: int, indent: int | None) -> None:
    """Every element is read once and completely, whatever its size relative to the chunks."""
    raw = json.dumps(given_values, ensure_ascii=False, indent=indent).encode("utf-8", "surrogatepass")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK", chunk)
        assert json.dumps(values(raw)) == json.dumps(json.loads(json.dumps(given_values)))
        assert problems(raw) == []


@settings(max_examples=examples(150))
@given(raw=st.binary(max_size=60) | st.text('[]{},:"\\ax1 \n', max_size=60).map(str.encode), chunk=st.integers(1, 20))
def test_reading_any_bytes_ends(raw: bytes, chunk: int) -> None:
    """Nothing raises, and bytes that are not a complete list have a problem."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK", chunk)
        found = read(raw)
    try:
        whole = json.loads(raw)
    except (ValueError, UnicodeDecodeError):
        # Commas too many are forgiven; everything else that is no JSON is said.
        assert found or not raw.strip(b"[], \t\r\n")
    else:
        assert isinstance(whole, list | dict) or any(isinstance(each, Problem) for each in found)


def test_a_broken_element_is_reported_and_skipped() -> None:
    """The elements before and after it are read; brackets in strings do not matter."""
    raw = b'[{"a": 1},\n {"b": [1, 2,, "]}{["]},\n {"c": 3}]'
    assert values(raw) == [{"a": 1}, {"c": 3}]
    [problem] = [each for each in read(raw) if isinstance(each, Problem)]
    assert problem.line == 2
    assert problem.text.startswith("element 2 of the list is not JSON")


@pytest.mark.parametrize("raw", [b'[a, {"b": 1}]', b'[}, {"b": 1}]', b'[a}, {"b": 1}]'])
def test_stray_text_costs_no_element(raw: bytes) -> None:
    """Stray words and brackets end where the list continues."""
    assert {"b": 1} in values(raw)
    assert problems(raw)


def test_a_truncated_file_is_reported() -> None:
    """Complete elements are read."""
    assert values(b'[{"a": 1}, {"b": 2}') == [{"a": 1}, {"b": 2}]
    assert problems(b'[{"a": 1}, {"b": 2}') == ["the file ends after element 2 of the list, before the list does"]
    [text] = problems(b'[{"a": 1}, {"b": "tw')[:1]
    assert "nothing after it could be read" in text


def test_a_single_object_is_a_list_of_one_or_contains_the_list() -> None:
    """As services and browser extensions write single conversations."""
    assert values(b'{"uuid": "x"}') == [{"uuid": "x"}]
    assert values(b'{"conversations": [{"uuid": "x"}, {"uuid": "y"}]}') == [{"uuid": "x"}, {"uuid": "y"}]


def test_text_that_is_not_a_list_is_a_problem() -> None:
    """An empty file, words, and text after the end."""
    assert problems(b"") == ["the file is empty"]
    assert problems(b"hello") == ["not a JSON list"]
    assert problems(b"[] x") == ["the text after the end of the JSON was not read"]


def test_bytes_that_are_not_utf_8_do_not_end_the_reading() -> None:
    """They are kept, and everything after them is read."""
    found = values(b'\xef\xbb\xbf[{"a": "x\xff"}, {"b": 2}]')
    assert found[0]["a"].encode("utf-8", "surrogateescape") == b"x\xff"
    assert found[1] == {"b": 2}


def test_an_element_that_is_too_large_is_named_and_the_next_one_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs no more memory than is allowed to an element."""
    monkeypatch.setattr(module, "MAX_ELEMENT_CHARS", 10_000)
    monkeypatch.setattr(module, "_CHUNK", 1000)
    raw = json.dumps([{"a": ["x"] * 20_000}, {"b": 2}]).encode()
    assert values(raw) == [{"b": 2}]
    assert "has more than" in problems(raw)[0]


def test_memory_does_not_grow_with_the_file() -> None:
    """Thirty megabytes of small elements need hardly more than a chunk or two."""

    class Endless(io.RawIOBase):
        left = 30_000

        def read(self, size: int = -1) -> bytes:
            if self.left == 30_000:
                self.left -= 1
                return b"[" + one
            if not self.left:
                return b""
            count = min(self.left, 500)
            self.left -= count
            return (b"," + one) * count + (b"]" if not self.left else b"")

    one = json.dumps({"text": "x" * 1000}).encode()
    tracemalloc.start()
    count = sum(isinstance(each, ArrayElement) for each in read_elements(Endless(), FILE))  # type: ignore[arg-type]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 30_000
    assert peak < 10_000_000
