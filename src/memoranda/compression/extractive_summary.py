"""A summary without a model: the telling sentences of a conversation, word for word, under the same headings.

It is what remains when a model cannot be asked or answers nonsense. It is poorer than a summary, and never wrong: every
line of it was said.
"""

import re
from collections.abc import Iterable, Sequence

from memoranda.compression.prompts import SECTIONS
from memoranda.compression.summary import Sections
from memoranda.compression.transcript import SENTENCE_END, calls_of, within
from memoranda.llm.tokens import estimate_text
from memoranda.sessions.message_rows import text_of
from memoranda.sessions.rotation import LiveMessage
from memoranda.support.shorten import shorten_end, shorten_middle

_LINE = 220
_LAST_CALLS = 3
_FIRST_REQUEST = 500
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
_TROUBLE = re.compile(
    r"\b(?:error|failed|failure|exception|traceback|denied|not found|timed? ?out|fatal)\b", re.IGNORECASE
)
_PARTICULAR = re.compile(r"\d|[/_`]|[A-Z]{2,}|https?:")
_PATH = re.compile(r"(?<![\w/])(?:~|\.{1,2})?/?(?:[\w.-]+/)+[\w.-]*\w|\b[\w-]+\.[a-z]{1,5}\b(?!\.)")
# How the room is shared out.
_SHARES = {"Goal": 0.15, "Constraints": 0.12, "Decisions": 0.18, "State": 0.32, "Files": 0.11, "Open points": 0.12}


def extract_summary(messages: Sequence[LiveMessage], previous: Sections, room: int) -> dict[str, str]:
    """The sections of a summary of at most about `room` tokens, going on from what was known before."""
    said = [(str(each.message.get("role")), text_of(each.message.get("content"))) for each in messages]
    found = {
        "Goal": _goal(said, bool(previous.get("Goal"))),
        "Constraints": _sentences(said, "user", _CONSTRAINT),
        "Decisions": _sentences(said, "", _DECISION),
        "State": _course(messages, int(room * _SHARES["State"])),
        "Files": _files(messages),
        "Open points": _troubles(said),
    }
    made = {}
    for name in SECTIONS:
        known = [line for line in previous.get(name, "").splitlines() if line.strip()]
        new = [line for line in (f"- {each}" for each in found[name]) if line not in known]
        made[name] = "\n".join(_fitting(known, new, int(room * _SHARES[name]), name == "Goal"))
    return made


def _goal(said: Sequence[tuple[str, str]], known: bool) -> list[str]:
    """What the user asked first, unless that is known, and last."""
    requests = [" ".join(text.split()) for role, text in said if role == "user" and text.strip()]
    chosen = requests[-1:] if known else [*requests[:1], *requests[1:][-1:]]
    return [shorten_middle(text, _FIRST_REQUEST) for text in chosen]


def _sentences(said: Iterable[tuple[str, str]], who: str, sign: re.Pattern[str]) -> list[str]:
    found: dict[str, None] = {}
    for role, text in said:
        if role == who or (not who and role in ("user", "assistant")):
            for sentence in SENTENCE_END.split(text[:20_000]):
                words = " ".join(sentence.split())
                if 10 <= len(words) <= _LINE and sign.search(words):
                    found[words] = None
    return list(found)


def _course(messages: Sequence[LiveMessage], room: int) -> list[str]:
    """What was said and done, a line each; when there is not room for all, of the calls only the last."""
    lines: list[str] = []
    called: list[str] = []
    for live in messages:
        role = live.message.get("role")
        text = text_of(live.message.get("content"))
        if role in ("user", "assistant") and text.strip():
            lines.append(f"[{live.said_as}] {role}: {_telling(text)}")
        calls = calls_of(live.message)
        if calls:
            asked = "; ".join(f"{name} {shorten_end(' '.join(arguments.split()), 80)}" for name, arguments in calls[:3])
            called.append(f"[{live.said_as}] called {shorten_middle(asked, _LINE)}")
            lines.append(called[-1])
    if sum(map(_size, lines)) <= room:
        return lines
    dropped = set(called[:-_LAST_CALLS])
    return [line for line in lines if line not in dropped]


def _telling(text: str) -> str:
    sentences = [" ".join(each.split()) for each in SENTENCE_END.split(text[:20_000]) if each.strip()]
    particular = [each for each in sentences if _PARTICULAR.search(each)]
    return shorten_middle(" ".join((particular or sentences)[:3]), _LINE)


def _files(messages: Sequence[LiveMessage]) -> list[str]:
    found: dict[str, None] = {}
    for live in messages:
        texts = [text_of(live.message.get("content"))[:20_000], *(asked for _, asked in calls_of(live.message))]
        for path in (match[0] for text in texts for match in _PATH.finditer(text)):
            # The latest mention counts.
            found.pop(path, None)
            found[path] = None
    return [path for path in found if 3 < len(path) <= _LINE]


def _troubles(said: Sequence[tuple[str, str]]) -> list[str]:
    """The last things that went wrong, and a question that the assistant asked last."""
    found = []
    for role, text in said:
        if role == "tool" and (match := _TROUBLE.search(text[:20_000])):
            begin = text.rfind("\n", 0, match.start()) + 1
            found.append(shorten_middle(" ".join(text[begin : begin + 400].splitlines()[0].split()), _LINE))
    questions = _sentences([pair for pair in said if pair[0] == "assistant"][-1:], "assistant", re.compile(r"[?？]$"))
    return [*dict.fromkeys(found[-5:]), *questions[-2:]]


def _fitting(known: Sequence[str], new: Sequence[str], room: int, goal: bool) -> list[str]:
    """The newest lines that fit, what was known before and what is new half each; the first goal stays always."""
    first = [within(line, room) for line in (*known, *new)[:1]] if goal else []
    known, new = (known[1:], new) if goal and known else (known, new[1:] if goal else new)
    room -= sum(map(_size, first))
    newest = _latest(new, room - min(room // 2, sum(map(_size, known))))
    return [*first, *_latest(known, room - sum(map(_size, newest))), *newest]


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
