"""The composition root and public face: `memoranda.open()` gives a `Memory`, a `Memory` gives sessions.

Everything is wired here and nowhere else. A session freezes its prompt when it begins; its tools write to disk at
once; its turns are recorded before anything else happens with them. Whoever owns a loop needs nothing deeper than this
module.
"""

import secrets
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from memoranda import config
from memoranda.curated.outcome import Origin
from memoranda.curated.settings import Target
from memoranda.curated.store import MemoryStore
from memoranda.curated.tool import MemoryTool
from memoranda.errors import SessionError
from memoranda.providers.external import ExternalMemory
from memoranda.providers.text import cleaned, plain_text
from memoranda.safety.fence import without_recalled
from memoranda.safety.redaction import Redactor
from memoranda.sessions.scope import Scope
from memoranda.support.home import Home
from memoranda.tools import JsonObject, Tool

if TYPE_CHECKING:
    # Loaded when sessions or search are first used: whoever only wants the prompt starts twice as fast.
    from memoranda.recall.session_db import SessionDB
    from memoranda.recall.summaries import Summarize
    from memoranda.recall.tool import SessionSearchTool


class Turn:
    """One exchange: the user's words are on disk when it begins, the answer when `done` returns.

    Left without `done`, by an error or a break, the turn is an interrupted one: what was recorded stays.
    """

    def __init__(self, session: "Session", text: Any) -> None:
        self.interrupted = True
        self._session = session
        self.message_id = session.record("user", text)
        self._ids = [self.message_id]
        session.leave_out(self._ids)
        # As it was recorded: what was kept out of the record is kept from an external memory too.
        self._asked = session.said([self.message_id]) if session.external.active else ""
        session.external.begin_turn(self._asked, session.id)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation so far as chat APIs take it, without the system prompt.

        What an external memory recalled is fenced into this copy of the user's message; the record never has it.
        """
        return self._session.external.with_recall(self._session.conversation())

    def record(self, role: str, content: Any = None, **fields: Any) -> int:
        """Record a step of the turn, such as a tool call or its result, before the next one is taken."""
        self._ids.append(self._session.record(role, content, **fields))
        self._session.leave_out(self._ids[-1:])
        return self._ids[-1]

    def done(self, reply: str | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> list[int]:
        """Record the answer: text, a message, or several messages in one commit."""
        if isinstance(reply, str):
            reply = [{"role": "assistant", "content": reply}]
        elif isinstance(reply, Mapping):
            reply = [{"role": "assistant", **reply}]
        ids = self._session.record_all(reply)
        self.interrupted = False
        self._ids += ids
        self._session.take_in(self._ids)
        session = self._session
        if session.external.active:
            key = f"turn:{session.id}:{self.message_id}"
            turn = session.conversation(self._ids)
            session.external.finish_turn(self._asked, session.said(ids[-1:]), session.id, turn, key)
        return ids

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing waits to be saved; a turn that is not done is not handed to an external memory."""


