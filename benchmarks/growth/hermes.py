"""The worker for Hermes Agent, run by Hermes's own interpreter; it uses only names that Hermes offers to callers.

Hermes requires every typed word, so a question as typed finds nothing. It gets what a practised model would write: the
words of the question without stop words, joined by OR.
"""

import importlib
import json
import re
from pathlib import Path
from typing import Any

from benchmarks.growth.conversation import Conversation
from benchmarks.growth.fts5 import STOP_WORDS
from benchmarks.growth.tasks import serve
from benchmarks.sessions.corpus import Message

_WORD = re.compile(r"\w+")


class HermesStore:
    """A home of Hermes."""

    def __init__(self, db: Any, search: Any) -> None:
        self._db = db
        self._search = search

    def contains(self, conversation: Conversation) -> bool:
        """Nothing is skipped: replacing the messages of a session twice gives the same."""
        return False

    def create(self, conversation: Conversation) -> None:
        self._db.create_session(conversation.id, conversation.source, system_prompt=conversation.system_prompt)
        self._db.set_session_title(conversation.id, conversation.title)

    def append_all(self, conversation: Conversation) -> None:
        """Hermes has no batch append; this is its only way to write many messages in one commit."""
        self._db.replace_messages(conversation.id, [_as_dict(message) for message in conversation.messages])

    def end(self, conversation: Conversation) -> None:
        self._db.end_session(conversation.id, "done")

    def settle(self) -> None:
        """Nothing to wait for: Hermes indexes inside the append."""

    def search(self, text: str) -> list[str]:
        words = [word for word in _WORD.findall(text) if word.casefold() not in STOP_WORDS]
        query = text if text.startswith('"') else " OR ".join(words)
        answer = json.loads(self._search(query=query, limit=3, db=self._db))
        return [result["session_id"] for result in answer["results"]]

    def close(self) -> None:
        self._db.close()


class Hermes:
    """Hermes of this environment."""

    def __init__(self) -> None:
        # Not installed where our code is checked, so imported by name.
        self._state: Any = importlib.import_module("hermes_state")
        self._tool: Any = importlib.import_module("tools.session_search_tool")

    def open(self, home: Path) -> HermesStore:
        home.mkdir(parents=True, exist_ok=True)
        return HermesStore(self._state.SessionDB(home / "state.db"), self._tool.session_search)

    def index_files(self, home: Path) -> list[Path]:
        """None: the index is in the file of the messages."""
        return []


def _as_dict(message: Message) -> dict[str, Any]:
    return {name: getattr(message, name) for name in Message.__dataclass_fields__}


if __name__ == "__main__":
    serve(Hermes())
