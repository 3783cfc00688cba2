"""Updates the running summary with a model, or with an extract if there is no model or it fails.

A model's answer must be a summary of the conversation: complete, short enough, and not invented. The extract quotes the
significant sentences of a conversation under the summary's headings. It is poorer than a model's summary, but it
invents nothing: every line is quoted.
"""

import logging
import re
from collections.abc import Iterable, Sequence

from memoranda.agent.compression.prompts import SECTIONS, SYSTEM, task
from memoranda.agent.compression.settings import CompressionSettings
from memoranda.agent.compression.summary import (
    SENTENCE_END,
    Sections,
    calls_of,
    parse_sections,
    render_sections,
    shorten_to_tokens,
    split_transcript,
)
from memoranda.errors import ModelError
from memoranda.memory.record.message_rows import text_of
from memoranda.memory.record.rotation import LiveMessage
from memoranda.models.model import ChatModel, Reply
from memoranda.models.tokens import estimate_text
from memoranda.safety.fence import quote, screen_transcript, strip_recalled_blocks
from memoranda.safety.fence_tags import escape_tags
from memoranda.safety.withheld_passages import withhold_passages
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.shorten import shorten_end, shorten_middle

# How much longer than requested a summary may be.
_SLACK = 1.6
_MIN_SAMPLE = 4
_MIN_KNOWN_SPECIFICS = 0.5
_MIN_KNOWN_WORDS = 0.2
# Paths, addresses, versions, identifiers and numbers, which a summary must not invent.
_SPECIFIC_WORD = re.compile(r"[\w.~-]*/[\w./~-]{2,}|\b\w+[._-]\w[\w.-]*|\b\d{3,}\b|\b[A-Z]{2,}-?\d+\b")
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
    specifics = {found.casefold().strip(".") for found in _SPECIFIC_WORD.findall(text)}
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


_MAX_LINE_CHARS = 220
_MAX_CALLS = 3
_MAX_REQUEST_CHARS = 500
_DECISION = re.compile(
    r"\b(?:decid\w+|decision|agreed|chose\w*|choose|we(?:'ll| will) (?:use|go|keep)|let'?s (?:use|go|keep|take|do)"
    r"|instead of|settled? on|switch(?:ed)? to|going with|prefer\w*|entschieden|entscheidung|wir nehmen|decidimos"
    r"|décidé)\b|决定|采用|選び|決め",
    re.IGNORECASE,
)
_CONSTRAINT = re.compile(
    r"\b(?:must|only|prefer\w*|require\w*|needs? to|should|limit|at most|at least|deadline|version|without|muss|debe"
    r"|doit)\b|必须|需要|不能",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"\b(?:error|failed|failure|exception|traceback|denied|not found|timed? ?out|fatal)\b", re.IGNORECASE
)
_SPECIFIC = re.compile(r"\d|[/_`]|[A-Z]{2,}|https?:")
_PATH = re.compile(r"(?<![\w/])(?:~|\.{1,2})?/?(?:[\w.-]+/)+[\w.-]*\w|\b[\w-]+\.[a-z]{1,5}\b(?!\.)")
# The share of the room that each section may use.
_SHARES = {"Goal": 0.15, "Constraints": 0.12, "Decisions": 0.18, "State": 0.32, "Files": 0.11, "Open points": 0.12}


def extract_summary(messages: Sequence[LiveMessage], previous: Sections, room: int) -> dict[str, str]:
    """The sections of a summary of at most about `room` tokens, which continues the previous summary."""
    texts = [(str(live.message.get("role")), text_of(live.message.get("content"))) for live in messages]
    found = {
        "Goal": _goal(texts, bool(previous.get("Goal"))),
        "Constraints": _sentences(texts, "user", _CONSTRAINT),
        "Decisions": _sentences(texts, "", _DECISION),
        "State": _timeline(messages, int(room * _SHARES["State"])),
        "Files": _files(messages),
        "Open points": _open_points(texts),
    }
    sections = {}
    for name in SECTIONS:
        old = [line for line in previous.get(name, "").splitlines() if line.strip()]
        new = [line for line in (f"- {text}" for text in found[name]) if line not in old]
        sections[name] = "\n".join(_newest_that_fit(old, new, int(room * _SHARES[name]), name == "Goal"))
    return sections