class Session:
    """One conversation: a prompt that never changes, tools whose writes are durable at once, and its record."""

    def __init__(self, memory: "Memory", session_id: str, *, source: str, model: str, user: str | None) -> None:
        self.id = session_id
        self.source = source
        self.model = model
        self.user = user
        self._memory = memory
        self._store = memory.curated_for(user)
        self._store.load_from_disk()
        self.external = memory.external_for(session_id, source=source, user=user)
        blocks = [self._store.format_for_system_prompt(target) for target in self._store.settings.targets()]
        blocks.append(self.external.system_prompt())
        self._prompt = "\n\n".join(block for block in blocks if block)
        self._memory_tool = MemoryTool(self._store, Origin("agent", session_id))
        self._begun = False
        self._left_out: set[int] = set()

    @property
    def prompt(self) -> str:
        """The memory blocks for the system prompt, byte-identical for the whole session; empty without entries."""
        return self._prompt

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What the model may call; a part that is switched off offers no tool."""
        return (*self._own_tools(), *self.external.tools())

    def _own_tools(self) -> tuple[Tool, ...]:
        search = self._memory.search_tool(self.user, self.id)
        own = [replace(tool, call=self._remembering) for tool in self._memory_tool.definitions()]
        return (*own, *search.definitions())

    def turn(self, text: Any) -> Turn:
        """Begin a turn: the user's message (text or structured content) is durable when this returns."""
        self.begin_turn()
        return Turn(self, text)

    def begin_turn(self) -> None:
        """Say that a new user message came in: failed memory calls are counted per turn. `turn` says it too."""
        self._memory_tool.begin_turn()

    def record(self, role: str, content: Any = None, **fields: Any) -> int:
        """Record one message of the conversation; it is durable when its id is returned."""
        return self.record_all([{"role": role, "content": content, **fields}])[0]

    def record_all(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """Record several messages in one commit. Recalled memory that somebody repeats is left out."""
        return self._record().append_messages(self.id, [_without_recalled(message) for message in messages])

    def conversation(self, only: Collection[int] | None = None) -> list[dict[str, Any]]:
        """What was recorded, as chat APIs take it; all of it, or some messages by their ids."""
        from memoranda.sessions.records import as_chat

        db = self._memory.sessions_for(self.user)
        if only is None:
            return db.get_messages_as_conversation(self.id)
        found = [db.get_message(number) for number in only]
        return [as_chat(message) for message in found if message is not None]

    def said(self, ids: Sequence[int]) -> str:
        """The text of some messages, as it was recorded."""
        return "\n".join(plain_text(message.get("content")) for message in self.conversation(ids))

    def leave_out(self, ids: Sequence[int]) -> None:
        """Messages that an external memory is not told of: a turn that is not done."""
        self._left_out.update(ids)

    def take_in(self, ids: Sequence[int]) -> None:
        """The turn is done after all."""
        self._left_out.difference_update(ids)

    def call(self, name: str, arguments: Mapping[str, Any]) -> JsonObject:
        """Call a tool as the model would; the answer is always a JSON object."""
        own = self._own_tools()
        # A provider is asked for its tools only when none of ours is meant.
        return _call(own if name in {tool.name for tool in own} else self.tools, name, arguments)

    def remember(self, text: str, target: Target = "memory") -> JsonObject:
        """Save a fact that the user asked to keep; the answer is a receipt."""
        receipt = _remember(self._store, text, target, self.id)
        self.external.mirror(receipt, self.id)
        return receipt

    def end(self, reason: str = "session_end") -> None:
        """Say that the conversation is over; opening a session with its id takes it up again."""
        db = self._memory.sessions_for(self.user) if self._begun else None
        numbered = db.get_numbered_conversation(self.id) if db else []
        conversation = [message for number, message in numbered if number not in self._left_out]
        if self._begun:
            self._record().end_session(self.id, reason)
            self._begun = False
        self.external.end(conversation, self.id)
        self._memory.forget(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def _remembering(self, arguments: Mapping[str, Any]) -> JsonObject:
        """The memory tool, whose writes an external memory hears of."""
        result = self._memory_tool.call(arguments)
        self.external.mirror(result, self.id)
        return result

    def _record(self) -> "SessionDB":
        """The store of this session's user; the session gets its row when something is first recorded."""
        db = self._memory.sessions_for(self.user)
        if not self._begun:
            db.create_session(self.id, self.source, model=self.model or None, system_prompt=self._prompt or None)
            db.reopen_session(self.id)
            self._begun = True
        return db


class Memory:
    """An opened home, for one user of it or for the home itself."""

    def __init__(
        self, home: Home, settings: config.Config, user: str | None = None, *, summarize: "Summarize | None" = None
    ) -> None:
        self.home = home
        self.config = settings
        self.user = user
        self.curated = self.curated_for(user)
        self.curated.load_from_disk()
        self._summarize = summarize
        self._memory_tool = MemoryTool(self.curated, Origin("agent"))
        self._opening = threading.Lock()
        self._open_sessions: set[Session] = set()
        self._db: SessionDB | None = None

    def session(
        self,
        *,
        source: str = "library",
        model: str = "",
        user: str | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Begin a session, or take one up by its id; its prompt is frozen now.

        `user` gives it the memory and the conversations of one user of a gateway.
        """
        whose = self.user if user is None else user
        session = Session(self, session_id or new_session_id(), source=source, model=model, user=whose)
        self._open_sessions.add(session)
        return session

    @property
    def sessions(self) -> "SessionDB":
        """The conversations of this user: everything that was recorded, and search over it."""
        return self.sessions_for(self.user)

    def search(self, query: str = "", **options: Any) -> JsonObject:
        """Find past conversations, with the exact messages; without a query, the latest ones.

        Options are those of the session_search tool: limit, since, until, source, role_filter, sort, session_id,
        around_message_id, window, cursor, why. Raises SessionError when they make no sense.
        """
        answer = self.search_tool(self.user).call({"query": query, **options})
        if not answer["success"]:
            raise SessionError(answer["error"])
        return answer

    @property
    def tools(self) -> tuple[Tool, ...]:
        return (*self._memory_tool.definitions(), *self.search_tool(self.user).definitions())

    def call(self, name: str, arguments: Mapping[str, Any]) -> JsonObject:
        """Call a tool as a model would, outside any session: a dict in, a dict out."""
        self._memory_tool.begin_turn()
        result = _call(self.tools, name, arguments)
        if name == "memory":
            self._tell_later(result)
        return result

    def entries(self, target: Target = "memory") -> tuple[str, ...]:
        """The live entries of MEMORY.md or USER.md as they may be shown."""
        return self.curated.entries(target)

    def remember(self, text: str, target: Target = "memory") -> JsonObject:
        """Save a fact because a person said so; the answer is a receipt: what, where, visible from when."""
        receipt = _remember(self.curated, text, target, "")
        self._tell_later(receipt)
        return receipt

    def close(self) -> None:
        """Close the session store; every write was durable when it was answered."""
        for session in list(self._open_sessions):
            session.external.close()
        with self._opening:
            if self._db is not None:
                self._db.close()
                self._db = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def forget(self, session: Session) -> None:
        """A session has ended and needs no closing."""
        self._open_sessions.discard(session)

    def _tell_later(self, result: JsonObject) -> None:
        """A write outside any session: the provider hears of it when it is next started."""
        if self.config.provider:
            from memoranda.providers.joining import queue_writes

            queue_writes(self.home.root, self.config.provider, self.config.external, result, self.user or "")

    def curated_for(self, user: str | None) -> MemoryStore:
        """The curated memory of one user."""
        return MemoryStore(self.home.memories(user), self.config.curated)

    def sessions_for(self, user: str | None) -> "SessionDB":
        """The conversations of one user; None is the home itself. The store is opened when it is first used."""
        from memoranda.recall.session_db import SessionDB

        with self._opening:
            if self._db is None:
                redactor = Redactor(config.known_secrets(self.home)) if self.config.redact_secrets else None
                self._db = SessionDB(self.home.state_db, redactor=redactor)
            return self._db.scoped(Scope.of(user))

    def external_for(self, session_id: str, *, source: str, user: str | None) -> ExternalMemory:
        """The external memory that is configured, for one session; without one it does nothing."""
        if not self.config.provider:
            return ExternalMemory()
        from memoranda.providers.joining import join

        return join(
            self.home.root, self.config.provider, self.config.external, session_id,
            lambda names: config.offer_secrets(self.home, names),
            platform=source, user_id=user or "", agent_identity=self.home.profile, agent_context="primary",
        )  # fmt: skip

    def search_tool(self, user: str | None, current_session_id: str | None = None) -> "SessionSearchTool":
        """The session_search tool for one user and, if there is one, the conversation that is going on."""
        from memoranda.recall.tool import SessionSearchTool

        return SessionSearchTool(
            lambda: self.sessions_for(user),
            self.config.recall,
            current_session_id=current_session_id,
            summarize=self._summarize,
        )


def open_memory(
    home: str | Path | None = None,
    *,
    profile: str | None = None,
    user: str | None = None,
    summarize: "Summarize | None" = None,
) -> Memory:
    """Open a home: the one given, else MEMORANDA_HOME, else ~/.memoranda. Nothing is written until you write.

    `summarize` is an option for search: a function from instructions and a transcript to a short text.
    """
    place = config.locate_home(home, profile)
    place.refuse_if_foreign()
    return Memory(place, config.load(place), user, summarize=summarize)


def new_session_id() -> str:
    """A name for a new session that sorts by time."""
    return f"{datetime.now(UTC):%Y%m%d_%H%M%S}_{secrets.token_hex(3)}"


def _without_recalled(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """An answer that repeats what was recalled is recorded without it; the user's words are never touched."""
    if message.get("role") != "assistant":
        return message
    return {**message, "content": cleaned(message.get("content"), without_recalled)}


def _call(tools: tuple[Tool, ...], name: str, arguments: Mapping[str, Any]) -> JsonObject:
    for tool in tools:
        if tool.name == name:
            return tool.call(arguments)
    offered = ", ".join(tool.name for tool in tools) or "none: memory is switched off"
    return {
        "success": False,
        "reason": "unavailable",
        "error": f"There is no tool {name!r} here (offered: {offered}).",
    }


def _remember(store: MemoryStore, text: str, target: Target, session_id: str) -> JsonObject:
    person = Origin("person", session_id, explicit=True)
    return MemoryTool(store, person).call({"target": target, "action": "add", "content": text})
