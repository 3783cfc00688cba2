"""Splits a Markdown file into its front matter (YAML between two lines of three dashes at the start) and its body."""

import re
from typing import NamedTuple

_OPENING = re.compile(r"---[ \t]*\n")
_CLOSING = re.compile(r"^---[ \t]*(?:\n|\Z)", re.MULTILINE)


class FrontMatterParts(NamedTuple):
    front_matter: str
    body: str


def split_front_matter(text: str) -> FrontMatterParts | None:
    """The two parts of a text with LF line ends; None when it does not start with front matter."""
    opening = _OPENING.match(text)
    closing = _CLOSING.search(text, opening.end()) if opening else None
    if opening is None or closing is None:
        return None
    return FrontMatterParts(text[opening.end() : closing.start()], text[closing.end() :])
