"""The worker for Memoranda."""

import json
import time
from pathlib import Path
from typing import Any

import memoranda
from benchmarks.sessions.corpus import Message, Session
from benchmarks.sessions.tasks import serve


class MemorandaStore:
    def __init__(self, home: Path) -> None:
        self._memory = memoranda.open(home)
        self._sessions = self._memory.sessions

    def create(self, session: Session) -> None:
        self._sessions.create_session(session.id, session.source, title=session.title, started_at=session.started_at)

    def append(self, session_id: str, message: Message) -> None:
        self._sessions.append_message(
            session_id,
            message.role,
            message.content,
            tool_name=message.tool_name,
            tool_calls=message.tool_calls,
            tool_call_id=message.tool_call_id,
            timestamp=message.timestamp,
        )

    def append_all(self, session: Session) -> None:
        self._sessions.append_messages(session.id, [_as_dict(message) for message in session.messages])

    def settle(self) -> None:
        """Wait for the background index; checking its state now and then costs almost nothing."""
        while not self._sessions.index.state().complete:
            time.sleep(0.05)

    def discover(self, query: str) -> str:
        return self._call({"query": query, "limit": 3})

    def browse(self) -> str:
        return self._call({})

    def touch(self) -> None:
        self._sessions.get_session("none")

    def close(self) -> None:
        self._memory.close()

    def _call(self, arguments: dict[str, Any]) -> str:
        """Return the tool's result as the JSON text that a model receives."""
        return json.dumps(self._memory.call("session_search", arguments), ensure_ascii=False)


class Memoranda:
    def open(self, home: Path) -> MemorandaStore:
        return MemorandaStore(home)


def _as_dict(message: Message) -> dict[str, Any]:
    return {name: getattr(message, name) for name in Message.__dataclass_fields__}


if __name__ == "__main__":
    serve(Memoranda())
