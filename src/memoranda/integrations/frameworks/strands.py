"""Strands Agents: its sessions in Memoranda, recall for its prompts, and the memory tools.

    manager = RepositorySessionManager("oven", MemorandaRepository(memory))
    agent = Agent(model, tools=memory_tools(memory), hooks=[MemorandaRecall(memory)], session_manager=manager)

Needs the package strands-agents (extra `strands`).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memoranda.integrations.frameworks import blocking_calls, prompt_recall
from memoranda.integrations.frameworks.missing_framework import missing_framework
from memoranda.integrations.frameworks.recorded_session import RecordedSession, as_message, tool_call
from memoranda.memory.record.framework_objects import original_of
from memoranda.memory.record.message_rows import text_of

try:
    from strands.hooks import AfterModelCallEvent, BeforeModelCallEvent, HookProvider, HookRegistry
    from strands.session import SessionRepository
    from strands.tools import PythonAgentTool
    from strands.types.exceptions import SessionException
    from strands.types.session import Session, SessionAgent, SessionMessage
except ModuleNotFoundError as error:
    _missing = missing_framework("strands", error)
    AfterModelCallEvent = BeforeModelCallEvent = HookProvider = HookRegistry = SessionRepository = _missing
    PythonAgentTool = SessionException = Session = SessionAgent = SessionMessage = _missing

if TYPE_CHECKING:
    from strands.multiagent import MultiAgentBase

    from memoranda.api.memory import Memory
    from memoranda.support.tool import Tool

SOURCE = "strands"
# Fields of a session's row that only this adapter reads.
_SESSION, _AGENT, _GRAPH = "strands_session", "strands_agent", "strands_graph"


class MemorandaRepository(SessionRepository):
    """A `SessionRepository`: each agent of a session is a conversation of the record, found by search.

    A message is durable when the call returns. A message that a guardrail redacts is found by its new text only.
    """

    def __init__(self, memory: "Memory") -> None:
        self._memory = memory

    def create_session(self, session: Session, **kwargs: Any) -> Session:
        """Create a session; SessionException if it exists."""
        stored = self._session(session.session_id)
        if self.read_session(session.session_id) is not None:
            raise SessionException(f"Session {session.session_id} already exists")
        stored.create()
        self._memory.sessions.set_extra_fields(stored.id, **{_SESSION: session.to_dict()})
        return session

    def read_session(self, session_id: str, **kwargs: Any) -> Session | None:
        """The session of an id; None when there is none."""
        found = _field(self._session(session_id), _SESSION)
        return Session.from_dict(found) if found is not None else None

    def delete_session(self, session_id: str, **kwargs: Any) -> None:
        """Delete a session with the conversations of its agents; SessionException if it does not exist."""
        stored = self._session(session_id)
        if stored.row() is None:
            raise SessionException(f"Session {session_id} does not exist")
        below: list[str] = []
        while page := self._memory.sessions.list_sessions_with_prefix(
            f"{stored.id}/", after=below[-1] if below else None
        ):
            below += [row["id"] for row in page]
        self._memory.sessions.delete_sessions([*below, stored.id])

    def create_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        self._require_session(session_id)
        stored = self._agent(session_id, session_agent.agent_id)
        stored.create()
        self._memory.sessions.set_extra_fields(stored.id, **{_AGENT: session_agent.to_dict()})

    def read_agent(self, session_id: str, agent_id: str, **kwargs: Any) -> SessionAgent | None:
        """The agent of an id with its state; None when there is none."""
        found = _field(self._agent(session_id, agent_id), _AGENT)
        return SessionAgent.from_dict(found) if found is not None else None

    def update_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        """Store the state of an agent; SessionException if it does not exist."""
        previous = self._require_agent(session_id, session_agent.agent_id)
        session_agent.created_at = previous.created_at
        stored = self._agent(session_id, session_agent.agent_id)
        self._memory.sessions.set_extra_fields(stored.id, **{_AGENT: session_agent.to_dict()})

    def create_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:
        """Record a message of an agent; one with the same number is stored once."""
        self._require_agent(session_id, agent_id)
        self._agent(session_id, agent_id).append([_message(session_message)])

    def read_message(self, session_id: str, agent_id: str, message_id: int, **kwargs: Any) -> SessionMessage | None:
        """The message with a number; None when there is none."""
        messages = self._agent(session_id, agent_id).messages()
        found = (message for message in messages if message.get("external_id") == str(message_id))
        return next(map(_session_message, found), None)

    def update_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:
        """Replace a message, as a guardrail does; the store's `restore_replaced` undoes it."""
        stored = self._agent(session_id, agent_id)
        messages, number = stored.messages(), str(session_message.message_id)
        previous = next((message for message in messages if message.get("external_id") == number), None)
        if previous is None:
            raise SessionException(f"Message {number} does not exist")
        session_message.created_at = _session_message(previous).created_at
        rows = [_message(session_message) if message is previous else _copy(message) for message in messages]
        stored.replace(rows, last_seen=messages[-1]["id"])

    def list_messages(
        self, session_id: str, agent_id: str, limit: int | None = None, offset: int = 0, **kwargs: Any
    ) -> list[SessionMessage]:
        """The messages of an agent in the order of their numbers; SessionException if it does not exist."""
        self._require_agent(session_id, agent_id)
        messages = [_session_message(each) for each in self._agent(session_id, agent_id).messages() if _is_ours(each)]
        end = None if limit is None else offset + limit
        return sorted(messages, key=lambda message: message.message_id)[offset:end]

    def create_multi_agent(self, session_id: str, multi_agent: "MultiAgentBase", **kwargs: Any) -> None:
        """Store the state of a graph or swarm."""
        self._require_session(session_id)
        fields = {f"{_GRAPH}_{multi_agent.id}": multi_agent.serialize_state()}
        self._memory.sessions.set_extra_fields(self._session(session_id).id, **fields)

    def read_multi_agent(self, session_id: str, multi_agent_id: str, **kwargs: Any) -> dict[str, Any] | None:
        """The state of a graph or swarm; None when there is none."""
        found: dict[str, Any] | None = _field(self._session(session_id), f"{_GRAPH}_{multi_agent_id}")
        return found

    def update_multi_agent(self, session_id: str, multi_agent: "MultiAgentBase", **kwargs: Any) -> None:
        """Store the state of a graph or swarm; SessionException if it does not exist."""
        if self.read_multi_agent(session_id, multi_agent.id) is None:
            raise SessionException(f"MultiAgent state {multi_agent.id} in session {session_id} does not exist")
        self.create_multi_agent(session_id, multi_agent)

    def _session(self, session_id: str) -> RecordedSession:
        return RecordedSession.of(self._memory, SOURCE, session_id)

    def _agent(self, session_id: str, agent_id: str) -> RecordedSession:
        return RecordedSession.of(self._memory, SOURCE, session_id, agent_id)

    def _require_session(self, session_id: str) -> None:
        if self.read_session(session_id) is None:
            raise SessionException(f"Session {session_id} does not exist")

    def _require_agent(self, session_id: str, agent_id: str) -> SessionAgent:
        found = self.read_agent(session_id, agent_id)
        if found is None:
            raise SessionException(f"Agent {agent_id} in session {session_id} does not exist")
        return found


