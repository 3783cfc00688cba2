"""The front matter of a Markdown file: YAML between two lines of three dashes at its very beginning."""

import re
from typing import NamedTuple

_OPENING = re.compile(r"---[ \t]*\n")
_CLOSING = re.compile(r"^---[ \t]*(?:\n|\Z)", re.MULTILINE)


class FrontMatterParts(NamedTuple):
    """The YAML and the text that follows it."""

    front_matter: str
    body: str


def split_front_matter(text: str) -> FrontMatterParts | None:
    """A text (line ends LF) in its two parts; None when it does not begin with front matter."""
    opening = _OPENING.match(text)
    closing = _CLOSING.search(text, opening.end()) if opening else None
    if opening is None or closing is None:
        return None
    return FrontMatterParts(text[opening.end() : closing.start()], text[closing.end() :])
