"""The running summary: its sections, its text in a context, and parsing that text for the next update."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memoranda.agent.compression.pinned import Pinned
from memoranda.agent.compression.prompts import EARLIER_FOOTER, FOOTER, HEADER, RULES, SECTIONS, SESSION, TASKS

_NAMES = {name.casefold(): name for name in (*SECTIONS, RULES, TASKS)}
_HEADING = re.compile(
    rf"^[ \t]*(?:#{{1,6}}[ \t]*|\*\*[ \t]*)(?P<name>{'|'.join(re.escape(name) for name in _NAMES.values())})"
    r"[ \t]*(?:\*\*)?[ \t]*:?[ \t]*(?:\*\*)?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_RANGE = re.compile(r"messages (\d+) to (\d+)")
_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"\A\s*```[a-z]*\n(?P<inside>.*)\n```\s*\Z", re.DOTALL)
_NOTHING = "-"

Sections = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RunningSummary:
    """The content of a summary, and the ids of the first and last message that it replaces."""

    sections: Sections = field(default_factory=dict)
    pinned: Pinned = field(default_factory=Pinned)
    first_id: int = 0
    last_id: int = 0

    def body(self) -> str:
        """The sections as text, without the pinned sentences."""
        return render_sections(self.sections) if self.sections else ""


def parse_sections(text: str) -> dict[str, str] | None:
    """The sections of a text by name; None if one is missing, out of order or occurs twice."""
    text = _THINKING.sub("", text)
    if fenced := _FENCE.match(text):
        text = fenced["inside"]
    found = _split(text)
    if [name for name in found if name in SECTIONS] != list(SECTIONS):
        return None
    return {name: found[name] for name in SECTIONS}


def render_sections(sections: Sections) -> str:
    return "\n\n".join(f"## {name}\n{sections.get(name, '').strip() or _NOTHING}" for name in SECTIONS)


def render_summary(running: RunningSummary, session_id: str) -> str:
    """The text of the summary for a context."""
    session = SESSION.format(session_id=session_id) if session_id else ""
    parts = [
        HEADER.format(first=running.first_id, last=running.last_id, session=session),
        render_sections({name: _without_headings(text) for name, text in running.sections.items()}),
    ]
    for name, entries in ((RULES, running.pinned.rules), (TASKS, running.pinned.tasks)):
        if entries:
            parts.append("\n".join([f"## {name}", *(f"- {entry}" for entry in entries)]))
    parts.append(FOOTER)
    return "\n\n".join(parts)


def split_summary(text: str) -> tuple[str, str, str] | None:
    """The first paragraph of a rendered summary, its body, and its last line; None for any other text."""
    start, _, _ = HEADER.partition("{")
    end = text.find("]\n\n")
    if not text.startswith(start) or end < 0 or not text.endswith(FOOTER):
        return None
    return text[: end + 1], text[end + 1 : -len(FOOTER)], FOOTER


def parse_summaries(texts: Sequence[str]) -> RunningSummary:
    """Parses earlier summaries into one; usually there is one, and a later one wins."""
    running = RunningSummary()
    for text in texts:
        found = _split(text.removesuffix(FOOTER).removesuffix(EARLIER_FOOTER))
        span = _RANGE.search(text)
        first, last = (int(span[1]), int(span[2])) if span else (0, 0)
        # A summary of another program has none of these sections, so all of its text becomes the state.
        sections = {name: found[name] for name in SECTIONS if name in found} or {"State": text}
        running = RunningSummary(
            {name: _join_lines(running.sections.get(name, ""), sections.get(name, "")) for name in SECTIONS},
            Pinned(
                tuple(dict.fromkeys((*running.pinned.rules, *_entries(found.get(RULES, ""))))),
                tuple(dict.fromkeys((*running.pinned.tasks, *_entries(found.get(TASKS, ""))))),
            ),
            min(filter(None, (running.first_id, first)), default=0),
            max(running.last_id, last),
        )
    return running


def _split(text: str) -> dict[str, str]:
    """The text under each known heading; empty if a heading occurs twice, because the order is then unclear."""
    matches = list(_HEADING.finditer(text))
    found: dict[str, str] = {}
    ends = [*(match.start() for match in matches[1:]), len(text)]
    for match, end in zip(matches, ends, strict=False):
        name = _NAMES[match["name"].casefold()]
        if name in found:
            return {}
        inside = text[match.end() : end].strip()
        found[name] = "" if inside in (_NOTHING, "–", "—") else inside
    return found


def _without_headings(text: str) -> str:
    """The section without lines that would be parsed as a heading."""
    return _HEADING.sub(lambda line: line[0].strip(" \t#*"), text)


def _join_lines(old: str, new: str) -> str:
    return "\n".join(filter(None, (old, new if new != old else "")))


def _entries(text: str) -> list[str]:
    return [line[2:].strip() for line in text.splitlines() if line.startswith("- ") and line[2:].strip()]