def _goal(texts: Sequence[tuple[str, str]], has_first: bool) -> list[str]:
    """The user's first request, unless the previous summary has it, and the latest one."""
    requests = [" ".join(text.split()) for role, text in texts if role == "user" and text.strip()]
    chosen = requests[-1:] if has_first else [*requests[:1], *requests[1:][-1:]]
    return [shorten_middle(text, _MAX_REQUEST_CHARS) for text in chosen]


def _sentences(texts: Iterable[tuple[str, str]], speaker: str, pattern: re.Pattern[str]) -> list[str]:
    found: dict[str, None] = {}
    for role, text in texts:
        if role == speaker or (not speaker and role in ("user", "assistant")):
            for sentence in SENTENCE_END.split(text[:20_000]):
                words = " ".join(sentence.split())
                if 10 <= len(words) <= _MAX_LINE_CHARS and pattern.search(words):
                    found[words] = None
    return list(found)


def _timeline(messages: Sequence[LiveMessage], room: int) -> list[str]:
    """One line per message and per tool call; if there is no room for all, only the last calls."""
    lines: list[str] = []
    called: list[str] = []
    for live in messages:
        role = live.message.get("role")
        text = text_of(live.message.get("content"))
        if role in ("user", "assistant") and text.strip():
            lines.append(f"[{live.recorded_id}] {role}: {_significant_sentences(text)}")
        calls = calls_of(live.message)
        if calls:
            text = "; ".join(f"{name} {shorten_end(' '.join(arguments.split()), 80)}" for name, arguments in calls[:3])
            called.append(f"[{live.recorded_id}] called {shorten_middle(text, _MAX_LINE_CHARS)}")
            lines.append(called[-1])
    if sum(map(_size, lines)) <= room:
        return lines
    dropped = set(called[:-_MAX_CALLS])
    return [line for line in lines if line not in dropped]


def _significant_sentences(text: str) -> str:
    sentences = [" ".join(part.split()) for part in SENTENCE_END.split(text[:20_000]) if part.strip()]
    specific = [sentence for sentence in sentences if _SPECIFIC.search(sentence)]
    return shorten_middle(" ".join((specific or sentences)[:3]), _MAX_LINE_CHARS)


def _files(messages: Sequence[LiveMessage]) -> list[str]:
    found: dict[str, None] = {}
    for live in messages:
        texts = [text_of(live.message.get("content"))[:20_000], *(arguments for _, arguments in calls_of(live.message))]
        for path in (match[0] for text in texts for match in _PATH.finditer(text)):
            # Ordered by the latest mention.
            found.pop(path, None)
            found[path] = None
    return [path for path in found if 3 < len(path) <= _MAX_LINE_CHARS]


def _open_points(texts: Sequence[tuple[str, str]]) -> list[str]:
    """The last errors of tools, and the questions of the assistant's last message."""
    found = []
    for role, text in texts:
        if role == "tool" and (match := _ERROR.search(text[:20_000])):
            begin = text.rfind("\n", 0, match.start()) + 1
            found.append(shorten_middle(" ".join(text[begin : begin + 400].splitlines()[0].split()), _MAX_LINE_CHARS))
    questions = _sentences([pair for pair in texts if pair[0] == "assistant"][-1:], "assistant", re.compile(r"[?？]$"))
    return [*dict.fromkeys(found[-5:]), *questions[-2:]]


