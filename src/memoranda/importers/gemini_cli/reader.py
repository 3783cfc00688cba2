"""Reads the sessions that Gemini CLI records by itself (as 0.5 to 0.61 do), and what users saved with `/chat save`.

They are in `~/.gemini/tmp/<project>/`: `chats/session-<time>-<id>.jsonl` today, one JSON object `….json` before that.
Those of a sub-agent are in a folder named after its session; `checkpoint-<tag>.json` was saved under a tag. The project
is a name (`.project_root` contains its directory) or, in older versions, a digest of the directory.
"""

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import get_text
from memoranda.importers.gemini_cli.projects import directory_of
from memoranda.importers.gemini_cli.records import record_events, saved_chat_events, session_facts
from memoranda.importers.reader_protocol import ImportedConversation, ImportedMessage, ImportItem, Problem, ReadEvent
from memoranda.importers.resume_command import in_directory
from memoranda.importers.source_files import find_files, item_at, read_json_file, read_json_lines, read_line_events

_CHECKPOINT = "checkpoint"


class GeminiCli:
    """The reader of Gemini CLI's recordings."""

    name = "gemini-cli"

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the recordings of every project, the oldest first; sub-agents after the sessions they worked for."""
        path = Path.home() / ".gemini" if path is None else path
        if single := item_at(path, _label(path)):
            return [single]
        # Users can move the directory above `.gemini`, and can name either of them or the folder of one project.
        candidates = (path / ".gemini" / "tmp", path / "tmp", path)
        directory = next((candidate for candidate in candidates if candidate.is_dir()), path)
        found = [replace(item, label=_label(item.file)) for item in find_files(directory, _is_recording, "session")]
        order = ("session", "sub-agent", _CHECKPOINT)
        return sorted(found, key=lambda item: (order.index(item.label), item.file.name, str(item.file)))

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """Yield the messages of a recording."""
        if item.file.suffix == ".jsonl":
            yield from self._read_json_lines(item)
            return
        value = read_json_file(item)
        if isinstance(value, Problem):
            yield value
        elif item.label == _CHECKPOINT:
            yield from saved_chat_events(item.file, value, directory_of(item.file, None))
        elif isinstance(value, dict) and get_text(value, "sessionId"):
            yield from _Recording(item, {}).record_events(value, None)
        else:
            yield Problem(item.file, None, "not a recording of Gemini CLI: it names no session")

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return the command, which works only in the session's directory; "" for a saved chat, which has none."""
        if host_id.startswith(f"{_CHECKPOINT}-"):
            return ""
        command = f"gemini --resume {shlex.quote(host_id)}"
        return in_directory(command, directory)

    def _read_json_lines(self, item: ImportItem) -> Iterator[ReadEvent]:
        recording = _Recording(
            item, json.loads(item.checkpoint.state) if item.checkpoint and item.checkpoint.state else {}
        )
        return read_line_events(
            read_json_lines(item),
            lambda line: recording.record_events(line.value, line.number),
            lambda: json.dumps(recording.known),
        )


class _Recording:
    """One recording: what its records say about the session so far."""

    def __init__(self, item: ImportItem, known: dict[str, Any]) -> None:
        self._item = item
        self.known = known
        self._yielded: ImportedConversation | None = None

    def record_events(self, record: dict[str, Any], line: int | None) -> Iterator[ReadEvent]:
        """Yield the events of a record; the conversation precedes its first message, and follows a new title."""
        old_title = self.known.get("title")
        found = session_facts(record)
        self.known = found | self.known | {name: found[name] for name in ("title",) if name in found}
        if self.known.get("title") != old_title:
            yield from self._conversation()
        for event in record_events(self._item.file, record, line):
            if isinstance(event, ImportedMessage):
                yield from self._conversation()
            yield event

    def _conversation(self) -> Iterator[ImportedConversation]:
        known, file = self.known, self._item.file
        is_agent = known.get("kind") == "subagent" or self._item.label == "sub-agent"
        conversation = ImportedConversation(
            known.get("id") or file.stem,
            known.get("title"),
            known.get("model"),
            directory_of(file, known.get("project")),
            known.get("started_at"),
            file.parent.name if is_agent and file.parent.name != "chats" else None,
            "delegation" if is_agent and file.parent.name != "chats" else None,
        )
        if conversation != self._yielded:
            self._yielded = conversation
            yield conversation


def _is_recording(file: Path) -> bool:
    if file.parent.name == "chats":
        return file.name.startswith("session-") and file.suffix in (".json", ".jsonl")
    if file.parent.parent.name == "chats":
        return file.suffix == ".jsonl"
    return file.name.startswith("checkpoint") and file.suffix == ".json"


def _label(file: Path) -> str:
    if file.name.startswith("checkpoint"):
        return _CHECKPOINT
    return "sub-agent" if file.parent.parent.name == "chats" else "session"
