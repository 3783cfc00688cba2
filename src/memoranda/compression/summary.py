"""A running summary: its sections, how it stands in a context, and how it is read back to be updated."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memoranda.compression.pinned import Pinned
from memoranda.compression.prompts import FOOTER, HEADER, RULES, SECTIONS, SESSION, TASKS

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
    """A summary as it stands: what is in it, and which messages it replaces."""

    sections: Sections = field(default_factory=dict)
    pinned: Pinned = field(default_factory=Pinned)
    first_id: int = 0
    last_id: int = 0

    def body(self) -> str:
        """Its sections as text, without what is pinned."""
        return render_sections(self.sections) if self.sections else ""


def parse_sections(text: str) -> dict[str, str] | None:
    """The sections of a text by their names; None when it does not have all of them, or one twice."""
    text = _THINKING.sub("", text)
    if fenced := _FENCE.match(text):
        text = fenced["inside"]
    found = _split(text)
    wanted = [name for name in found if name in SECTIONS]
    if wanted != list(SECTIONS):
        return None
    return {name: found[name] for name in SECTIONS}


def render_sections(sections: Sections) -> str:
    return "\n\n".join(f"## {name}\n{sections.get(name, '').strip() or _NOTHING}" for name in SECTIONS)


def render_summary(running: RunningSummary, session_id: str) -> str:
    """The summary as it stands in a context."""
    session = SESSION.format(session_id=session_id) if session_id else ""
    parts = [
        HEADER.format(first=running.first_id, last=running.last_id, session=session),
        render_sections({name: _harmless(text) for name, text in running.sections.items()}),
    ]
    for name, entries in ((RULES, running.pinned.rules), (TASKS, running.pinned.tasks)):
        if entries:
            parts.append("\n".join([f"## {name}", *(f"- {entry}" for entry in entries)]))
    parts.append(FOOTER)
    return "\n\n".join(parts)


def parse_summaries(texts: Sequence[str]) -> RunningSummary:
    """Earlier summaries as one: usually there is one, and a later one wins where there are more."""
    running = RunningSummary()
    for text in texts:
        found = _split(text.removesuffix(FOOTER))
        span = _RANGE.search(text)
        first, last = (int(span[1]), int(span[2])) if span else (0, 0)
        # A summary that somebody else wrote has no sections of ours; all of it is what is known.
        sections = {name: found[name] for name in SECTIONS if name in found} or {"State": text}
        running = RunningSummary(
            {name: _joined(running.sections.get(name, ""), sections.get(name, "")) for name in SECTIONS},
            Pinned(
                tuple(dict.fromkeys((*running.pinned.rules, *_entries(found.get(RULES, ""))))),
                tuple(dict.fromkeys((*running.pinned.tasks, *_entries(found.get(TASKS, ""))))),
            ),
            min(filter(None, (running.first_id, first)), default=0),
            max(running.last_id, last),
        )
    return running


def _split(text: str) -> dict[str, str]:
    """Everything under a heading of ours, by its name; of one that comes twice nothing, for no order is certain."""
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


def _harmless(text: str) -> str:
    """A section without lines that would read back as the heading of another one."""
    return _HEADING.sub(lambda line: line[0].strip(" \t#*"), text)


def _joined(old: str, new: str) -> str:
    return "\n".join(filter(None, (old, new if new != old else "")))


def _entries(text: str) -> list[str]:
    return [line[2:].strip() for line in text.splitlines() if line.startswith("- ") and line[2:].strip()]