def _newest_that_fit(old: Sequence[str], new: Sequence[str], room: int, goal: bool) -> list[str]:
    """The newest lines that fit, half of them old and half new; the first goal is always kept."""
    first = [shorten_to_tokens(line, room) for line in (*old, *new)[:1]] if goal else []
    old, new = (old[1:], new) if goal and old else (old, new[1:] if goal else new)
    room -= sum(map(_size, first))
    newest = _latest(new, room - min(room // 2, sum(map(_size, old))))
    return [*first, *_latest(old, room - sum(map(_size, newest))), *newest]


def _latest(lines: Sequence[str], room: int) -> list[str]:
    kept: list[str] = []
    for line in reversed(lines):
        room -= _size(line)
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]


def _size(line: str) -> int:
    return estimate_text(line) + 1


_log = logging.getLogger(__name__)

_TRANSCRIPT_SHARE = 0.6
_MAX_PARTS = 8
_MAX_NOTES_TOKENS = 1_500
# Without a model, the notes may use this share of the room, in addition to the extract.
_NOTES_SHARE = 0.25
_NOTES_LABEL = "From the external memory"
_WORDS_PER_TOKEN = 0.7
# The model may write this many times the room, so that a summary that is a little long is not truncated.
_OUTPUT_FACTOR = 2


@dataclass(frozen=True, slots=True)
class SummaryResult:
    """The new sections; `failure` explains why they are an extract, and is empty if a model wrote them."""

    sections: Sections
    failure: str = ""


class Summariser:
    """Adds messages to a running summary."""

    def __init__(self, model: ChatModel | None, settings: CompressionSettings, room: int) -> None:
        self._model = model
        self._settings = settings
        # A model with a small window can read and write less.
        self._room = room if model is None else min(room, model.window // 10)

    def update(self, messages: Sequence[LiveMessage], previous: Sections, focus: str, notes: str) -> SummaryResult:
        """The sections of the summary with these messages added."""
        if self._model is None:
            return self._extract(messages, previous, notes, "there is no model to ask")
        sections = self._ask(self._model, messages, previous, focus, notes)
        if isinstance(sections, str):
            _log.warning("The summary of a conversation is an extract, because %s.", sections)
            return self._extract(messages, previous, notes, sections)
        return SummaryResult(sections)

    def _extract(self, messages: Sequence[LiveMessage], previous: Sections, notes: str, why: str) -> SummaryResult:
        sections = dict(extract_summary(messages, previous, self._room))
        if lines := self._quote_notes(notes):
            sections["State"] = "\n".join(part for part in (sections.get("State", ""), lines) if part)
        return SummaryResult(sections, why)

    def _quote_notes(self, notes: str) -> str:
        """The notes of the external memory as lines of a section; no model reads them first, so they are scanned."""
        clean = withhold_passages(escape_tags(strip_recalled_blocks(notes))).text
        lines = [" ".join(line.split()) for line in clean.splitlines()]
        quoted = "\n".join(f"- {_NOTES_LABEL}: {line.lstrip('#-* ')}" for line in lines if line.strip("#-* "))
        return shorten_to_tokens(quoted, int(self._room * _NOTES_SHARE)) if quoted else ""

    def _ask(
        self, model: ChatModel, messages: Sequence[LiveMessage], previous: Sections, focus: str, notes: str
    ) -> Sections | str:
        """The sections that the model wrote, or why there are none; a long transcript is summarised in parts."""
        sections = previous
        notes = screen_transcript(shorten_to_tokens(strip_recalled_blocks(notes), _MAX_NOTES_TOKENS))
        notes = quote(_NOTES_LABEL, notes) if notes else ""
        parts = split_transcript(messages, max(200, int(model.window * _TRANSCRIPT_SHARE) - 2 * self._room))
        if len(parts) > _MAX_PARTS:
            return f"its window of {model.window} tokens is too small for the messages to summarise"
        for transcript in parts:
            running = screen_transcript(render_sections(sections)) if sections else ""
            request = task(running, transcript, words=int(self._room * _WORDS_PER_TOKEN), focus=focus, notes=notes)
            try:
                reply = model.reply(
                    SYSTEM, [{"role": "user", "content": request}], max_tokens=self._room * _OUTPUT_FACTOR,
                    deadline=self._settings.deadline_seconds,
                )  # fmt: skip
            except ModelError as error:
                return f"the model failed: {error}"
            checked = check_summary(reply, f"{running}\n{transcript}\n{notes}", self._room)
            if isinstance(checked, str):
                return checked
            sections = checked
        return sections
