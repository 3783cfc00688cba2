"""Reads the conversations of Cursor: those of the editor, and those of its command line (`cursor-agent`).

The editor keeps them in SQLite databases where its settings are, the command line in `~/.cursor`, or in `cursor` where
the settings of programs are. On Linux, people may move that directory.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from memoranda.importers.cursor import agent_database, agent_transcripts, editor_database
from memoranda.importers.reader_protocol import ImportItem, ReadEvent
from memoranda.importers.resume_command import in_directory
from memoranda.importers.source_databases import database_at
from memoranda.importers.source_files import find_files, item_at

_AGENT = "chat of the command line"
_TRANSCRIPT = "transcript"
_GLOBAL = Path("globalStorage", "state.vscdb")
# Where programs keep their settings on Linux, macOS and Windows, below the person's directory.
_SETTINGS = (Path(".config"), Path("Library", "Application Support"), Path("AppData", "Roaming"))
_EDITOR = Path("Cursor", "User")


class Cursor:
    """The reader of Cursor's conversations."""

    name = "cursor"

    def __init__(self, settings: Path | None = None) -> None:
        """`settings` is the directory that stands for `~/.config`; one that is not absolute counts as not given."""
        self._editor = editor_database.EditorDatabases()
        self._settings = settings if settings and settings.is_absolute() else None

    def scan(self, where: Path | None) -> Sequence[ImportItem]:
        """Every conversation; transcripts only of those that are nowhere else."""
        if where is None:
            linux, *others = (Path.home() / each for each in _SETTINGS)
            settings = [self._settings or linux, *others]
            places = [*(each / _EDITOR for each in settings), settings[0] / "cursor", Path.home() / ".cursor"]
        elif item_at(where, "") is not None:
            return self._single(where)
        else:
            places = [where, *(where / each / _EDITOR for each in _SETTINGS)]
        found = [item for place in places for item in (*self._of_editor(place), *_of_command_line(place))]
        known = {_host_id(item) for item in found}
        return [*found, *(item for place in places for item in _transcripts(place) if item.file.stem not in known)]

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """The messages of one conversation."""
        if item.label == _AGENT:
            return agent_database.read(item)
        if item.label == _TRANSCRIPT:
            return agent_transcripts.read(item)
        return editor_database.read(item, self._editor.directories)

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """The command line takes its own conversations up again; those of the editor are found in the editor only."""
        if host_id.startswith(("composer-", "chat-")):
            return ""
        command = f"cursor-agent --resume {shlex.quote(host_id)}"
        return in_directory(command, directory)

    def _single(self, file: Path) -> Sequence[ImportItem]:
        if file.suffix in (".jsonl", ".txt"):
            item = item_at(file, _TRANSCRIPT)
        elif file.name == "store.db":
            item = database_at(file, _AGENT)
        else:
            return self._editor.conversations(file)
        return [item] if item else []

    def _of_editor(self, place: Path) -> list[ImportItem]:
        """The conversations of an editor; workspaces first, which know the directories."""
        try:
            workspaces = sorted((place / "workspaceStorage").glob("*/state.vscdb"))
        except OSError:
            workspaces = []
        return [item for file in (*workspaces, place / _GLOBAL) for item in self._editor.conversations(file)]


def _of_command_line(place: Path) -> list[ImportItem]:
    stores = find_files(place / "chats", lambda file: file.name == "store.db", _AGENT)
    with_logs = [database_at(item.file, _AGENT) or item for item in stores]
    return sorted(
        (replace(item, label=_AGENT) for item in with_logs), key=lambda item: (item.modified_at, str(item.file))
    )


def _transcripts(place: Path) -> list[ImportItem]:
    """Transcripts, those of sub-agents after the sessions they worked for."""
    found = find_files(place / "projects", agent_transcripts.is_transcript, _TRANSCRIPT)
    return sorted(found, key=lambda item: (item.file.parent.name == "subagents", item.modified_at, str(item.file)))


def _host_id(item: ImportItem) -> str:
    """The id by which a conversation is known in every form that it has."""
    return item.file.parent.name if item.label == _AGENT else item.label.removeprefix(editor_database.COMPOSER)
