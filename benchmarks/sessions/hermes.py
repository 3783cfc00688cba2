"""The worker for Hermes Agent, run by Hermes's own interpreter; it uses only names that Hermes offers to callers."""

import importlib
from pathlib import Path
from typing import Any

from benchmarks.sessions.corpus import Message, Session
from benchmarks.sessions.tasks import serve


class HermesStore:
    def __init__(self, db: Any, search: Any) -> None:
        self._db = db
        self._search = search

    def create(self, session: Session) -> None:
        self._db.create_session(session.id, session.source)
        self._db.set_session_title(session.id, session.title)

    def append(self, session_id: str, message: Message) -> None:
        self._db.append_message(
            session_id,
            message.role,
            message.content,
            tool_name=message.tool_name,
            tool_calls=message.tool_calls,
            tool_call_id=message.tool_call_id,
            timestamp=message.timestamp,
        )

    def append_all(self, session: Session) -> None:
        """Hermes has no batch append; this is its only way to write many messages in one commit."""
        self._db.replace_messages(session.id, [_as_dict(message) for message in session.messages])

    def settle(self) -> None:
        """Does nothing: Hermes indexes inside the append."""

    def discover(self, query: str) -> str:
        return str(self._search(query=query, limit=3, db=self._db))

    def browse(self) -> str:
        return str(self._search(db=self._db))

    def touch(self) -> None:
        self._db.get_session("none")

    def close(self) -> None:
        self._db.close()


class Hermes:
    def __init__(self) -> None:
        # Not installed where our code is checked, so imported by name.
        self._state: Any = importlib.import_module("hermes_state")
        self._tool: Any = importlib.import_module("tools.session_search_tool")

    def open(self, home: Path) -> HermesStore:
        home.mkdir(parents=True, exist_ok=True)
        return HermesStore(self._state.SessionDB(home / "state.db"), self._tool.session_search)


def _as_dict(message: Message) -> dict[str, Any]:
    return {name: getattr(message, name) for name in Message.__dataclass_fields__}


if __name__ == "__main__":
    serve(Hermes())
