"""The running summary: the transcript that it is made from, what it keeps verbatim, its sections, and its text.

A transcript has each message with its id and role, long ones shortened in the middle.

Pinned sentences are the user's standing rules, and open tasks. Patterns find them, not a model, and every later summary
repeats them. An unnecessary sentence costs only a line, so the patterns are broad and the room for pinned sentences is
limited.

The text of a summary in a context is parsed again for the next update.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from memoranda.agent.compression.prompts import FOOTER, HEADER, RULES, SECTIONS, SESSION, TASKS
from memoranda.memory.record.message_rows import text_of
from memoranda.memory.record.rotation import LiveMessage
from memoranda.models.model import Message
from memoranda.models.tokens import estimate_text
from memoranda.safety.fence import quote, screen_transcript, speaker_of
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.shorten import MIDDLE_NOTE, shorten_middle

SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[。！？])|\n+")
_MAX_CHARS_BY_ROLE = {"tool": 2_000}
_MAX_MESSAGE_CHARS = 6_000
_MAX_ARGUMENT_CHARS = 800
# Tokens of the note that says how much was omitted.
_NOTE_TOKENS = 12


def shorten_to_tokens(text: str, tokens: int) -> str:
    """Shortens a text to at most about `tokens` tokens."""
    size = estimate_text(text)
    if size <= tokens:
        return text
    if tokens <= _NOTE_TOKENS * 2:
        return text[: len(text) * max(0, tokens) // size]
    return shorten_middle(text, len(text) * (tokens - _NOTE_TOKENS) // size + len(MIDDLE_NOTE))


def transcript_lines(live: LiveMessage) -> str:
    """One message of the transcript; what would give orders to the model that reads it is withheld."""
    message = live.message
    role = str(message.get("role"))
    speaker = screen_transcript(speaker_of(role, message.get("tool_name")))
    said = shorten_middle(text_of(message.get("content")).strip(), _MAX_CHARS_BY_ROLE.get(role, _MAX_MESSAGE_CHARS))
    calls = "".join(
        f"\n  calls {name} {shorten_middle(arguments, _MAX_ARGUMENT_CHARS)}" for name, arguments in calls_of(message)
    )
    return f"[{live.recorded_id}] {quote(speaker, screen_transcript(said + calls))}"


def calls_of(message: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The name and the arguments of each tool call in a message."""
    calls = message.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
    return [
        (str(function.get("name")), str(function.get("arguments")))
        for function in functions
        if isinstance(function, Mapping)
    ]


def split_transcript(messages: Iterable[LiveMessage], room: int) -> list[str]:
    """The transcript in as few parts as possible, each of at most about `room` tokens."""
    parts: list[str] = []
    lines: list[str] = []
    used = 0
    for live in messages:
        text = transcript_lines(live)
        size = estimate_text(text)
        if lines and used + size > room:
            parts.append("\n\n".join(lines))
            lines, used = [], 0
        lines.append(shorten_to_tokens(text, room))
        used += size
    if lines:
        parts.append("\n\n".join(lines))
    return parts


_MAX_SENTENCE_CHARS = 400
_LONG_MESSAGE = 4_000
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_RULE = re.compile(
    r"(?:^|[,;:–—-]\s*|\b(?:please|you|should|must|to|and|but|we|so|also|i want|that)\s+)(?:always|never)\b"
    r"|\b(?:from now on|going forward|at all times|under no circumstances|in (?:the )?future,|no matter what"
    r"|(?:don'?t|do not) (?:ever|use|touch|change|delete|push|commit|edit|run|modify|ask)\b"
    r"|must (?:not|never|always|be|use|stay|remain|have)|(?:stick|adhere) to|rule:|keep in mind"
    r"|make sure (?:to|that|you)|only ever|whenever you|every time you)"
    r"|\b(?:immer|niemals|ab jetzt|von nun an|auf keinen fall|grundsätzlich)\b"
    r"|\b(?:siempre|nunca|jamás|a partir de ahora)\b|\b(?:toujours|jamais|désormais|à partir de maintenant)\b"
    r"|\b(?:sempre|mai più|d'ora in poi)\b|\b(?:всегда|никогда|отныне)\b"
    r"|总是|永远|从现在|从今以后|始终|务必|一律|不要再|絶対に|必ず|今後は|常に|항상|절대|앞으로는",
    re.IGNORECASE,
)
_TASK = re.compile(
    r"^\s*(?:todo|to do|task|open)\s*:|\b(?:don'?t forget to|remind me to|still (?:need|have|has) to|to be done"
    r"|we still (?:need|have)|left to do)\b|\bnicht vergessen\b|\bnoch zu tun\b|\bpendiente\b|\bà faire\b|待办|别忘了",
    re.IGNORECASE,
)
_BOX = re.compile(r"^\s*(?:[-*+]|\d+[.)])?\s*\[(?P<mark>[ xX✓✔])\]\s*(?P<text>\S.*)$", re.MULTILINE)
_LIST_TOOL = re.compile(r"todo|plan|task", re.IGNORECASE)
_FINISHED = frozenset({"completed", "complete", "done", "cancelled", "canceled", "finished"})


