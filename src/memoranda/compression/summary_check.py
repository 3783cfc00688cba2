"""Whether what a model wrote is a summary of this conversation: whole, short enough, and not made up."""

import re

from memoranda.compression.summary import parse_sections, render_sections
from memoranda.llm.model import Reply
from memoranda.llm.tokens import estimate_text
from memoranda.safety.fence import strip_recalled_blocks

# A summary may be this much longer than it was asked to be.
_SLACK = 1.6
_FEW = 4
_LEAST_KNOWN_SPECIFICS = 0.5
_LEAST_KNOWN_WORDS = 0.2
# Paths, addresses, versions, identifiers and numbers: what a summary must not invent.
_SPECIFIC = re.compile(r"[\w.~-]*/[\w./~-]{2,}|\b\w+[._-]\w[\w.-]*|\b\d{3,}\b|\b[A-Z]{2,}-?\d+\b")
_WORD = re.compile(r"[^\W\d_]{4,}")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")


def check_summary(reply: Reply, source: str, room: int) -> dict[str, str] | str:
    """The sections of a good summary, or what is wrong with it."""
    if reply.tool_calls:
        return "the model called a tool instead of answering"
    if not reply.text.strip():
        return "the model answered nothing"
    if reply.finish_reason == "length":
        return "the summary was cut off"
    # What was recalled for a turn is no part of the record, and must not become one by way of a summary.
    sections = parse_sections(strip_recalled_blocks(reply.text))
    if sections is None:
        return "the answer does not have the sections of a summary"
    if not sections["Goal"] or not (sections["State"] or sections["Decisions"]):
        return "the summary says neither what is wanted nor what was done"
    body = render_sections(sections)
    if estimate_text(body) > room * _SLACK:
        return "the summary is too long"
    if not is_grounded("\n".join(sections.values()), source):
        return "the summary speaks of things that are not in the conversation"
    return sections


def is_grounded(text: str, source: str) -> bool:
    """Whether the particulars and most words of a text occur in what it is about."""
    there = source.casefold()
    specifics = {found.casefold().strip(".") for found in _SPECIFIC.findall(text)}
    if len(specifics) >= _FEW and _share(specifics, there) < _LEAST_KNOWN_SPECIFICS:
        return False
    folded = text.casefold()
    # The beginning of a word stands for its endings too; writing without spaces goes by pairs.
    words = {word[:5] for word in _WORD.findall(folded) if not _WIDE.search(word)}
    pairs = {folded[place : place + 2] for place in range(len(folded) - 1) if _WIDE.match(folded, place)}
    if bool(pairs) != bool(_WIDE.search(there)):
        # Another script than the conversation's: words tell nothing then.
        return True
    return len(words | pairs) < _FEW or _share(words | pairs, there) >= _LEAST_KNOWN_WORDS


def _share(parts: set[str], source: str) -> float:
    return sum(part in source for part in parts) / len(parts)
