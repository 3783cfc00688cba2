"""Google's Agent Development Kit: its sessions and its memory in Memoranda, and the memory tools.

    runner = Runner(
        app_name="bakery",
        agent=agent,
        session_service=MemorandaSessionService(memory),
        memory_service=MemorandaMemoryService(memory),
    )

Needs the package google-adk (extra `google-adk`).
"""

import json
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from memoranda.agent.model_messages import INTERRUPTED_CALL
from memoranda.errors import SessionChangedError
from memoranda.integrations.frameworks import blocking_calls, prompt_recall
from memoranda.integrations.frameworks.missing_framework import missing_framework
from memoranda.integrations.frameworks.recorded_session import (
    RecordedSession,
    answer_calls,
    as_message,
    split_names,
    tool_call,
)
from memoranda.memory.record.framework_objects import join_names, original_of
from memoranda.memory.record.message_edits import StatefulAppend
from memoranda.memory.record.scope import Scope
from memoranda.types import PutItem

try:
    from google.adk.errors import StaleSessionError
    from google.adk.errors.already_exists_error import AlreadyExistsError
    from google.adk.errors.session_not_found_error import SessionNotFoundError
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig, ListSessionsResponse
    from google.adk.sessions.session import Session
    from google.adk.sessions.state import State
    from google.adk.tools.base_tool import BaseTool
    from google.genai import types
    from pydantic_core import to_jsonable_python
except ModuleNotFoundError as error:
    _missing = missing_framework("google-adk", error)
    AlreadyExistsError = SessionNotFoundError = Event = BaseMemoryService = SearchMemoryResponse = MemoryEntry = (
        _missing
    )
    BaseSessionService = GetSessionConfig = ListSessionsResponse = Session = State = BaseTool = types = _missing
    StaleSessionError = MemoryEntry = to_jsonable_python = _missing

if TYPE_CHECKING:
    from google.adk.models.llm_request import LlmRequest

    from memoranda.api.memory import Memory
    from memoranda.support.tool import Tool

SOURCE = "google-adk"
# Names of a session's fields that hold its state begin with this.
_STATE = "adk_state:"
_ALL, _PAGE = 100_000, 500
_log = logging.getLogger(__name__)