class MemorandaRecall(HookProvider):
    """A hook: the model reads what is relevant to the user's message at its end; the agent does not keep it."""

    def __init__(self, memory: "Memory", *, seconds: float = prompt_recall.RECALL_SECONDS) -> None:
        """After `seconds` the model is called without what would be recalled."""
        self._memory = memory
        self._seconds = seconds

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Add what is recalled before each call of the model, and remove it afterwards."""
        registry.add_callback(BeforeModelCallEvent, self._add)
        registry.add_callback(AfterModelCallEvent, self._remove)

    async def _add(self, event: BeforeModelCallEvent) -> None:
        self._remove(event)  # A cancelled call has left it.
        messages, session = event.agent.messages, _session_of(self._memory, event.agent)
        # The latest message that the user wrote; results of tools come in the same role.
        written = (
            number for number, each in enumerate(messages) if each["role"] == "user" and text_of(each["content"])
        )
        number = max(written, default=None)
        if number is None:
            return
        text = text_of(messages[number]["content"])
        if recalled := await blocking_calls.read(session.recall, text, self._seconds, (number, text)):
            messages[number]["content"].append(_Recalled(text=recalled))

    def _remove(self, event: AfterModelCallEvent | BeforeModelCallEvent) -> None:
        for message in event.agent.messages:
            message["content"][:] = [part for part in message["content"] if not isinstance(part, _Recalled)]


class _Recalled(dict[str, Any]):
    """A part of a message that was added for one call of the model."""


def memory_tools(memory: "Memory") -> list[PythonAgentTool]:
    """The memory tools, and those of the providers, as tools of an agent; a call acts in the agent's session."""

    def wrap(tool: "Tool") -> PythonAgentTool:
        def call(tool_use: Any, **kwargs: Any) -> Any:
            answer = _session_of(memory, kwargs.get("agent")).call(tool.name, tool_use["input"])
            return {"toolUseId": tool_use["toolUseId"], "status": "success", "content": [{"text": answer}]}

        schema: Any = {"json": tool.parameters}
        return PythonAgentTool(
            tool.name, {"name": tool.name, "description": tool.description, "inputSchema": schema}, call
        )

    return [wrap(tool) for tool in RecordedSession.of(memory, SOURCE).tools]


def _session_of(memory: "Memory", agent: Any) -> RecordedSession:
    """The conversation of an agent; one without names when it is stored elsewhere."""
    session_id = getattr(getattr(agent, "_session_manager", None), "session_id", "")
    return RecordedSession.of(memory, SOURCE, *([session_id, agent.agent_id] if session_id else []))


def _field(stored: RecordedSession, name: str) -> Any:
    return (stored.row() or {}).get(name)


def _message(session_message: SessionMessage) -> dict[str, Any]:
    original = session_message.to_dict()
    key = "message" if session_message.redact_message is None else "redact_message"
    parts: Any = original[key]["content"]
    path: tuple[str | int, ...] = (key, "content")
    role, fields = str(original[key]["role"]), {}
    if results := [part["toolResult"] for part in parts if "toolResult" in part]:
        role = "tool"
        fields["tool_call_id"] = results[0].get("toolUseId")
        if len(parts) == 1:
            path = (key, "content", 0, "toolResult", "content")
    if calls := [part["toolUse"] for part in parts if "toolUse" in part]:
        fields["tool_calls"] = [tool_call(each["toolUseId"], each["name"], each["input"]) for each in calls]
    return as_message(original, role, path, external_id=str(session_message.message_id), **fields)


def _session_message(message: Mapping[str, Any]) -> SessionMessage:
    return SessionMessage.from_dict(original_of(message) or {})


def _is_ours(message: Mapping[str, Any]) -> bool:
    return original_of(message) is not None


def _copy(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as it was recorded, to be recorded again in a replaced conversation."""
    if _is_ours(message):
        return _message(_session_message(message))
    return {"role": message["role"], "content": message["content"]}
