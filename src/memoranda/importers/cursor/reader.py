"""Reads the conversations of Cursor: those of the editor, and those of its command line (`cursor-agent`).

The editor keeps them in SQLite databases with its settings, the command line in `~/.cursor`, or in `cursor` in the
directory where programs keep their settings. On Linux, users can move that directory.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from glob import escape
from pathlib import Path

from memoranda.importers.cursor import agent_database, agent_transcripts, editor_database
from memoranda.importers.reader_protocol import ImportItem, ReadEvent
from memoranda.importers.resume_command import in_directory
from memoranda.importers.source_databases import database_at
from memoranda.importers.source_files import find_files, item_at

_AGENT = "chat of the command line"
_TRANSCRIPT = "transcript"
_GLOBAL = Path("globalStorage", "state.vscdb")
# The settings directories of programs on Linux, macOS and Windows, below the user's directory.
_SETTINGS = (Path(".config"), Path("Library", "Application Support"), Path("AppData", "Roaming"))
_EDITOR = Path("Cursor", "User")


class Cursor:
    """The reader of Cursor's conversations."""

    name = "cursor"

    def __init__(self, settings: Path | None = None) -> None:
        """`settings` replaces `~/.config`; a relative path is ignored."""
        self._editor = editor_database.EditorDatabases()
        self._settings = settings if settings and settings.is_absolute() else None

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return every conversation; transcripts only of those that are in no database."""
        if path is None:
            linux, *others = (Path.home() / name for name in _SETTINGS)
            settings = [self._settings or linux, *others]
            directories = [*(root / _EDITOR for root in settings), settings[0] / "cursor", Path.home() / ".cursor"]
        elif item_at(path, "") is not None:
            return self._single_file(path)
        else:
            directories = [path, *(path / name / _EDITOR for name in _SETTINGS)]
        found = [
            item
            for directory in directories
            for item in (*self._editor_items(directory), *_command_line_items(directory))
        ]
        known = {_host_id(item) for item in found}
        return [
            *found,
            *(
                item
                for directory in directories
                for item in _transcript_items(directory)
                if item.file.stem not in known
            ),
        ]

    def scan_conversation(self, transcript: Path, *, from_editor: bool) -> Sequence[ImportItem]:
        """Return one conversation, in the format from which later imports read it, as far as that exists already.

        The command line has a database for each. The editor's is read only if the record has the conversation from
        there (`from_editor`): Cursor writes it later than the transcript.
        """
        linux, *others = (Path.home() / name for name in _SETTINGS)
        settings = [self._settings or linux, *others]
        for directory in (settings[0] / "cursor", Path.home() / ".cursor"):
            for store in sorted(directory.glob(f"chats/*/{escape(transcript.stem)}/store.db")):
                return self._single_file(store)
        for root in settings if from_editor else ():
            item = database_at(root / _EDITOR / _GLOBAL, f"{editor_database.COMPOSER}{transcript.stem}")
            if item is not None:
                return [item]
        return self._single_file(transcript)

    def editor_id(self, transcript: Path) -> str:
        """Return the id that the conversation of a transcript has in the editor's database."""
        return f"composer-{transcript.stem}"

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """Yield the messages of one conversation."""
        if item.label == _AGENT:
            return agent_database.read_conversation(item)
        if item.label == _TRANSCRIPT:
            return agent_transcripts.read_transcript(item)
        return editor_database.read_conversation(item, self._editor.directories)

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return the command for conversations of the command line; "" for those of the editor, which has none."""
        if host_id.startswith(("composer-", "chat-")):
            return ""
        command = f"cursor-agent --resume {shlex.quote(host_id)}"
        return in_directory(command, directory)

    def _single_file(self, file: Path) -> Sequence[ImportItem]:
        if file.suffix in (".jsonl", ".txt"):
            item = item_at(file, _TRANSCRIPT)
        elif file.name == "store.db":
            item = database_at(file, _AGENT)
        else:
            return self._editor.conversations(file)
        return [item] if item else []

    def _editor_items(self, directory: Path) -> list[ImportItem]:
        """Return the conversations of an editor, workspaces first, because they know the directories."""
        try:
            workspaces = sorted((directory / "workspaceStorage").glob("*/state.vscdb"))
        except OSError:
            workspaces = []
        return [item for file in (*workspaces, directory / _GLOBAL) for item in self._editor.conversations(file)]


def _command_line_items(directory: Path) -> list[ImportItem]:
    stores = find_files(directory / "chats", lambda file: file.name == "store.db", _AGENT)
    with_logs = [database_at(item.file, _AGENT) or item for item in stores]
    return sorted(
        (replace(item, label=_AGENT) for item in with_logs), key=lambda item: (item.modified_at, str(item.file))
    )


def _transcript_items(directory: Path) -> list[ImportItem]:
    """Return the transcripts, those of sub-agents after the sessions they worked for."""
    found = find_files(directory / "projects", agent_transcripts.is_transcript, _TRANSCRIPT)
    return sorted(found, key=lambda item: (item.file.parent.name == "subagents", item.modified_at, str(item.file)))


def _host_id(item: ImportItem) -> str:
    """Return the id that a conversation has in every format."""
    return item.file.parent.name if item.label == _AGENT else item.label.removeprefix(editor_database.COMPOSER)