@dataclass(frozen=True, slots=True)
class Pinned:
    """The user's rules, and open tasks as they were written."""

    rules: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()


def find_pinned(messages: Iterable[Message], previous: Pinned, room: int) -> Pinned:
    """The previous pinned sentences and those of the messages; if they exceed `room` tokens, the newest are kept."""
    collector = _PinCollector(previous)
    for message in messages:
        collector.add(message)
    rules, tasks = list(collector.rules), list(collector.tasks)
    return Pinned(_newest_that_fit(rules, room * 2 // 3), _newest_that_fit(tasks, room // 3))


class _PinCollector:
    """Collects pinned sentences, each once, in the order in which they were last mentioned."""

    def __init__(self, previous: Pinned) -> None:
        self.rules = dict.fromkeys(previous.rules)
        self.tasks = dict.fromkeys(previous.tasks)
        self._task_list: list[str] = []

    def add(self, message: Message) -> None:
        text = _CODE.sub("\n", text_of(message.get("content")))
        if message.get("role") == "user":
            self._add_sentences(text)
        if message.get("role") in ("user", "assistant"):
            self._add_checkboxes(text)
        open_items = _open_items(message)
        if open_items is not None:
            self._replace_task_list(open_items)

    def _add_sentences(self, text: str) -> None:
        for sentence in _sentences(text):
            if _RULE.search(sentence):
                _move_to_end(self.rules, sentence)
            elif _TASK.search(sentence):
                _move_to_end(self.tasks, sentence)

    def _add_checkboxes(self, text: str) -> None:
        for match in _BOX.finditer(text):
            task = " ".join(match["text"].split())[:_MAX_SENTENCE_CHARS]
            if match["mark"] == " ":
                _move_to_end(self.tasks, task)
            else:
                self.tasks.pop(task, None)

    def _replace_task_list(self, open_items: list[str]) -> None:
        """A task-list tool sends the whole list in each call."""
        for task in self._task_list:
            self.tasks.pop(task, None)
        self._task_list = open_items
        for task in open_items:
            _move_to_end(self.tasks, task)


def _move_to_end(entries: dict[str, None], text: str) -> None:
    entries.pop(text, None)
    entries[text] = None


def _sentences(text: str) -> Iterator[str]:
    if len(text) > _LONG_MESSAGE:
        # A pasted text: the user's own words are before or after it.
        text = f"{text[: _LONG_MESSAGE // 2]}\n{text[-_LONG_MESSAGE // 2 :]}"
    for sentence in SENTENCE_END.split(text):
        words = " ".join(sentence.split())
        if words and len(words) <= _MAX_SENTENCE_CHARS and not words.startswith((">", "[", "|")):
            yield words


def _open_items(message: Mapping[str, Any]) -> list[str] | None:
    """The open items of a task list that the assistant writes with a tool; None if the message writes no list."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping) and _LIST_TOOL.search(str(function.get("name"))):
            items = _parse_items(function.get("arguments"))
            if items is not None:
                return items
    return None


def _parse_items(arguments: Any) -> list[str] | None:
    try:
        parsed = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return None
    lists = [value for value in parsed.values() if isinstance(value, list)] if isinstance(parsed, dict) else []
    entries = [item for item in lists[0] if isinstance(item, dict)] if lists else []
    if not entries or not all("status" in item for item in entries):
        return None
    texts = []
    for item in entries:
        text = next((item[name] for name in ("content", "step", "text", "title", "task") if item.get(name)), None)
        if isinstance(text, str) and str(item["status"]).casefold() not in _FINISHED:
            texts.append(" ".join(text.split())[:_MAX_SENTENCE_CHARS])
    return texts


def _newest_that_fit(entries: Sequence[str], room: int) -> tuple[str, ...]:
    kept: list[str] = []
    for entry in reversed(entries):
        room -= estimate_text(entry) + 2
        if room < 0:
            break
        kept.append(entry)
    return tuple(reversed(kept))


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
        found = _split(text.removesuffix(FOOTER))
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