class MemorandaSessionService(BaseSessionService):
    """A `BaseSessionService`: each session is a conversation of the record of its user, found by search.

    An event is durable when `append_event` returns, with all state that it changes, or nothing of it is. State of the
    app and of a user are items of the home. The users are those of the home: none sees what another has said.
    """

    def __init__(self, memory: "Memory") -> None:
        """`memory` is opened without a user, because each call names one."""
        self._memory = _without_user(memory)

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        """Create a session; AlreadyExistsError if it exists."""
        name = (session_id or "").strip() or str(uuid4())
        return await blocking_calls.run_to_end(self._create, app_name, user_id, name, state or {})

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """The session with its events, or the latest of them, and its state; None when there is none."""
        return await blocking_calls.read(self._load, app_name, user_id, session_id, config)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """The sessions of an app, those of one user or of all, without their events; the latest last."""
        return await blocking_calls.read(self._list, app_name, user_id)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session; nothing happens if it does not exist."""
        recorded = _recorded(self._memory, app_name, user_id, session_id)
        await blocking_calls.run_to_end(self._delete, recorded)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """The state of a user in an app, without the prefix of its keys."""
        return await blocking_calls.read(_stored_state, self._memory.for_user(user_id), app_name)

    async def append_event(self, session: Session, event: Event) -> Event:
        """Record an event and the changes of state in it; StaleSessionError if the session has newer events."""
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        await blocking_calls.run_to_end(self._append, session, event)
        session.last_update_time = event.timestamp
        return self._commit_event_to_session(session, event)

    def _create(self, app_name: str, user_id: str, session_id: str, state: dict[str, Any]) -> Session:
        recorded = _recorded(self._memory, app_name, user_id, session_id)
        if recorded.row() is not None:
            raise AlreadyExistsError(f"Session with id {session_id} already exists.")
        app, user, own = _split_state(state)
        for memory, shared in ((self._memory, app), (recorded.memory, user)):
            # After a crash it may be there without the session; creating that again repairs it.
            if shared:
                memory.items.write(_puts(app_name, shared))
        now = time()
        recorded.create(started_at=now, project=app_name, **{f"{_STATE}{key}": own[key] for key in own})
        return self._session(app_name, user_id, session_id, own, now)

    def _load(
        self, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        recorded = _recorded(self._memory, app_name, user_id, session_id)
        row = recorded.row()
        if row is None:
            return None
        messages = recorded.messages()
        events = [event for message in messages if (event := _event(message)) is not None]
        state = _state_of(row)
        for event in events:
            # Events that the memory service recorded did not change the row.
            state |= _split_state(event.actions.state_delta or {})[2]
        session = self._session(app_name, user_id, session_id, state, _last_update(row, events))
        if config and config.after_timestamp:
            events = [event for event in events if event.timestamp >= config.after_timestamp]
        if config and config.num_recent_events is not None:
            events = events[-config.num_recent_events :] if config.num_recent_events else []
        session.events = answer_calls(events, _call_ids, _result_ids, _interrupted)
        session._storage_update_marker = str(messages[-1]["id"] if messages else 0)
        return session

    def _list(self, app_name: str, user_id: str | None) -> ListSessionsResponse:
        if not self._memory.services.has_record:
            return ListSessionsResponse()
        found: list[dict[str, Any]] = []
        prefix = join_names(SOURCE, user_id, app_name) + "/" if user_id is not None else f"{SOURCE}@"
        db = self._memory.sessions.scoped(Scope.everyone() if user_id is None else Scope.of(user_id))
        while page := db.list_sessions_with_prefix(prefix, _PAGE, after=found[-1]["id"] if found else None):
            found += page
        rows = [row for row in found if split_names(row["id"])[0] == app_name]
        rows.sort(key=lambda row: (row["last_active"], row["id"]))
        sessions = [
            self._session(app_name, row["user_id"], split_names(row["id"])[1], _state_of(row), row["last_active"])
            for row in rows
        ]
        return ListSessionsResponse(sessions=sessions)

    def _append(self, session: Session, event: Event) -> None:
        recorded = _recorded(self._memory, session.app_name, session.user_id, session.id)
        row = recorded.row()
        if row is None:
            raise SessionNotFoundError(f"Session {session.id} not found.")
        _refuse_stale(session, recorded, row)
        app, user, own = _split_state(event.actions.state_delta or {})
        seen = session._storage_update_marker
        try:
            # The check is repeated under the lock of the session: another process may have appended meanwhile.
            (last,) = StatefulAppend(recorded.memory.sessions.messages).append_with_state(
                recorded.id,
                recorded.mark_turns([_message(event)]),
                last_seen=None if seen is None else int(seen),
                extra_fields={f"{_STATE}{key}": own[key] for key in own},
                items=[
                    (self._memory.sessions.items, _puts(session.app_name, app)),
                    (recorded.memory.sessions.items, _puts(session.app_name, user)),
                ],
            )
        except SessionChangedError as error:
            raise _stale(session) from error
        session._storage_update_marker = str(last)
        recorded.deliver()

    def _session(self, app_name: str, user_id: str, session_id: str, state: dict[str, Any], updated: float) -> Session:
        app, user = _stored_state(self._memory, app_name), _stored_state(self._memory.for_user(user_id), app_name)
        merged = dict(state)
        merged |= {f"{State.APP_PREFIX}{key}": value for key, value in app.items()}
        merged |= {f"{State.USER_PREFIX}{key}": value for key, value in user.items()}
        session = Session(id=session_id, app_name=app_name, user_id=user_id, state=merged, last_update_time=updated)
        session._storage_update_marker = "0"
        return session

    def _delete(self, recorded: RecordedSession) -> None:
        if recorded.row() is not None:
            recorded.memory.sessions.delete_sessions([recorded.id])


class MemorandaMemoryService(BaseMemoryService):
    """A `BaseMemoryService`: a search finds what the user has said in any session of the app.

    With `MemorandaSessionService` every event is in memory when it is recorded; events of another session service are
    recorded when they are added.
    """

    def __init__(self, memory: "Memory") -> None:
        """`memory` is opened without a user, because each call names one."""
        self._memory = _without_user(memory)

    async def add_session_to_memory(self, session: Session) -> None:
        """Record the events of a session that are not there yet."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Record events that are not there yet."""
        recorded = _recorded(self._memory, app_name, user_id, session_id or "memory")
        rows = [_message(event) for event in events if event.content and event.content.parts and not event.partial]
        if rows:
            await blocking_calls.run_to_end(partial(recorded.create, project=app_name))
            await blocking_calls.run_to_end(recorded.append, rows)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """The messages that answer a query, from the user's sessions of the app."""
        return SearchMemoryResponse(memories=await blocking_calls.read(self._search, app_name, user_id, query))

    def _search(self, app_name: str, user_id: str, query: str) -> list[MemoryEntry]:
        if not query.strip() or not self._memory.services.has_record:
            return []
        answer = self._memory.for_user(user_id).search(query, source=SOURCE, project=app_name)
        return [
            MemoryEntry(
                id=str(message["id"]),
                author=message["role"],
                timestamp=message["when"],
                content=types.Content(
                    role="user" if message["role"] == "user" else "model",
                    parts=[types.Part(text=str(message["content"]))],
                ),
                custom_metadata={"session_id": split_names(result["session_id"])[1]},
            )
            for result in answer["results"]
            for message in result["messages"]
        ]


