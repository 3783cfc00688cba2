"""The second corpus: agents at work, most of it tool output, with a long system prompt in every session.

A session is a task in a repository. Its few user messages are short; the model calls tools up to eight times per turn,
and what they print is long: logs, source code, diffs, listings, tracebacks, JSON, tables. Every twelfth session is
Chinese, and some tool output contains Chinese in the other sessions too. One system prompt of about 7,000 characters
serves the sessions of one day; of it, the date and a few remembered notes change. Standard library only.
"""

import json
import random
from collections.abc import Callable, Iterator

from benchmarks.growth.conversation import Conversation
from benchmarks.sessions.corpus import Message
from benchmarks.sessions.words import CHINESE, CHINESE_GLUE, COMMON, EXTENSIONS, GLUE, RARE

SEED = 31
_SESSIONS_PER_DAY = 12
_SOURCES = ["cli", "telegram", "cron", "api"]
_TOOLS = ["bash", "read", "grep", "edit", "glob", "fetch", "test"]

_VERBS = ["fix", "check", "rename", "speed up", "document", "remove", "split", "port", "explain", "review"]
_MODULES = [f"{first}_{second}" for first in COMMON[40:90] for second in COMMON[300:340]]
_FOLDERS = ["src", "lib", "tests", "internal", "cmd", "pkg", "services", "web", "scripts", "docs"]
_EXCEPTIONS = ["ValueError", "KeyError", "TimeoutError", "ConnectionResetError", "AssertionError", "OSError"]
# What programs print again and again, and people quote.
_MESSAGES = [" ".join(random.Random(f"message/{number}").sample(COMMON, 4)) for number in range(100)]
_LEVELS = ["INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR"]


