"""A conversation of a framework as a session of the record: its messages, and the turn that native sessions have.

`memory/record/framework_objects.py` says how an object is stored; it comes back as it was. A conversation is opened as
a native session when it is first used, and stays open: prompt, tools, recall and providers are those of that session.
"""

import json
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from memoranda.api.checked_calls import call_tool
from memoranda.api.session_parts.options import SessionOptions
from memoranda.api.session_parts.record import strip_recall
from memoranda.api.session_parts.state import SessionState
from memoranda.external.external_memory import guarded
from memoranda.external.outbox.recorded_turns import LATEST
from memoranda.integrations.frameworks import prompt_recall
from memoranda.memory.record.framework_objects import join_names, object_fields
from memoranda.memory.record.message_rows import text_of
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import OWN_TOOLS, Tool

if TYPE_CHECKING:
    from memoranda.api.memory import Memory

_Item = TypeVar("_Item")
# So many conversations stay open; a server may have thousands, and each starts its own providers.
_MAX_OPEN = 100
_SPOKEN = ("user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """A conversation by its id; two objects with the same id, in any process, are the same conversation."""

    memory: "Memory"
    source: str
    id: str

    @classmethod
    def of(cls, memory: "Memory", source: str, *names: str) -> "RecordedSession":
        """The session of the names that a framework gives a conversation, for the user of the memory.

        Without names it is that of calls whose conversation is not known.
        """
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
        self.memory.sessions.append_messages(self.id, self.mark_turns(rows))
        self.deliver()

    def mark_turns(self, messages: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """The messages with marks for the providers: which turn each belongs to, and that it is complete.

        A turn begins with what the user says. It is complete with an answer that calls no tool and that nothing
        follows; the messages of one call may have several turns.
        """
        if not self.memory.config.providers:
            return messages
        external, is_last = self._open().external, True
        marked: list[Mapping[str, Any]] = []
        for message in reversed(messages):
            turn = None if message["role"] == "user" else LATEST
            marked.append({**message, **external.mark(turn, done=is_last and _is_answer(message))})
            if message["role"] in _SPOKEN:
                is_last = turn is None
        return marked[::-1]

    def deliver(self) -> None:
        """Let the providers have what was recorded, in the background."""
        if self.memory.config.providers:
            state = self._open()
            state.external.finish_turn(state.asked, self.id)

    def recorded_ids(self, external_ids: Sequence[str]) -> Collection[str]:
        """Which of these ids messages of the session have."""
        return self.memory.sessions.messages.get_external_ids([self.id], external_ids) if self.row() is not None else ()

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
        """Curated memory, and what the providers add, as it was when the conversation first asked for it."""
        row = self.row()
        if row is None or row.get("system_prompt") is None:
            state = self._open()
            parts = (prompt_recall.memory_prompt(self.memory), state.external.system_prompt())
            # An existing prompt is kept, so two processes that start the conversation read the same one.
            self.create(system_prompt="\n\n".join(filter(None, parts)), **state.frozen.as_columns())
            row = self.row()
        return str(row["system_prompt"] or "") if row is not None else ""

    # Memory never fails a reply.
    @guarded("", "Recall for a framework")
    def recall(self, prompt: str, seconds: float = prompt_recall.RECALL_SECONDS, turn: object = None) -> str:
        """What the model reads beside a prompt, in fenced blocks, within a deadline; "" for most prompts.

        What a native turn adds, such as what the providers recall, and what other conversations say about it. All
        calls with the same `turn`, whatever identifies it, get the same.
        """
        state = self._open()
        if turn is None or state.turn != turn:
            state.toolbox.begin_turn()
            state.recalled = prompt_recall.recall(
                self.memory, prompt, self.id, seconds=seconds, meanwhile=lambda: state.recall(prompt)
            )
            state.turn, state.asked = turn, prompt
        return state.recalled

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The memory tools, and those of the providers."""
        tools = self._open().tools
        return tuple(tool for tool in tools if tool.facts.for_hosts or tool.name not in OWN_TOOLS)

    def call(self, name: str, arguments: Any) -> str:
        """Call a tool, and return its answer as JSON text; a failure is an answer too."""
        if not self.is_known:
            self._open().toolbox.begin_turn()
        answer = call_tool(self.tools, name, arguments, self.memory.services.require_open)
        return json.dumps(answer, ensure_ascii=False)

    @property
    def is_known(self) -> bool:
        """Whether this is a conversation, and not just any call."""
        return not self.id.endswith(":")

    def _open(self) -> "_OpenSession":
        """The session as native programs open it, which starts the providers."""
        services = self.memory.services
        sessions: dict[str, _OpenSession] = services.conversations
        if (found := sessions.get(self.id)) is not None:
            return found
        services.require_open()
        options = SessionOptions(services.stored_name(self.source), self.memory.user)
        opened = _OpenSession(services, self.id, options, is_new=not self.is_known)
        if not self.is_known:
            opened.untrusted.caller = "a call without a session"
        kept = sessions.setdefault(self.id, opened)
        surplus = [sessions.pop(each) for each in list(sessions)[:-_MAX_OPEN]]
        for state in surplus if kept is opened else [*surplus, opened]:
            # Providers get their last deliveries meanwhile.
            threading.Thread(target=state.external.close, name="memoranda-close", daemon=True).start()
        return kept


class _OpenSession(SessionState):
    """A native session with its latest turn: what identifies it, its prompt, and what was recalled for that."""

    turn: object = None
    asked = recalled = ""


def _is_answer(message: Mapping[str, Any]) -> bool:
    """Whether the model has said something and calls no tool; some frameworks keep calls in the content."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    calls = any(isinstance(part, Mapping) and part.get("type") == "tool_use" for part in parts)
    said = message["role"] == "assistant" and not message.get("tool_calls") and not calls
    return said and bool(text_of(content).strip())


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
