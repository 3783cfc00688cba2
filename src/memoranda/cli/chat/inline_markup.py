"""Parses the markup inside a line of Markdown while the line is still being written."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import click

_SPECIAL = re.compile(r"[`*_~\[\\]")
_RUN = re.compile(r"(.)\1*")
# Marks that open nothing, because another pair opens before they could be closed.
_REOPENED = re.compile(r"\*\*(?!\*).*?\s\*\*\S|\*(?!\*)[^*]*\*\*\S")
_CODE = re.compile(r"(?P<marks>`+)(?P<text>.+?)(?<!`)(?P=marks)(?!`)")
_LINK = re.compile(r"\[(?P<text>[^\[\]]+)\]\((?P<address>[^()\s]+)\)")
_ESCAPE = re.compile(r"\\(?P<text>[!-/:-@\[-`{-~])")
# A mark without its counterpart delays the text after it, but never more than this.
_MAX_DELAYED_CHARS = 2_000


class Style(NamedTuple):
    """How a piece of text is shown."""

    bold: bool = False
    italic: bool = False
    strike: bool = False
    dim: bool = False
    colour: str | None = None

    def with_bold(self) -> "Style":
        return self._replace(bold=True)

    def with_italic(self) -> "Style":
        return self._replace(italic=True)

    def with_strike(self) -> "Style":
        return self._replace(strike=True)

    def apply(self, text: str) -> str:
        """Returns the text with the escape codes of the style around it."""
        if self == Style() or not text:
            return text
        return click.style(
            text,
            bold=self.bold or None,
            italic=self.italic or None,
            strikethrough=self.strike or None,
            dim=self.dim or None,
            fg=self.colour,
        )


class Span(NamedTuple):
    """A piece of text in one style."""

    text: str
    style: Style


_EMPHASIS = (
    # Not across the beginning of another pair: in "**kwargs and **bold**" only one word is bold.
    (re.compile(r"\*\*(?P<text>[^\s*](?:(?:(?!\s\*\*\S).)*?[^\s])?)\*\*(?!\*)"), Style.with_bold),
    (re.compile(r"(?<!\w)__(?P<text>[^\s_](?:.*?[^\s])?)__(?!\w)"), Style.with_bold),
    (re.compile(r"\*(?P<text>[^\s*](?:[^*]*[^\s*])?)\*(?!\*)"), Style.with_italic),
    (re.compile(r"(?<!\w)_(?P<text>[^\s_](?:[^_]*[^\s_])?)_(?!\w)"), Style.with_italic),
    (re.compile(r"~~(?P<text>[^\s~](?:.*?[^\s])?)~~"), Style.with_strike),
)
PLAIN = Style()
CODE_COLOUR = "cyan"
LINK_COLOUR = "blue"


def parse_inline(text: str, style: Style = PLAIN) -> list[Span]:
    """Returns the spans of a whole text."""
    spans, rest = parse_available(text, style, is_complete=True)
    assert not rest
    return spans


def parse_available(text: str, style: Style = PLAIN, *, is_complete: bool, before: str = "") -> tuple[list[Span], str]:
    """Returns the spans of a text that may continue, and its last part, which cannot be parsed yet.

    `before` is the character before the text, because an underscore inside a word is not markup.
    """
    spans: list[Span] = []
    # One character of context, for the patterns that look at what precedes a mark.
    whole, position = before + text, len(before)
    while position < len(whole):
        special = _SPECIAL.search(whole, position)
        end = special.start() if special else len(whole)
        if end > position:
            spans.append(Span(whole[position:end], style))
        position = end
        if special is None:
            break
        found = _match_markup(whole, position, style)
        if found is not None:
            new_spans, position = found
            spans += new_spans
        elif is_complete or len(whole) - position > _MAX_DELAYED_CHARS or _is_literal(whole, position):
            marks = _RUN.match(whole, position)
            assert marks is not None
            spans.append(Span(marks[0], style))
            position = marks.end()
        else:
            break
    return spans, whole[position:]


def _is_literal(text: str, position: int) -> bool:
    """Whether a mark cannot open anything, for example because a space follows it or it is inside a word."""
    mark, following = text[position], text[position + 1 : position + 2]
    if mark == "\\":
        return bool(following) and not _ESCAPE.match(text, position)
    if mark == "*" and _REOPENED.match(text, position):
        return True
    if mark in "*~" and following.isspace():
        return True
    return mark == "_" and (text[position - 1 : position].isalnum() or following.isspace())


def _match_markup(text: str, position: int, style: Style) -> tuple[list[Span], int] | None:
    """Returns the spans of complete markup at a position and where it ends; None if there is none."""
    if match := _ESCAPE.match(text, position):
        return [Span(match["text"], style)], match.end()
    if match := _CODE.match(text, position):
        return [Span(match["text"].strip() or match["text"], style._replace(colour=CODE_COLOUR))], match.end()
    if match := _LINK.match(text, position):
        return list(_link_spans(match, style)), match.end()
    for pattern, add_style in _EMPHASIS:
        if match := pattern.match(text, position):
            return parse_inline(match["text"], add_style(style)), match.end()
    return None


def _link_spans(match: re.Match[str], style: Style) -> Iterator[Span]:
    yield from parse_inline(match["text"], style._replace(colour=LINK_COLOUR))
    if match["text"] != match["address"]:
        yield Span(f" ({match['address']})", style._replace(dim=True))
