"""The two corpora as files of one conversation per line, which grow, are kept, and can be resumed after an interrupt.

`mixed` is the corpus of `benchmarks/sessions`, `tools` that of `tool_sessions.py`; both with the middling words of
`middling_words.py`. The beginning is the same at every size. Each line starts with the number of messages, the source
and whether it is Chinese, separated by tabs. Standard library only.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.growth.conversation import Conversation
from benchmarks.growth.middling_words import sprinkle
from benchmarks.growth.tool_sessions import make_tool_session
from benchmarks.sessions.corpus import make_session

Report = Callable[[str], None]
_REPORT_EVERY = 5.0
_WRITTEN_AT_ONCE = 200


# One session every half hour: a million messages take two and a half years, and none is in the future.
_START, _SESSION_EVERY = 1_700_000_000.0, 1_800.0


def _mixed(number: int) -> Conversation:
    session = make_session(number)
    return Conversation(
        session.id, session.title, session.source, session.chinese, session.started_at, session.messages
    )


GENERATORS: dict[str, Callable[[int], Conversation]] = {"mixed": _mixed, "tools": make_tool_session}
_PREFIXES = {"mixed": "s", "tools": "t"}


def generate(name: str, number: int) -> Conversation:
    """Generate one conversation of a corpus, with its middling words, at its place in time."""
    conversation = sprinkle(GENERATORS[name](number), number)
    started_at = _START + number * _SESSION_EVERY
    later = started_at - conversation.started_at
    messages = [replace(message, timestamp=message.timestamp + later) for message in conversation.messages]
    return replace(conversation, started_at=started_at, messages=messages)


class LineHeader(NamedTuple):
    """What can be known of a conversation without reading it."""

    number: int
    messages: int
    source: str
    chinese: bool


@dataclass(frozen=True, slots=True)
class Corpus:
    """One corpus in a directory."""

    name: str
    directory: Path

    @property
    def path(self) -> Path:
        return self.directory / f"{self.name}.jsonl"

    def session_id(self, number: int) -> str:
        """Return the id of the conversation with this number."""
        return f"{_PREFIXES[self.name]}{number:06}"

    def grow(self, messages: int, report: Report) -> None:
        """Generate conversations until there are this many messages; continues where an earlier run stopped."""
        self.directory.mkdir(parents=True, exist_ok=True)
        headers = list(self.headers())
        there, number = sum(header.messages for header in headers), len(headers)
        if there < messages:
            self._cut_incomplete_line()
        last = time.monotonic()
        while there < messages:
            lines: list[str] = []
            while there < messages and len(lines) < _WRITTEN_AT_ONCE:
                made = generate(self.name, number)
                lines.append(f"{len(made.messages)}\t{made.source}\t{int(made.chinese)}\t{made.as_json()}\n")
                there, number = there + len(made.messages), number + 1
            with self.path.open("ab") as file:
                file.write("".join(lines).encode())
            if time.monotonic() - last > _REPORT_EVERY:
                report(f"corpus {self.name}: {there:,} of {messages:,} messages")
                last = time.monotonic()

    def headers(self, messages: int | None = None) -> Iterator[LineHeader]:
        """Yield the header of each conversation, up to this many messages."""
        for number, line in enumerate(self._lines(messages)):
            count, source, chinese, _ = line.split(b"\t", 3)
            yield LineHeader(number, int(count), source.decode(), chinese == b"1")

    def read(self, messages: int) -> Iterator[tuple[int, Conversation]]:
        """Yield numbered conversations with exactly this many messages together; the last may be shortened."""
        missing = messages
        for number, line in enumerate(self._lines(messages)):
            conversation = Conversation.from_json(line.split(b"\t", 3)[3])
            if len(conversation.messages) > missing:
                conversation = replace(conversation, messages=conversation.messages[:missing])
            missing -= len(conversation.messages)
            yield number, conversation
        if missing > 0:
            raise SystemExit(f"{self.path} has {missing:,} messages too few. Start the benchmark again.")

    def _lines(self, messages: int | None) -> Iterator[bytes]:
        if not self.path.exists():
            return
        seen = 0
        with self.path.open("rb") as file:
            for line in file:
                # What an interrupted run left at the end is not a line.
                if (messages is not None and seen >= messages) or not line.endswith(b"\n"):
                    return
                seen += int(line.split(b"\t", 1)[0])
                yield line

    def _cut_incomplete_line(self) -> None:
        """Remove what an interrupted run left after the last complete line."""
        if not self.path.exists():
            return
        with self.path.open("r+b") as file:
            length = 0
            for line in file:
                if line.endswith(b"\n"):
                    length += len(line)
            file.truncate(length)


def text_size(conversations: Iterator[Conversation]) -> int:
    """Return the bytes of text: content, tool names, tool calls as JSON, and each different system prompt once."""
    prompts: set[str] = set()
    size = 0
    for conversation in conversations:
        size += sum(message.raw_size for message in conversation.messages)
        if conversation.system_prompt is not None:
            prompts.add(conversation.system_prompt)
    return size + sum(len(prompt.encode()) for prompt in prompts)
