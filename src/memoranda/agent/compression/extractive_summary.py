"""A summary without a model: the significant sentences of a conversation, quoted under the summary's headings.

The summariser uses it when there is no model, or when the model fails. It is poorer than a model's summary, but it
invents nothing: every line is quoted.
"""

import re
from collections.abc import Iterable, Sequence

from memoranda.agent.compression.prompts import SECTIONS
from memoranda.agent.compression.summary import Sections
from memoranda.agent.compression.transcript import SENTENCE_END, calls_of, shorten_to_tokens
from memoranda.memory.record.message_rows import text_of
from memoranda.memory.record.rotation import LiveMessage
from memoranda.models.tokens import estimate_text
from memoranda.support.shorten import shorten_end, shorten_middle

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
