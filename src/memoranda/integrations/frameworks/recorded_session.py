"""A conversation of a framework as a session of the record: its id, and its objects as messages.

`memory/record/framework_objects.py` says how an object is stored; it comes back as it was.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from memoranda.api.session_parts.record import strip_recall
from memoranda.integrations.frameworks import prompt_recall
from memoranda.memory.record.framework_objects import join_names, object_fields
from memoranda.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from memoranda.api.memory import Memory

_Item = TypeVar("_Item")


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


def split_names(session_id: str) -> list[str]:
    """The names that an id was made of."""
    return [unquote(part) for part in session_id.partition(":")[2].split("/")]


def as_message(original: Mapping[str, Any], role: str, path: Sequence[str | int] = (), **fields: Any) -> dict[str, Any]:
    """A message for the record; `path` leads to the content, by keys and numbers, and `fields` are columns.

    Recalled memory that the model repeats is left out, as from every message.
    """
    return dict(strip_recall({"role": role, **object_fields(original, path), **fields}))


def answer_calls(
    items: Sequence[_Item],
    calls: Callable[[_Item], Sequence[str]],
    results: Callable[[_Item], Sequence[str]],
    interrupted: Callable[[_Item, Sequence[str]], Iterable[_Item]],
) -> list[_Item]:
    """The items of a conversation with a result for every call, because chat APIs refuse a call without one.

    `calls` and `results` return the ids of calls that an item makes and answers. `interrupted` makes the results that
    an interruption has left out; they come right after the call and the results that follow it.
    """
    answered: set[str] = set()
    missing: dict[int, Sequence[str]] = {}
    for number in reversed(range(len(items))):
        answered.update(results(items[number]))
        made = calls(items[number])
        if unanswered := [call_id for call_id in made if call_id not in answered]:
            missing[number] = unanswered
        # Some models use the same id again in every turn.
        answered.difference_update(made)
    complete: list[_Item] = []
    added: list[_Item] = []
    for number, item in enumerate(items):
        if not results(item):
            complete += added
            added = []
        complete.append(item)
        added += interrupted(item, missing[number]) if number in missing else ()
    return complete + added


def call_ids(message: Mapping[str, Any]) -> list[str]:
    """The ids of the calls in a message of the record."""
    calls = message.get("tool_calls")
    ids = [call.get("id") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return [call_id for call_id in ids if isinstance(call_id, str)]


def result_ids(message: Mapping[str, Any]) -> list[str]:
    """The id of the call that a message of the record answers."""
    call_id = message.get("tool_call_id")
    return [call_id] if isinstance(call_id, str) else []


def tool_call(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    """A call of a tool as a message of the record lists it, so that a search finds its arguments."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