class RecallTool(BaseTool):
    """Adds relevant earlier conversations to the user's message of a request; the model never calls it.

    ADK's own `preload_memory` searches for every message; this adds only what is relevant enough, within a deadline.
    """

    def __init__(self, memory: "Memory", *, seconds: float = prompt_recall.RECALL_SECONDS) -> None:
        super().__init__(name="recall", description="recall")
        self._memory = _without_user(memory)
        self._seconds = seconds

    async def process_llm_request(self, *, tool_context: Any, llm_request: "LlmRequest") -> None:
        """Put what is recalled behind the user's message, in the request only."""
        parts = (tool_context.user_content.parts if tool_context.user_content else None) or []
        prompt = "\n".join(part.text for part in parts if part.text)
        session = tool_context.session
        recorded = _recorded(self._memory, session.app_name, session.user_id, session.id)
        block = await blocking_calls.read(recorded.recall, prompt, self._seconds, tool_context.invocation_id)
        if not block:
            return
        for number in reversed(range(len(llm_request.contents))):
            content = llm_request.contents[number]
            if content.role == "user" and any(part.text for part in content.parts or []):
                parts = [*(content.parts or []), types.Part(text=block)]
                llm_request.contents[number] = types.Content(role="user", parts=parts)
                return


def memory_tools(memory: "Memory") -> list[BaseTool]:
    """The memory tools, and those of the providers, for an agent; each call acts in its session, for its user."""
    home = _without_user(memory)
    return [_MemoryTool(home, tool) for tool in RecordedSession.of(home, SOURCE).tools]


class _MemoryTool(BaseTool):
    def __init__(self, memory: "Memory", tool: "Tool") -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._memory = memory
        self._parameters = tool.parameters

    def _get_declaration(self) -> Any:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._parameters
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        session = tool_context.session
        recorded = _recorded(self._memory, session.app_name, session.user_id, session.id)
        return {"result": await blocking_calls.run_to_end(recorded.call, self.name, args)}


def _without_user(memory: "Memory") -> "Memory":
    if memory.user is not None:
        raise ValueError(f"ADK names a user in each call, but this memory is that of {memory.user!r} only.")
    return memory


def _recorded(memory: "Memory", app_name: str, user_id: str, session_id: str) -> RecordedSession:
    return RecordedSession.of(memory.for_user(user_id), SOURCE, app_name, session_id)


def _puts(app_name: str, state: Mapping[str, Any]) -> list[PutItem]:
    return [PutItem((SOURCE, app_name), key, {"value": state[key]}, index=False) for key in state]


