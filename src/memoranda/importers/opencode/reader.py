"""Reads the sessions of OpenCode, as versions from 0.1 to 1.18 keep them under `~/.local/share/opencode`.

In 1.2 and later they are in a database, `opencode.db`. Before that, sessions, messages and the parts of messages were
files of their own: in `storage/`, and in the first versions in `project/<name>/storage/session/`. All of them have the
same ids, so that a session which was moved from one form to the next is taken in once.
"""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from memoranda.importers.opencode import database, storage_files
from memoranda.importers.opencode.messages import StoredMessage, StoredSession
from memoranda.importers.opencode.parts import messages_of
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, Problem, ReadEvent
from memoranda.importers.resume_command import in_directory
from memoranda.importers.source_files import is_recently_changed, item_at


class OpenCode:
    """The reader of OpenCode's sessions."""

    name = "opencode"

    def __init__(self) -> None:
        self._databases = database.SessionDatabases()

    def scan(self, where: Path | None) -> Sequence[ImportItem]:
        """Every session, the oldest first, so that a session precedes its sub-agents."""
        where = Path.home() / ".local" / "share" / "opencode" if where is None else where
        if item_at(where, "database"):
            return self._databases.sessions(where)
        # People move the directory above `opencode`.
        where = where / "opencode" if (where / "opencode").is_dir() else where
        try:
            places = sorted(where.glob("opencode*.db"))
        except OSError:
            places = []
        found = [item for place in places for item in self._databases.sessions(place)]
        return [*found, *storage_files.sessions(where)]

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """One session: what is known of it, and its messages in order."""
        parts = database.read(item) if item.label.startswith(database.OF_DATABASE) else storage_files.read(item)
        session: StoredSession | None = None
        for part in parts:
            if isinstance(part, StoredSession):
                session = part
                yield _conversation(session, None)
            elif isinstance(part, Problem):
                yield part
            elif session is not None:
                yield from self._message(item, session, part)

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """OpenCode takes a session up in the directory where it took place."""
        command = f"opencode --session {shlex.quote(host_id)}"
        return in_directory(command, directory)

    def _message(self, item: ImportItem, session: StoredSession, message: StoredMessage) -> Iterator[ReadEvent]:
        if message.model and not session.model:
            session.model = message.model
            yield _conversation(session, message)
        yield from messages_of(message, awaits_end=is_recently_changed(item.modified_at))


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
