"""Markdown on a terminal: blocks are complete when the next one begins, and code can be copied."""

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.cli.chat.output import make_printable
from memoranda.cli.chat.terminal import _render, _split_last_block


def _show(text: str, width: int = 40) -> list[str]:
    return [click.unstyle(line).rstrip() for line in _render(text, width)]


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("One par", "One par"),
        ("One.\n\nTwo\nlines", "Two\nlines"),
        ("# Title\nText", "Text"),
        ("- a\n- b\n\n- c", "- a\n- b\n\n- c"),
        ("```\n# no\n\nheading\n", "```\n# no\n\nheading\n"),
        ("```\ncode\n```\nText", "Text"),
        ("| a |\n|---|\n| 1 |\n", "| a |\n|---|\n| 1 |\n"),
    ],
)
def test_a_block_is_complete_when_the_next_one_begins(text: str, last: str) -> None:
    """Until then more text can change it."""
    assert _split_last_block(text) == (text[: len(text) - len(last)], last)


@given(st.text("ab #`-*>|1.\n\t", max_size=80))
def test_no_text_is_lost_between_blocks(text: str) -> None:
    """Whatever a model writes."""
    assert "".join(_split_last_block(text)) == text


def test_marks_become_styles_and_words_are_wrapped() -> None:
    """Headings, bold text and lists; an address stays in sight."""
    assert _show("**One** and `two` words that do not fit on a line") == [
        "One and two words that do not fit on a",
        "line",
    ]
    assert "\x1b[1mOne\x1b[0m" in _render("**One**", 40)[0]
    assert _show("see [it](http://x.example/y)") == ["see it (http://x.example/y)"]


def test_a_line_of_code_stays_as_it_is() -> None:
    """However narrow the terminal is, so that it can be copied."""
    code = "x = " + "1 + " * 20 + "1"
    assert _show(f"```python\n{code}\n    y\n```", 10) == [code, "    y"]


@pytest.mark.parametrize(
    "text", ["a &#8238; b", "`c` &#x9b;31m", "- &#27;]0;owned&#7;", "    code\x1b[31m", "![&#8238;](x)", "<b>&#8238;"]
)
def test_what_a_model_writes_cannot_control_the_terminal(text: str) -> None:
    """Not even as an entity, which stands for any character."""
    shown = "".join(_show(make_printable(text)))
    assert all(char.isprintable() for char in shown)