def make_tool_session(number: int) -> Conversation:
    """Generate the session with this number; it does not depend on the others, and starts at time 0."""
    rng = random.Random(f"{SEED}/{number}")
    chinese = number % 12 == 5
    writer = _Writer(rng, chinese)
    wanted = min(120, max(4, round(rng.lognormvariate(2.9, 0.7))))
    messages: list[Message] = []
    while len(messages) < wanted:
        messages += _turn(rng, writer, 30.0 * len(messages))
    return Conversation(
        id=f"t{number:06}",
        title=f"{writer.sentence(4)} {number}",
        source=rng.choices(_SOURCES, weights=[60, 15, 10, 15])[0],
        chinese=chinese,
        started_at=0.0,
        system_prompt=_system_prompt(number // _SESSIONS_PER_DAY),
        messages=messages[:wanted],
    )


def _turn(rng: random.Random, writer: "_Writer", started: float) -> Iterator[Message]:
    """Generate a turn: a short request, up to eight tool calls with their output, and an answer."""
    yield Message("user", writer.text(rng.randint(1, 4)), started)
    for step in range(min(8, int(rng.expovariate(0.3)))):
        tool = rng.choice(_TOOLS)
        call_id = f"toolu_{rng.getrandbits(64):016x}"
        arguments = json.dumps({"command": f"{tool} {writer.path()}", "description": writer.sentence(5)})
        calls = [{"id": call_id, "type": "function", "function": {"name": tool, "arguments": arguments}}]
        said = writer.text(1) if rng.random() < 0.4 else ""
        yield Message("assistant", said, started + 3 + 3 * step, tool_calls=calls)
        lines = min(160, 1 + int(rng.lognormvariate(2.6, 0.9)))
        output = writer.output(lines)
        yield Message("tool", output, started + 4 + 3 * step, tool_name=tool, tool_call_id=call_id)
    yield Message("assistant", writer.text(rng.randint(2, 9)), started + 29)


class _Writer:
    """Writes about one repository: its paths, names and subjects repeat within a session."""

    def __init__(self, rng: random.Random, chinese: bool) -> None:
        self._rng = rng
        self._chinese = chinese
        self._names = rng.sample(_MODULES, 12) + [f"{name}_{rng.choice(RARE)}" for name in rng.sample(_MODULES, 4)]
        self._paths = [self._new_path() for _ in range(10)]
        # Skewed, so that some subjects are common and most are not.
        self._subjects = [COMMON[int(len(COMMON) * rng.random() ** 2)] for _ in range(14)]
        self._host = f"{rng.choice(COMMON)}-{rng.randrange(90)}.internal.example"

    def path(self) -> str:
        return self._rng.choice(self._paths)

    def text(self, sentences: int) -> str:
        if self._chinese:
            return "".join(f"{self._clause()}。" for _ in range(2 * sentences))
        return " ".join(f"{self.sentence(self._rng.randint(6, 18)).capitalize()}." for _ in range(sentences))

    def sentence(self, words: int) -> str:
        """Return prose: half of it glue, the rest subjects of the session and now and then a name or a path."""
        if self._chinese:
            return self._clause()
        rng = self._rng
        chosen = rng.choices(GLUE, k=words)
        for place in range(1, words, 2):
            chosen[place] = rng.choice(self._subjects) if rng.random() < 0.7 else rng.choice(COMMON)
        chance = rng.random()
        if chance < 0.15:
            chosen[-1] = rng.choice(_MESSAGES)
        elif chance < 0.4:
            chosen[-1] = rng.choice((self.path(), rng.choice(self._names)))
        return " ".join(chosen)

    def output(self, lines: int) -> str:
        """Return what one program prints."""
        kinds: list[Callable[[int], str]] = [
            self._log_line, self._log_line, self._code_line, self._code_line, self._diff_line, self._match_line,
            self._listing_line, self._trace_line, self._row, self._record,
        ]  # fmt: skip
        line = self._rng.choice(kinds)
        return "\n".join(line(number) for number in range(lines))

    def _clause(self) -> str:
        rng = self._rng
        words = rng.choices(CHINESE, k=rng.randint(3, 6)) + rng.choices(CHINESE_GLUE, k=3)
        rng.shuffle(words)
        return "".join(words) + (f" {rng.choice(self._names)} " if rng.random() < 0.2 else "")

    def _new_path(self) -> str:
        rng = self._rng
        return f"{rng.choice(_FOLDERS)}/{rng.choice(COMMON)}/{rng.choice(self._names)}.{rng.choice(EXTENSIONS)}"

    def _name(self) -> str:
        return self._rng.choice(self._names)

    def _comment(self) -> str:
        """Return a remark as it is in code and logs; some are Chinese in any repository."""
        return self._clause() if self._rng.random() < 0.03 else self.sentence(6)

    def _log_line(self, number: int) -> str:
        rng = self._rng
        clock = f"2026-0{1 + number % 9}-1{number % 9} {number % 24:02}:{rng.randrange(60):02}:{rng.randrange(60):02}"
        trace = f"{rng.getrandbits(48):012x}"
        return f"{clock},{rng.randrange(1000):03} {rng.choice(_LEVELS)} [{self._name()}] {self._comment()} id={trace}"

    def _code_line(self, number: int) -> str:
        rng = self._rng
        kind = number % 5
        if kind == 0:
            return f"{number:>5}\tdef {self._name()}({self._name()}: dict[str, int], limit: int = {rng.randrange(99)}):"
        if kind == 1:
            return f"{number:>5}\t    # {self._comment()}"
        if kind == 2:
            return f"{number:>5}\t    for entry in {self._name()}.get('{self._name()}', []):"
        if kind == 3:
            return f"{number:>5}\t        total += entry.{rng.choice(COMMON)} * {rng.random():.4f}"
        return f"{number:>5}\t    return {self._name()}(total, path='{self.path()}')"

    def _diff_line(self, number: int) -> str:
        if number == 0:
            return f"diff --git a/{self.path()} b/{self.path()}\nindex {self._rng.getrandbits(28):07x} 100644"
        return f"{self._rng.choice('+- ')}    {self._name()}.{self._rng.choice(COMMON)}({self._comment()!r})"

    def _match_line(self, number: int) -> str:
        return f"{self.path()}:{number * 7 + self._rng.randrange(7)}:    {self._name()} = {self._comment()}"

    def _listing_line(self, number: int) -> str:
        return (
            f"-rw-r--r-- 1 app app {self._rng.randrange(90_000):>7} Mar {1 + number % 28:>2} 09:41 {self._new_path()}"
        )

    def _trace_line(self, number: int) -> str:
        rng = self._rng
        if number % 6 == 5:
            return f"{rng.choice(_EXCEPTIONS)}: {self._comment()} (host {self._host})"
        return f'  File "/srv/app/{self.path()}", line {rng.randrange(900)}, in {self._name()}'

    def _row(self, number: int) -> str:
        rng = self._rng
        return f"| {number:>4} | {rng.choice(COMMON):<12} | {rng.random():>9.6f} | {rng.getrandbits(32):08x} |"

    def _record(self, number: int) -> str:
        rng = self._rng
        values = {"id": number, "name": self._name(), "path": self.path(), "text": self._comment()}
        return json.dumps(values | {"hash": f"{rng.getrandbits(64):016x}"}, ensure_ascii=False)


def _system_prompt(day: int) -> str:
    """Return the system prompt of one day: the same instructions, its date, and notes that change every few days."""
    rng = random.Random(f"{SEED}/notes/{day // 4}")
    notes = [f"- {' '.join(rng.choices(COMMON, k=12))}" for _ in range(12)]
    return f"{_INSTRUCTIONS}\n\nWhat you remember:\n" + "\n".join(notes) + f"\n\nToday is day {day}."


def _instructions() -> str:
    """Return instructions as an agent has them: rules and a description of each tool, about 6,000 characters."""
    rng = random.Random(SEED)
    rules = [f"{number}. {' '.join(rng.choices(GLUE + COMMON[:200], k=16)).capitalize()}." for number in range(1, 36)]
    tools = [f"## {tool}\n{' '.join(rng.choices(GLUE + COMMON[:200], k=50)).capitalize()}." for tool in _TOOLS]
    return "\n".join(["You are an agent that works in a repository.", *rules, "# Tools", *tools])


_INSTRUCTIONS = _instructions()
