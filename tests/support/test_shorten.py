"""Shortened texts stay within their limit, keep what they should, and say what is missing."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memoranda.support.shorten import shorten_end, shorten_for_json, shorten_middle

pytestmark = pytest.mark.slow

# Texts that are likely to be cut in a bad place: accents, joined emoji, flags, half characters, line ends.
_WHOLE = ["e\u0301", "👩\u200d👩\u200d👧", "👍🏽", "🇩🇪", "❤\ufe0f", "\ud83d\ude00", "षि"]
_PIECES = [*_WHOLE, "a", " ", "\n", "\r\n", "é", "🇫", "\ud800", '"']
_TEXTS = st.text(max_size=60) | st.lists(st.sampled_from(_PIECES), max_size=40).map("".join)
_OMITTED = re.compile(r" \[… ([\d,]+) characters left out …\] ")


@given(_TEXTS, st.integers(-1, 50), st.sampled_from(["…", " …", "...", ""]), st.booleans())
@example("ab cd", 5, "…", False)
@example("ab cd", 4, "…", False)
def test_the_end_is_replaced_by_the_mark_only_when_the_text_is_too_long(
    text: str, limit: int, mark: str, lines: bool
) -> None:
    """A text that fits stays as it is; a longer one keeps its start, and the mark counts towards the limit."""
    shown = shorten_end(text, limit, mark, whole_lines=lines)
    assert len(shown) <= max(0, limit) or shown == text
    if len(text) <= limit:
        assert shown == text
    else:
        assert text.startswith(shown.removesuffix(mark))
        assert shown.endswith(mark) or limit <= len(mark)


@given(_TEXTS, st.integers(0, 80), st.floats(0, 1), st.booleans())
def test_the_middle_says_how_much_was_left_out(text: str, limit: int, share: float, lines: bool) -> None:
    """Start and end stay, and the number between them is what is missing."""
    shown = shorten_middle(text, limit, head_share=share, whole_lines=lines)
    assert len(shown) <= limit or shown == text
    if shown == text:
        return
    note = _OMITTED.search(shown)
    if note is None:
        assert text.startswith(shown)
        return
    head, tail = shown[: note.start()], shown[note.end() :]
    assert text.startswith(head) and text.endswith(tail)
    assert int(note[1].replace(",", "")) == len(text) - len(head) - len(tail)


@given(_TEXTS, st.integers(-5, 90))
def test_a_text_fits_into_its_room_in_json(text: str, room: int) -> None:
    """Escapes count, and what would still have fitted is not dropped, save for a character that cannot be split."""
    shown, size = shorten_for_json(text, room)
    assert text.startswith(shown) and size == len(json.dumps(shown, ensure_ascii=False))
    assert not shown or len(json.dumps(shown, ensure_ascii=False)) <= room
    if text.isascii() and "\r" not in text and shown != text:
        assert len(json.dumps(text[: len(shown) + 1], ensure_ascii=False)) > room


def test_no_character_is_split() -> None:
    """Whatever the limit, a text of one repeated character keeps whole ones only."""
    for character in [*_WHOLE, "\r\n"]:
        text = character * 30
        whole = re.compile(f"(?:{re.escape(character)})*")
        for limit in range(2, 24):
            assert whole.fullmatch(shorten_end(text, limit).removesuffix("…"))
            assert whole.fullmatch(shorten_for_json(text, limit)[0])
            head, _, tail = shorten_middle(text, limit, "|").partition("|")
            assert whole.fullmatch(head) and whole.fullmatch(tail)


def test_a_character_of_very_many_code_points_is_split() -> None:
    """A letter with a thousand accents must not use up the whole limit of a text."""
    assert len(shorten_end("e" + "\u0301" * 1_000, 100)) == 100


def test_whole_lines_are_kept_unless_most_would_be_lost() -> None:
    """A line that was cut off goes, but not when it is more than half of what is left."""
    assert shorten_end("first line\nsecond line\nthird", 26, whole_lines=True) == "first line\nsecond line…"
    assert shorten_end("x\n" + "y" * 50, 20, whole_lines=True) == "x\n" + "y" * 17 + "…"
    assert shorten_middle("one\ntwo\nthree\nfour\nfive", 19, "\n…\n", head_share=0.5, whole_lines=True) == (
        "one\ntwo\n…\nour\nfive"
    )
