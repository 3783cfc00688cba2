"""Markdown on a terminal: rendered as it arrives, in pieces of any size, at any width."""

import click
from hypothesis import given
from hypothesis import strategies as st

from memoranda.cli.chat.markdown import MarkdownStream, display_width, wrap_lines
from tests.cases import cases


def _render(text: str, width: int = 80, size: int = 1_000, *, markup: bool = True) -> str:
    stream = MarkdownStream(lambda: width, markup=markup)
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    return "".join(map(stream.feed, pieces)) + stream.finish()


def _show(text: str, width: int = 80, size: int = 1_000, *, markup: bool = True) -> str:
    return click.unstyle(_render(text, width, size, markup=markup))


@cases(
    ("text", "shown"),
    [
        ("# One", "One\n"),
        ("a **b c** d", "a b c d\n"),
        ("`a*b*` and ``", "a*b* and ``\n"),
        ("- one\n  * two\n3. three", "- one\n  * two\n3. three\n"),
        ("> said *it*, see [it](http://x.y)", "> said *it*, see [it](http://x.y)\n"),
        ("use *args and **kwargs", "use *args and **kwargs\n"),
        ("**kwargs and **bold**", "**kwargs and bold\n"),
        ("2 * 3 ** 4, __init__", "2 * 3 ** 4, __init__\n"),
        ("an open `tick and **mark", "an open `tick and **mark\n"),
        ("#hashtag and -1", "#hashtag and -1\n"),
        ("2024 was a year", "2024 was a year\n"),
        ("one\n\ntwo\n", "one\n\ntwo\n"),
        ("| a | **b** |\n|---|---|", "| a | **b** |\n|---|---|\n"),
        ("```\n# no *heading*\n\n``\n```\n**x**", "```\n# no *heading*\n\n``\n```\nx\n"),
        ("~~~\n```\n~~~\nend", "~~~\n```\n~~~\nend\n"),
    ],
)
def test_marks_become_styles_and_other_signs_stay(text: str, shown: str) -> None:
    """Text that only looks like a mark is shown as it is."""
    assert _show(text) == shown


def test_styles_are_those_of_the_marks() -> None:
    """Headings and bold text are bold, code is coloured."""
    assert _render("**a** `c`") == "\x1b[1ma\x1b[0m \x1b[36mc\x1b[0m\n"
    assert _render("# a `b`") == "\x1b[1ma\x1b[0m \x1b[36m\x1b[1mb\x1b[0m\n"
    assert _render("```\nc\n```\nd") == "\x1b[36m```\x1b[0m\n\x1b[36mc\x1b[0m\n\x1b[36m```\x1b[0m\nd\n"


def test_words_are_shown_as_soon_as_they_are_complete() -> None:
    """Only the last word, and text after a mark without its counterpart, waits."""
    stream = MarkdownStream(lambda: 80)
    assert stream.feed("One two thr") == "One two"
    assert stream.feed("ee **bo") == " three"
    assert stream.feed("ld**") == ""
    assert click.unstyle(stream.feed(" x")) == " bold"
    assert stream.finish() == " x\n"


def test_words_are_wrapped_and_items_of_lists_are_indented() -> None:
    """Wide characters take two columns."""
    assert _show("한국어 문장은", 8) == "한국어\n문장은\n"
    assert _show("- a long item", 8) == "- a long\n  item\n"
    assert _show("10. a long item", 10) == "10. a long\n    item\n"


def test_what_does_not_fit_is_left_whole() -> None:
    """An address and a line of code can be copied, because we add no line breaks to them."""
    assert _show("see http://example.com/a/b/c now", 10) == "see\nhttp://example.com/a/b/c now\n"
    code = "x = " + "1 + " * 20 + "1"
    assert _show(f"```\n{code}\n\ty\n```", 10) == f"```\n{code}\n\ty\n```\n"


def test_without_markup_only_words_are_wrapped() -> None:
    """This is the output for NO_COLOR and --plain."""
    text = "# A **title**\n- one item that wraps\n\n```\na b c d e f g h i j k\n```\n| a | b | c | d |\n"
    shown = "# A **title**\n- one item that\n  wraps\n\n```\na b c d e f g h i j k\n```\n| a | b | c | d |\n"
    assert _render(text, 16, markup=False) == shown


@given(st.text("ab *_`~#->|[]()1.\\\n\t喜，", max_size=60), st.integers(1, 7), st.integers(4, 30), st.booleans())
def test_pieces_of_any_size_give_the_same_text(text: str, size: int, width: int, markup: bool) -> None:
    """It does not matter where a stream is split, and no letter is lost."""
    whole = _show(text, width, markup=markup)
    assert _show(text, width, size, markup=markup) == whole
    for letter in "ab喜，":
        assert whole.count(letter) == text.count(letter)


def test_notes_are_wrapped_with_their_indentation_and_colours() -> None:
    """Escape codes take no columns."""
    assert wrap_lines("  one two three", 10) == "  one two\n  three"
    styled = wrap_lines(click.style("one two three", dim=True), 8)
    assert click.unstyle(styled) == "one two\nthree"
    assert display_width(click.style("喜", bold=True)) == 2
