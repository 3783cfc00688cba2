"""Reads the sessions of OpenCode, as versions from 0.1 to 1.18 keep them under `~/.local/share/opencode`.

In 1.2 and later they are in a database, `opencode.db`. Before that, each session, message and part of a message was a
separate file: in `storage/`, and in the first versions in `project/<name>/storage/session/`. All formats have the same
ids, so a session in several formats is imported once.
"""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from memoranda.importers.opencode import database, storage_files
from memoranda.importers.opencode.messages import StoredMessage, StoredSession
from memoranda.importers.opencode.parts import message_events
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, Problem, ReadEvent
from memoranda.importers.resume_command import in_directory
from memoranda.importers.source_files import is_recently_changed, item_at


class OpenCode:
    """The reader of OpenCode's sessions."""

    name = "opencode"

    def __init__(self) -> None:
        self._databases = database.SessionDatabases()

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return every session, the oldest first, so that a session precedes its sub-agents."""
        path = Path.home() / ".local" / "share" / "opencode" if path is None else path
        if item_at(path, "database"):
            return self._databases.sessions(path)
        # Users can move the directory above `opencode`.
        path = path / "opencode" if (path / "opencode").is_dir() else path
        try:
            databases = sorted(path.glob("opencode*.db"))
        except OSError:
            databases = []
        found = [item for file in databases for item in self._databases.sessions(file)]
        return [*found, *storage_files.find_sessions(path)]

    def scan_session(self, file: Path, host_id: str) -> Sequence[ImportItem]:
        """Return one session of a database and its sub-agents, without measuring the others."""
        return database.session_items(file, host_id)

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """Yield one session and its messages in order."""
        parts = (
            database.read_session(item)
            if item.label.startswith(database.SESSION_LABEL)
            else storage_files.read_session(item)
        )
        session: StoredSession | None = None
        for part in parts:
            if isinstance(part, StoredSession):
                session = part
                yield _conversation(session, None)
            elif isinstance(part, Problem):
                yield part
            elif session is not None:
                yield from self._message_events(item, session, part)

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return the command, which works in the session's directory."""
        command = f"opencode --session {shlex.quote(host_id)}"
        return in_directory(command, directory)

    def _message_events(self, item: ImportItem, session: StoredSession, message: StoredMessage) -> Iterator[ReadEvent]:
        if message.model and not session.model:
            session.model = message.model
            yield _conversation(session, message)
        yield from message_events(message, skip_unfinished=is_recently_changed(item.modified_at))


def _conversation(session: StoredSession, message: StoredMessage | None) -> ImportedConversation:
    return ImportedConversation(
        session.id,
        session.title,
        session.model,
        session.directory or (message.directory if message else None),
        session.started_at,
        session.parent,
        "delegation" if session.parent else None,
        extra={"version": session.version} if session.version else {},
    )
