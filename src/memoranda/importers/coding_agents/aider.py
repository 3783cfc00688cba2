"""Reads the chats of Aider from `.aider.chat.history.md`, which it appends to in each repository.

A line `# aider chat started at` starts a chat and has its local time, the only time in the file. Aider ends its own
lines with two spaces: those of the user start with `####`, and what it printed itself with `>`. The rest is the answer.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from memoranda.importers.chat_messages import short_digest, text_message
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, Problem, ReadEvent, Skipped
from memoranda.importers.source_files import MAX_LINE_BYTES, find_items, item_at, open_source

_FILE = ".aider.chat.history.md"
_STARTED = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_USER, _PRINTED, _ENDING = "#### ", "> ", "  "
_MAX_MESSAGE_CHARS = 4_000_000


class Aider:
    name = "aider"

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the histories under a path; without one, of the current directory, those above it, and home."""
        if path is not None:
            return find_items(path, (), lambda file: file.name == _FILE, "chats")
        directories = dict.fromkeys([Path.cwd(), *Path.cwd().parents, Path.home()])
        found = [item_at(directory / _FILE, "chats") for directory in directories]
        return [item for item in found if item is not None]

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        chat = _Chat(item.file.absolute().parent)
        with open_source(item.file) as stream:
            while raw := stream.readline(MAX_LINE_BYTES):
                if len(raw) == MAX_LINE_BYTES:
                    yield Problem(item.file, None, "a line is too long; nothing after it was read")
                    break
                yield from chat.line_events(raw.decode("utf-8", "replace").rstrip("\n"))
        yield from chat.end_message()
        if not chat.has_started:
            yield Problem(item.file, None, "not a chat history of Aider: no chat starts in it")


class _Chat:
    """The chat that is being read, and the lines of its current message."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._started = ""
        self._role = ""
        self._lines: list[str] = []
        self._chars = 0
        self._count = 0
        self._fenced = False

    @property
    def has_started(self) -> bool:
        return bool(self._started)

    def line_events(self, line: str) -> Iterator[ReadEvent]:
        started = _STARTED.fullmatch(line)
        if started and not self._fenced:
            yield from self.end_message()
            self._started, self._count, self._role = started[1], 0, ""
            yield ImportedConversation(
                f"{self._directory.name}/{self._started}",
                directory=str(self._directory),
                started_at=self._timestamp(),
            )
        elif not self._started:
            return
        elif not self._fenced and line.startswith(_USER) and line.endswith(_ENDING):
            yield from self._add("user", line[len(_USER) : -len(_ENDING)])
        elif not self._fenced and line.startswith(_PRINTED) and line.endswith(_ENDING):
            yield from self.end_message()
            yield Skipped("line that Aider printed")
        elif self._count or self._role:
            # What comes before the first prompt is printed, too.
            yield from self._add("assistant", line)
            self._fenced ^= line.startswith("```")
        elif line.strip():
            yield Skipped("line that Aider printed")

    def end_message(self) -> Iterator[ReadEvent]:
        """Yield the message whose lines were read."""
        text = "\n".join(self._lines).strip()
        if text:
            name = f"{self._directory.name}/{self._started}:{self._count}:{short_digest(text)[:12]}"
            yield text_message(self._role, text, name, self._timestamp())
            self._count += 1
        self._lines, self._chars, self._fenced = [], 0, False

    def _add(self, role: str, line: str) -> Iterator[ReadEvent]:
        if role != self._role or self._chars > _MAX_MESSAGE_CHARS:
            yield from self.end_message()
        self._role = role
        self._lines.append(line)
        self._chars += len(line)

    def _timestamp(self) -> float:
        # Local time of the machine that wrote the file.
        return datetime.fromisoformat(self._started).timestamp()
