"""A text is found however it is written, and replaced with a mark that leaves everything else as it was."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.support.text_matcher import MARK, TextMatcher, byte_pattern

pytestmark = pytest.mark.slow

WAYS = [
    "Zoë Müller",
    "zoë\n  müller",
    "ZOË MÜLLER",
    unicodedata.normalize("NFD", "Zoë Müller"),
    "Zo\u00adë\u00a0Mül\u200bler",
    "Ｚｏë Ｍüller",
]


def test_it_is_found_in_every_way_of_writing() -> None:
    """Case, whitespace, Unicode form, width and invisible characters make no difference."""
    for way in WAYS:
        replaced = TextMatcher(["Zoë  Müller"]).replace(f"Dear {way}, hello")
        assert (replaced.value, replaced.count) == (f"Dear {MARK}, hello", 1)


@pytest.mark.parametrize(
    ("text", "within"), [("Straße", "die STRASSE"), ("ﬁn", "the FIN"), ("한글", "\u1112\u1161\u11ab글")]
)
def test_letters_that_have_several_forms_are_equal(text: str, within: str) -> None:
    """Sharp s, ligatures, and Hangul in parts."""
    assert TextMatcher([text]).found_in(within)


def test_a_part_of_a_word_matches_unless_whole_words_are_wanted() -> None:
    """`Ann` is in `Anna`."""
    assert TextMatcher(["Ann"]).replace("Ann, Anna, ann.").count == 3
    assert TextMatcher(["Ann"], whole_words=True).replace("Ann, Anna, ann.").value == f"{MARK}, Anna, {MARK}."


def test_an_entire_text_matches_only_as_a_whole() -> None:
    """For the text of a message or an entry, which may be a short word."""
    matcher = TextMatcher(["ok"], entire=True)
    assert not matcher.found_in("it is ok")
    assert matcher.replace(" OK \n").value == MARK


def test_texts_within_json_within_json_are_found() -> None:
    """Keys, values and the arguments of a tool call; the JSON stays JSON."""
    inner = json.dumps({"path": "a\nb", "other": [1, None]})
    replaced = TextMatcher(["a b"]).replace_value({"calls": [{"arguments": inner}], "A  b": True})
    assert replaced.count == 2
    assert json.loads(replaced.value["calls"][0]["arguments"]) == {"path": MARK, "other": [1, None]}
    assert replaced.value[MARK] is True


def test_json_text_keeps_its_layout_where_nothing_is_escaped() -> None:
    """Only the passage changes."""
    written = '{\n  "name":   "zorb",\n  "n": 1}'
    assert TextMatcher(["zorb"]).replace_value(written).value == written.replace("zorb", MARK)


def test_a_part_of_the_mark_gets_another_mark() -> None:
    """Otherwise it would be found again for ever."""
    matcher = TextMatcher(["forgotten"])
    assert not matcher.found_in(str(matcher.replace("I have forgotten it").value))


@given(st.text(max_size=40), st.text(min_size=1, max_size=8), st.text(max_size=40))
def test_nothing_is_found_after_a_replacement(before: str, text: str, after: str) -> None:
    """Whatever surrounds it; and text without it stays as it is."""
    matcher = TextMatcher([text])
    if not matcher:
        return
    replaced = matcher.replace(before + text + after)
    if replaced.count:
        assert not matcher.found_in(str(replaced.value)) or matcher.found_in(matcher.mark) or len(text.strip()) < 3
    assert matcher.replace(before).value == before or matcher.found_in(before)


def test_bytes_are_recognised_plain_and_escaped() -> None:
    """As UTF-8, and as JSON in JSON."""
    for way in WAYS[:4]:
        for depth in range(4):
            written = f"Dear {way}, hello"
            for _ in range(depth):
                written = json.dumps([written])
            assert byte_pattern(["Zoë Müller"]).search(written.encode().lower())
            assert not byte_pattern(["Zoë Miller"]).search(written.encode().lower())
