"""One conversation of a framework as a session of the record, which begins with its first message."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memoranda.integrations.frameworks import prompt_recall
from memoranda.integrations.frameworks.session_names import join_names

if TYPE_CHECKING:
    from memoranda.api.memory import Memory


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """A conversation by its id; two objects with the same id, in any process, are the same conversation."""

    memory: "Memory"
    source: str
    id: str

    @classmethod
    def of(cls, memory: "Memory", source: str, *names: str) -> "RecordedSession":
        """The session of the names that a framework gives a conversation, for the user of the memory."""
        return cls(memory, source, join_names(source, memory.user, *names))

    def row(self) -> dict[str, Any] | None:
        """What the record knows about the session; None when it does not exist."""
        # Reading must not create the record of an empty home.
        return self.memory.sessions.get_session(self.id) if self.memory.services.has_record else None

    def messages(self) -> list[dict[str, Any]]:
        """The messages in their order; none of a session that does not exist."""
        return self.memory.sessions.get_messages(self.id) if self.row() is not None else []

    def append(self, messages: Iterable[Mapping[str, Any]]) -> None:
        """Record messages, all of them or none; those with an `external_id` that is there already are left out."""
        rows = list(messages)
        if not rows:
            return
        self.create()
        self.memory.sessions.append_messages(self.id, rows)

    def create(self, **fields: Any) -> None:
        """Create the session if it does not exist; `fields` are columns, or fields that only the adapter reads."""
        if fields or self.row() is None:
            self.memory.sessions.create_session(self.id, self.source, **fields)

    def replace(self, messages: Iterable[Mapping[str, Any]], last_seen: int | None = None, **fields: Any) -> None:
        """Replace all messages; `restore_replaced` of the store undoes it. Nothing happens after a newer message.

        `fields`, which only the adapter reads, change in the same transaction, and an undo does not change them back.
        """
        self.create()
        self.memory.sessions.replace_messages(self.id, messages, last_seen=last_seen, extra_fields=fields)

    def prompt(self) -> str:
        """Curated memory as it was when the conversation first asked for it, so that its prompt never changes."""
        row = self.row()
        if row is None or row.get("system_prompt") is None:
            # An existing prompt is kept, so two processes that start the conversation read the same one.
            self.create(system_prompt=prompt_recall.memory_prompt(self.memory))
            row = self.row()
        return str(row["system_prompt"] or "") if row is not None else ""

    def recall(self, prompt: str, seconds: float) -> str:
        """What other conversations say about a prompt, within a deadline; "" for most prompts."""
        return prompt_recall.recall(self.memory, prompt, self.id, seconds=seconds)
