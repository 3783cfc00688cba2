"""Checks that a model's answer is a summary of the conversation: complete, short enough, and not invented."""

import re

from memoranda.agent.compression.summary import parse_sections, render_sections
from memoranda.models.model import Reply
from memoranda.models.tokens import estimate_text
from memoranda.safety.fence import strip_recalled_blocks

# How much longer than requested a summary may be.
_SLACK = 1.6
_MIN_SAMPLE = 4
_MIN_KNOWN_SPECIFICS = 0.5
_MIN_KNOWN_WORDS = 0.2
# Paths, addresses, versions, identifiers and numbers, which a summary must not invent.
_SPECIFIC = re.compile(r"[\w.~-]*/[\w./~-]{2,}|\b\w+[._-]\w[\w.-]*|\b\d{3,}\b|\b[A-Z]{2,}-?\d+\b")
_WORD = re.compile(r"[^\W\d_]{4,}")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")


def check_summary(reply: Reply, source: str, room: int) -> dict[str, str] | str:
    """Returns the sections of a valid summary, or the reason why it is invalid."""
    if reply.tool_calls:
        return "the model called a tool instead of answering"
    if not reply.text.strip():
        return "the model answered nothing"
    if reply.finish_reason == "length":
        return "the summary was truncated"
    # Recalled memory is not part of the record, and must not get into it through a summary.
    sections = parse_sections(strip_recalled_blocks(reply.text))
    if sections is None:
        return "the answer does not have the sections of a summary"
    if not sections["Goal"] or not (sections["State"] or sections["Decisions"]):
        return "the summary has no goal, or neither state nor decisions"
    body = render_sections(sections)
    if estimate_text(body) > room * _SLACK:
        return "the summary is too long"
    if not is_grounded("\n".join(sections.values()), source):
        return "the summary mentions things that are not in the conversation"
    return sections


def is_grounded(text: str, source: str) -> bool:
    """Whether the specific terms and enough words of the text occur in the source."""
    folded_source = source.casefold()
    specifics = {found.casefold().strip(".") for found in _SPECIFIC.findall(text)}
    if len(specifics) >= _MIN_SAMPLE and _share(specifics, folded_source) < _MIN_KNOWN_SPECIFICS:
        return False
    folded = text.casefold()
    # The first letters of a word cover its endings; scripts without spaces are compared by pairs of characters.
    words = {word[:5] for word in _WORD.findall(folded) if not _WIDE.search(word)}
    pairs = {folded[index : index + 2] for index in range(len(folded) - 1) if _WIDE.match(folded, index)}
    if bool(pairs) != bool(_WIDE.search(folded_source)):
        # The summary is in another script than the conversation, so words cannot be compared.
        return True
    return len(words | pairs) < _MIN_SAMPLE or _share(words | pairs, folded_source) >= _MIN_KNOWN_WORDS


def _share(parts: set[str], source: str) -> float:
    return sum(part in source for part in parts) / len(parts)
