"""A synthetic corpus of conversations, the same for the same seed, and the same beginning at every size.

Half of the messages are the model's, a quarter users', a quarter tool output; every tenth session is Chinese with Latin
words mixed in. Words follow a Zipf-like curve, sessions have a topic, and some phrases are repeated. There are no
system prompts.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from benchmarks.corpus_words import (
    CHINESE,
    CHINESE_GLUE,
    COMMON,
    EXTENSIONS,
    GLUE,
    LATIN,
    LEVELS,
    RARE,
    TOOLS,
)

SEED = 20
_START = 1_700_000_000.0
_SESSION_EVERY = 7_200.0


@dataclass(frozen=True, slots=True)
class Message:
    """One message, as a caller passes it to a store."""

    role: str
    content: str
    timestamp: float
    tool_name: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None

    @property
    def raw_size(self) -> int:
        """The UTF-8 bytes of content, tool name, and tool calls as JSON."""
        calls = json.dumps(self.tool_calls, ensure_ascii=False) if self.tool_calls else ""
        return len(f"{self.content}{self.tool_name or ''}{calls}".encode())


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    title: str
    source: str
    chinese: bool
    started_at: float
    messages: list[Message]


def corpus(messages: int, seed: int = SEED) -> list[Session]:
    """Generate sessions with exactly this many messages together; the last session may be shorter."""
    sessions: list[Session] = []
    missing = messages
    while missing > 0:
        session = make_session(len(sessions), seed)
        del session.messages[missing:]
        sessions.append(session)
        missing -= len(session.messages)
    return sessions


def _falling_weights(words: list[str], share: float, shift: int) -> Iterator[tuple[str, float]]:
    """Yield the words with weights that fall like 1 / (rank + shift) and add up to `share`."""
    weights = [1 / (rank + shift) for rank in range(len(words))]
    total = sum(weights)
    return ((word, share * weight / total) for word, weight in zip(words, weights, strict=True))


class _Vocabulary:
    """Words with falling weights, drawn many at a time."""

    def __init__(self, *parts: Iterator[tuple[str, float]]) -> None:
        weighted = [pair for part in parts for pair in part]
        self._words = [word for word, _ in weighted]
        self._sums = list(accumulate(weight for _, weight in weighted))

    def draw(self, rng: random.Random, count: int) -> list[str]:
        return rng.choices(self._words, cum_weights=self._sums, k=count)


def _shuffle(words: list[str]) -> list[str]:
    return random.Random(SEED).sample(words, len(words))


def _phrases(words: list[str], count: int, length: int, between: str) -> list[str]:
    rng = random.Random(SEED)
    return [between.join(rng.sample(words, length)) for _ in range(count)]


_INFLECTED = [f"{word}{end}" for end in ("s", "ed", "ing") for word in COMMON]
_PROSE = _Vocabulary(
    _falling_weights(GLUE, 0.56, 4),
    _falling_weights(COMMON, 0.34, 20),
    _falling_weights(_shuffle(_INFLECTED), 0.07, 60),
    _falling_weights(_shuffle(RARE), 0.03, 200),
)
_NAMES = _Vocabulary(_falling_weights(COMMON, 0.85, 30), _falling_weights(_shuffle(RARE), 0.15, 200))
_CHINESE = _Vocabulary(
    _falling_weights(CHINESE_GLUE, 0.36, 5), _falling_weights(CHINESE, 0.58, 15), _falling_weights(LATIN, 0.06, 5)
)
# Phrases: word pairs and triples that are repeated in the same order.
PHRASES = _phrases(COMMON, 300, 3, " ")
CHINESE_PHRASES = _phrases(CHINESE, 150, 2, "")
_PHRASE_WEIGHTS = list(accumulate(1 / (rank + 10) for rank in range(len(PHRASES))))
_CHINESE_PHRASE_WEIGHTS = list(accumulate(1 / (rank + 10) for rank in range(len(CHINESE_PHRASES))))


def make_session(number: int, seed: int = SEED) -> Session:
    """Generate the session with this number; it does not depend on the others."""
    rng = random.Random(f"{seed}/{number}")
    chinese = number % 10 == 7
    writer = _Chinese(rng) if chinese else _English(rng)
    started = _START + number * _SESSION_EVERY
    wanted = min(90, max(4, round(rng.lognormvariate(2.78, 0.6))))
    messages: list[Message] = []
    while len(messages) < wanted:
        messages += _turn(rng, writer, started + 40 * len(messages))
    source = rng.choices(["cli", "telegram", "discord", "cron"], weights=[60, 25, 10, 5])[0]
    return Session(f"s{number:06}", f"{writer.title()} {number}", source, chinese, started, messages[:wanted])


def _turn(rng: random.Random, writer: "_Writer", started: float) -> Iterator[Message]:
    """Generate a turn: a user asks; the model uses up to two tools and answers."""
    yield Message("user", writer.text(_size(rng, 170, 0.9)), started)
    for step in range(rng.choice((0, 0, 0, 1, 1, 1, 2, 2, 2, 2))):
        tool = rng.choice(TOOLS)
        call_id = f"call_{rng.getrandbits(48):012x}"
        calls = [{"id": call_id, "type": "function", "function": {"name": tool, "arguments": writer.arguments(tool)}}]
        text = writer.text(_size(rng, 300, 0.6)) if rng.random() < 0.85 else ""
        yield Message("assistant", text, started + 10 + 10 * step, tool_calls=calls)
        output = _Printer(rng).output(_size(rng, 650, 0.8))
        yield Message("tool", output, started + 15 + 10 * step, tool_name=tool, tool_call_id=call_id)
    yield Message("assistant", writer.text(_size(rng, 720, 0.7)), started + 38)


def _size(rng: random.Random, median: int, spread: float) -> int:
    """Return the length of a message in characters: many are short, a few are long."""
    return min(20_000, int(median * rng.lognormvariate(0.0, spread)))


class _English:
    """Writes prose about the topic of one session."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._topic = _NAMES.draw(rng, 25)

    def text(self, size: int) -> str:
        """Return sentences that repeat a few words of the topic."""
        subject = self._rng.sample(self._topic, 4) + _NAMES.draw(self._rng, 2)
        sentences: list[str] = []
        left = size
        while left > 0:
            sentence = self._sentence(subject)
            sentences.append(sentence)
            left -= len(sentence) + 1
        return " ".join(sentences)

    def title(self) -> str:
        return " ".join(self._topic[:3]).capitalize()

    def arguments(self, tool: str) -> str:
        return json.dumps(_arguments(self._rng, tool, " ".join(self._topic[3:7])))

    def _sentence(self, subject: list[str]) -> str:
        rng = self._rng
        words = _PROSE.draw(rng, rng.randint(5, 17))
        for _ in range(len(words) // 4):
            words[rng.randrange(len(words))] = rng.choice(subject)
        chance = rng.random()
        if chance < 0.20:
            words.insert(rng.randrange(1, len(words)), rng.choices(PHRASES, cum_weights=_PHRASE_WEIGHTS)[0])
        elif chance < 0.30:
            words.insert(rng.randrange(1, len(words)), _detail(rng))
        elif chance < 0.45:
            index = rng.randrange(1, len(words))
            words[index] += ","
        words[0] = words[0].capitalize()
        return " ".join(words) + rng.choice(("." * 8) + "?:!")


class _Chinese:
    """Writes Chinese without spaces, with Latin words in between."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._topic = rng.choices(CHINESE, k=10)

    def text(self, size: int) -> str:
        """Return less than half of the characters that English needs for the same content."""
        clauses: list[str] = []
        left = size * 0.42
        while left > 0:
            clause = self._clause()
            clauses.append(clause)
            left -= len(clause) + 1
        return "".join(clause + self._rng.choice("，，，。。？") for clause in clauses)

    def title(self) -> str:
        return "".join(self._topic[:3])

    def arguments(self, tool: str) -> str:
        return json.dumps(_arguments(self._rng, tool, "".join(self._topic[3:6])), ensure_ascii=False)

    def _clause(self) -> str:
        rng = self._rng
        words = _CHINESE.draw(rng, rng.randint(3, 9))
        if rng.random() < 0.25:
            words.insert(0, rng.choices(CHINESE_PHRASES, cum_weights=_CHINESE_PHRASE_WEIGHTS)[0])
        if rng.random() < 0.25:
            words.append(rng.choice(self._topic))
        return "".join(words)


_Writer = _English | _Chinese


def _detail(rng: random.Random) -> str:
    """Return a number, a version, a path or a name as in code."""
    kind = rng.randrange(6)
    if kind == 0:
        return str(rng.randrange(10_000))
    if kind == 1:
        return f"v{rng.randrange(9)}.{rng.randrange(30)}.{rng.randrange(20)}"
    if kind == 2:
        return _path(rng)
    if kind == 3:
        return f"{rng.getrandbits(28):07x}"
    return _name(rng)


def _name(rng: random.Random) -> str:
    words = _NAMES.draw(rng, rng.randint(1, 3))
    if rng.random() < 0.3:
        return words[0] + "".join(word.capitalize() for word in words[1:])
    return "_".join(words)


def _path(rng: random.Random) -> str:
    folders = _NAMES.draw(rng, rng.randint(1, 3))
    return f"{'/'.join(folders)}/{_name(rng)}.{rng.choice(EXTENSIONS)}"


def _arguments(rng: random.Random, tool: str, words: str) -> dict[str, Any]:
    if tool in ("web_search", "search_files"):
        return {"query": words, "limit": rng.randrange(1, 20)}
    if tool in ("terminal", "run_tests"):
        return {"command": f"{rng.choice(TOOLS)} --{_name(rng)} {_path(rng)}", "timeout": rng.randrange(300)}
    if tool == "browser_open":
        return {"url": f"https://{_name(rng).replace('_', '-').lower()}.example/{_path(rng)}"}
    return {"path": _path(rng), "text": f"{words} {_name(rng)}"}


class _Printer:
    """Prints lines of one program, which repeats a few names."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._names = [_name(rng) for _ in range(6)]
        self._paths = [_path(rng) for _ in range(3)]
        self._words = _NAMES.draw(rng, 5)

    def output(self, size: int) -> str:
        """Return a log, a listing, code or JSON."""
        line = self._rng.choice([self._line_of_log, self._line_of_code, self._line_of_listing, self._line_of_json])
        lines: list[str] = []
        left = size
        while left > 0:
            lines.append(line())
            left -= len(lines[-1]) + 1
        return "\n".join(lines)

    def _name(self) -> str:
        return self._rng.choice(self._names)

    def _prose(self, min_words: int, max_words: int) -> str:
        count = self._rng.randint(min_words, max_words)
        words = _PROSE.draw(self._rng, count - count // 3) + self._rng.choices(self._words, k=count // 3)
        self._rng.shuffle(words)
        return " ".join(words)

    def _line_of_log(self) -> str:
        rng = self._rng
        clock = f"2026-03-{rng.randint(1, 28):02}T{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}Z"
        return f"{clock} {rng.choice(LEVELS):8} {self._name()}: {self._prose(4, 10)} ({rng.randrange(500)} ms)"

    def _line_of_code(self) -> str:
        rng = self._rng
        return rng.choice(
            [
                f"    def {self._name()}(self, {self._name()}: int) -> str:",
                f"        {self._name()} = self.{self._name()}({self._name()}, {rng.randrange(100)})",
                f"        if {self._name()} != {self._name()}:\n            return {self._name()}",
                f"        # {self._prose(5, 12)}",
            ]
        )

    def _line_of_listing(self) -> str:
        return f"{self._rng.choice(self._paths)}:{self._rng.randrange(900)}: {self._prose(3, 8)}"

    def _line_of_json(self) -> str:
        number, path = self._rng.randrange(1000), self._rng.choice(self._paths)
        values = {self._name(): number, "text": self._prose(3, 6), "path": path}
        return json.dumps(values, indent=2)
