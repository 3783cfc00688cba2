"""The tasks of a conversation, stored with its record."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from memoranda.agent.todo_tool import Todo
    from memoranda.api.services import HomeServices
    from memoranda.api.session_record import SessionRecord
    from memoranda.home.session_db import SessionDB


class _State(Protocol):
    """The members of `SessionState` that the list needs."""

    @property
    def services(self) -> "HomeServices": ...
    @property
    def record(self) -> "SessionRecord": ...
    def follow_continuation(self) -> None: ...
    def open_record(self) -> "SessionDB": ...


class SessionTodos:
    """Reads and writes the `todo` list of the conversation that a session belongs to."""

    def __init__(self, state: _State) -> None:
        self._state = state

    def load(self) -> "list[Todo]":
        """The tasks in their order; none before the first one is saved."""
        from memoranda.agent.todo_tool import is_todo

        record = self._state.record
        stored = record.db.conversation_todos(record.id) if record.exists else None
        todos = json.loads(stored) if stored else []
        return [todo for todo in todos if is_todo(todo)] if isinstance(todos, list) else []

    def save(self, todos: "Sequence[Todo]") -> None:
        """Replace the list; it is durable when this returns. Credentials in it are redacted."""
        clean = [{name: self._state.services.redact(text) for name, text in todo.items()} for todo in todos]
        self._state.follow_continuation()
        self._state.open_record().save_conversation_todos(self._state.record.id, json.dumps(clean, ensure_ascii=False))

    def note(self) -> str:
        """The open tasks, for the summary of the conversation."""
        from memoranda.agent.todo_tool import describe_todos

        return describe_todos(self.load())