def _stored_state(memory: "Memory", app_name: str) -> dict[str, Any]:
    """The state of the app, or that of a user in it."""
    if not memory.services.has_record:
        return {}
    found = memory.items.search((SOURCE, app_name), None, limit=_ALL)
    return {hit.item.key: hit.item.value["value"] for hit in found if hit.item.namespace == (SOURCE, app_name)}


def _split_state(delta: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """State of the app, of the user and of the session; that of one invocation is not stored."""
    parts: tuple[dict[str, Any], ...] = ({}, {}, {})
    for key, value in to_jsonable_python(dict(delta), fallback=_as_text).items():
        if key.startswith(State.APP_PREFIX):
            parts[0][key.removeprefix(State.APP_PREFIX)] = value
        elif key.startswith(State.USER_PREFIX):
            parts[1][key.removeprefix(State.USER_PREFIX)] = value
        elif not key.startswith(State.TEMP_PREFIX):
            parts[2][key] = value
    return parts[0], parts[1], parts[2]


def _as_text(value: Any) -> str:
    _log.warning("A value of type %s in a session's state is stored as text.", type(value).__name__)
    return str(value)


def _state_of(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key.removeprefix(_STATE): row[key] for key in row if key.startswith(_STATE)}


def _last_update(row: Mapping[str, Any], events: Sequence[Event]) -> float:
    return float(events[-1].timestamp if events else row["started_at"])


def _refuse_stale(session: Session, recorded: RecordedSession, row: Mapping[str, Any]) -> None:
    marker = session._storage_update_marker
    if marker is None:
        # A session that another service has loaded.
        is_stale = row["last_active"] > session.last_update_time
    else:
        is_stale = bool(recorded.memory.sessions.get_messages(recorded.id, after=int(marker)))
    if is_stale:
        raise _stale(session)


def _stale(session: Session) -> Exception:
    error: Exception = StaleSessionError(f"Session {session.id} has newer events than this copy of it. Load it again.")
    return error


def _message(event: Event) -> dict[str, Any]:
    original = event.model_dump(mode="json", exclude_none=True, by_alias=True)
    parts: list[dict[str, Any]] = (original.get("content") or {}).get("parts") or []
    fields: dict[str, Any] = {"external_id": event.id, "timestamp": event.timestamp}
    role = "user" if event.author == "user" else "assistant"
    path: tuple[str | int, ...] = ("content", "parts") if parts else ()
    if calls := event.get_function_calls():
        fields["tool_calls"] = [tool_call(call.id, call.name, call.args) for call in calls]
    if responses := event.get_function_responses():
        role, fields["tool_call_id"] = "tool", responses[0].id
        response = parts[0].get("functionResponse", {}).get("response", {}) if len(parts) == 1 else {}
        texts = [key for key in response if isinstance(response[key], str)]
        path = ("content", "parts", 0, "functionResponse", "response", texts[0]) if len(texts) == 1 else path
    return as_message(original, role, path, **fields)


def _call_ids(event: Event) -> list[str]:
    """The ids of calls that end before the next event; a long-running tool answers later."""
    later = event.long_running_tool_ids or set()
    return [call.id for call in event.get_function_calls() if call.id and call.id not in later]


def _result_ids(event: Event) -> list[str]:
    return [response.id for response in event.get_function_responses() if response.id]


def _interrupted(event: Event, ids: Sequence[str]) -> list[Event]:
    names = {call.id: call.name for call in event.get_function_calls()}
    answer = json.loads(INTERRUPTED_CALL)
    parts = [
        types.Part(function_response=types.FunctionResponse(id=each, name=names[each], response=answer)) for each in ids
    ]
    added = {"id": f"{event.id}-interrupted", "content": types.Content(role="user", parts=parts)}
    return [Event(author=event.author, invocation_id=event.invocation_id, timestamp=event.timestamp, **added)]


def _event(message: Mapping[str, Any]) -> Event | None:
    original = original_of(message)
    return Event.model_validate(original) if original is not None else None
