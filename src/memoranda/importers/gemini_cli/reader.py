"""Reads the sessions that Gemini CLI records by itself (as 0.5 to 0.61 do), and what people saved with `/chat save`.

They lie in `~/.gemini/tmp/<project>/`: `chats/session-<time>-<id>.jsonl` today, one JSON object `….json` before that, a
sub-agent's in a folder named for its session; `checkpoint-<tag>.json` is what was saved under a tag. The project is a
name of which `.project_root` tells the directory, or, in older versions, a digest of the directory.
"""

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import get_text
from memoranda.importers.gemini_cli.projects import directory_of
from memoranda.importers.gemini_cli.records import given_by, learned, saved
from memoranda.importers.reader_protocol import ImportedConversation, ImportedMessage, ImportItem, Problem, ReadEvent
from memoranda.importers.resume_command import in_directory
from memoranda.importers.source_files import find_files, item_at, read_json_file, read_json_lines, read_line_events

_CHECKPOINT = "checkpoint"


class GeminiCli:
    """The reader of Gemini CLI's recordings."""

    name = "gemini-cli"

    def scan(self, where: Path | None) -> Sequence[ImportItem]:
        """The recordings of every project, the oldest first; sub-agents after the sessions they worked for."""
        where = Path.home() / ".gemini" if where is None else where
        if single := item_at(where, _what(where)):
            return [single]
        # People move the directory above `.gemini`, or name either, or one project's folder.
        places = (where / ".gemini" / "tmp", where / "tmp", where)
        place = next((each for each in places if each.is_dir()), where)
        found = [replace(item, label=_what(item.file)) for item in find_files(place, _is_recording, "session")]
        order = ("session", "sub-agent", _CHECKPOINT)
        return sorted(found, key=lambda item: (order.index(item.label), item.file.name, str(item.file)))

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """The messages of a recording."""
        if item.file.suffix == ".jsonl":
            yield from self._read_lines(item)
            return
        value = read_json_file(item)
        if isinstance(value, Problem):
            yield value
        elif item.label == _CHECKPOINT:
            yield from saved(item.file, value, directory_of(item.file, None))
        elif isinstance(value, dict) and get_text(value, "sessionId"):
            yield from _Recording(item, {}).given(value, None)
        else:
            yield Problem(item.file, None, "not a recording of Gemini CLI: it names no session")

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """A session is known only in the directory where it took place; a checkpoint is taken up by its tag, inside."""
        if host_id.startswith(f"{_CHECKPOINT}-"):
            return ""
        command = f"gemini --resume {shlex.quote(host_id)}"
        return in_directory(command, directory)

    def _read_lines(self, item: ImportItem) -> Iterator[ReadEvent]:
        recording = _Recording(
            item, json.loads(item.checkpoint.state) if item.checkpoint and item.checkpoint.state else {}
        )
        return read_line_events(
            read_json_lines(item),
            lambda line: recording.given(line.value, line.number),
            lambda: json.dumps(recording.known),
        )


class _Recording:
    """One recording: what it has said of its session, and the session as it is told to others."""

    def __init__(self, item: ImportItem, known: dict[str, Any]) -> None:
        self._item = item
        self.known = known
        self._told: ImportedConversation | None = None

    def given(self, record: dict[str, Any], line: int | None) -> Iterator[ReadEvent]:
        """What one record holds; the session is told before its first message, and when more is known of it."""
        titled = self.known.get("title")
        found = learned(record)
        self.known = found | self.known | {name: found[name] for name in ("title",) if name in found}
        if self.known.get("title") != titled:
            yield from self._conversation()
        for each in given_by(self._item.file, record, line):
            if isinstance(each, ImportedMessage):
                yield from self._conversation()
            yield each

    def _conversation(self) -> Iterator[ImportedConversation]:
        known, file = self.known, self._item.file
        is_agent = known.get("kind") == "subagent" or self._item.label == "sub-agent"
        told = ImportedConversation(
            known.get("id") or file.stem,
            known.get("title"),
            known.get("model"),
            directory_of(file, known.get("project")),
            known.get("started_at"),
            file.parent.name if is_agent and file.parent.name != "chats" else None,
            "delegation" if is_agent and file.parent.name != "chats" else None,
        )
        if told != self._told:
            self._told = told
            yield told


def _is_recording(file: Path) -> bool:
    if file.parent.name == "chats":
        return file.name.startswith("session-") and file.suffix in (".json", ".jsonl")
    if file.parent.parent.name == "chats":
        return file.suffix == ".jsonl"
    return file.name.startswith("checkpoint") and file.suffix == ".json"


def _what(file: Path) -> str:
    if file.name.startswith("checkpoint"):
        return _CHECKPOINT
    return "sub-agent" if file.parent.parent.name == "chats" else "session"
