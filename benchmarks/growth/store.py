"""A home of Memoranda as the tasks of a worker use it."""

import json
import time
from pathlib import Path
from typing import Any

import memoranda
from benchmarks.growth.conversation import Conversation
from benchmarks.sessions.corpus import Message


class MemorandaStore:
    """A home of Memoranda."""

    def __init__(self, home: Path) -> None:
        self.memory = memoranda.open(home)
        self.sessions = self.memory.sessions

    def contains(self, conversation: Conversation) -> bool:
        session = self.sessions.get_session(conversation.id)
        return bool(session and session["message_count"])

    def create(self, conversation: Conversation) -> None:
        self.sessions.create_session(
            conversation.id,
            conversation.source,
            title=conversation.title,
            started_at=conversation.started_at,
            system_prompt=conversation.system_prompt,
        )

    def append_all(self, conversation: Conversation) -> None:
        self.sessions.append_messages(conversation.id, [as_dict(message) for message in conversation.messages])

    def end(self, conversation: Conversation) -> None:
        self.sessions.end_session(conversation.id, "done")

    def settle(self) -> None:
        """Wait for the background index; checking its state now and then costs almost nothing."""
        while not self.sessions.index.state().complete:
            time.sleep(0.05)

    def search(self, text: str) -> list[str]:
        """Make the JSON text that a model receives."""
        answer: dict[str, Any] = self.memory.call("session_search", {"query": text, "limit": 3})
        json.dumps(answer, ensure_ascii=False)
        if not answer["success"]:
            raise RuntimeError(f"session_search failed: {answer['error']}")
        return [result["session_id"] for result in answer["results"]]

    def close(self) -> None:
        self.memory.close()


class Memoranda:
    """Memoranda of this checkout."""

    def open(self, home: Path) -> MemorandaStore:
        return MemorandaStore(home)

    def index_files(self, home: Path) -> list[Path]:
        return [path for path in home.rglob("*") if path.is_file() and "index" in str(path.relative_to(home))]


def as_dict(message: Message) -> dict[str, Any]:
    return {name: getattr(message, name) for name in Message.__dataclass_fields__}
