"""One conversation: a prompt that stays the same, tools whose writes are durable at once, and its record."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, cast
from weakref import ref

from memoranda.api.checked_calls import NotAsync, call_tool, remember, require_messages, require_question
from memoranda.api.services import HomeServices, new_session_id
from memoranda.api.session_parts.options import SessionOptions
from memoranda.api.session_parts.state import SessionState, SessionTodos
from memoranda.api.turn import Turn
from memoranda.errors import SessionBusyError, StorageError
from memoranda.external.external_memory import ExternalMemory
from memoranda.memory.curated.settings import Target
from memoranda.support.tool import JsonObject, Tool

if TYPE_CHECKING:
    # Loaded when they are first used: a caller that only wants the prompt starts twice as fast.
    from memoranda.agent.compression.trigger import BoundaryReason
    from memoranda.agent.session_views import Compression, RevertedChange, SavedChange, UndoneTurn
    from memoranda.api.session_parts.state import ReviewedSession
    from memoranda.models.model import ChatModel, Usage
    from memoranda.storage.engine import HeldLock
    from memoranda.types import ChatMessage, MemoryAnswer

_log = logging.getLogger(__name__)


class Session(NotAsync):
    """One conversation. After compression it is the same object with another `id` and another prompt."""

    def __init__(
        self,
        services: HomeServices,
        session_id: str,
        options: SessionOptions,
        *,
        is_new: bool,
        follows: "Session | None" = None,
        external: ExternalMemory | None = None,
    ) -> None:
        """`follows` is the session that this one branches off or replaces, from which it may get its `external`."""
        self.source, self.user = options.source, options.user
        self._services = services
        self._state = SessionState(services, session_id, options, is_new=is_new, external=external)
        if follows is None:
            self._state.notify_boundary("resume" if self._state.record.exists else "start")
        self._chat_model: ChatModel | None = None
        # The usage of a call whose answer is not recorded yet.
        self._uncounted: Usage | None = None
        self._ended = False
        # The latest turn; weak, so that a turn which its caller has dropped ends.
        self._latest_turn: ref[Turn] | None = None

    @property
    def id(self) -> str:
        return self._state.id

    @property
    def model(self) -> str:
        """The name of the model that answers, as far as it is known."""
        return self._state.model

    @property
    def prompt(self) -> str:
        """The system prompt, byte-identical until the conversation is compressed."""
        return self._state.prompt

    def freeze_prompt(self) -> str:
        """Store the prompt with the session now, instead of with its first message, and return it.

        For a service that sends the prompt to a program which records the messages later.
        """
        self._state.freeze()
        return self.prompt

    @property
    def notices(self) -> tuple[str, ...]:
        """What was left out of the prompt, and why, for a person."""
        return self._state.frozen.prompt.notices

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What the model may call; a part that is switched off offers no tool."""
        return self._state.tools

    @property
    def external(self) -> ExternalMemory:
        """The external memory of this session; without a provider it does nothing."""
        return self._state.external

    def turn(self, text: Any, *, wait: float | None = None, external_id: str | None = None) -> Turn:
        """Begin a turn: the user's message (text or structured content) is durable when this returns.

        A conversation has one turn at a time, over all threads and processes. While another one is in progress, this
        waits for up to `wait` seconds (the setting sessions.turn_wait), then raises SessionBusyError. A turn after
        `end` resumes the session: a late message of the user is never lost. Raises SessionError for an empty message.
        `external_id` is your id of the message: a second turn with it, after a crash, continues the first one.
        """
        require_question(text)
        lock = self._lock_turn(wait)
        try:
            self.begin_turn()
            self._state.follow_record()
            if self._ended:
                self._state.restart_external()
                self._ended = False
            turn = Turn(self._state, text, lock=lock, record=self.record_all, external_id=external_id)
        except BaseException:
            lock.release()
            raise
        self._latest_turn = ref(turn)
        return turn

    def allows(self, tool: str) -> bool:
        """Whether the platform of this session has a tool."""
        return self._state.toolbox.allows(tool)

    def begin_turn(self) -> None:
        """Reset the count of failed memory calls for a new user message; `turn` calls this itself."""
        self._state.toolbox.begin_turn()

    def record(self, /, role: str, content: Any = None, **fields: Any) -> int:
        """Record one message of the conversation; it is durable when its id is returned.

        `fields` are those of a chat API (tool_calls, tool_call_id, tool_name, finish_reason, reasoning …); others are
        kept too. Raises SessionError for an unknown role and for a tool's result without tool_call_id.
        """
        return self.record_all([{"role": role, "content": content, **fields}])[0]

    def record_all(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """Record several messages in one commit. Recalled memory that the model repeats is left out.

        Raises SessionError like `record`.
        """
        require_messages(messages)
        ids = self._state.append(messages)
        if self._uncounted is not None and messages and messages[0].get("role") == "assistant":
            self._store_reading(self._uncounted, ids[0])
            self._uncounted = None
        return ids

    def conversation(self) -> "list[ChatMessage]":
        """The recorded messages in the form that chat APIs accept.

        A call that was interrupted has a result that says so, and a question without an answer a note; the record keeps
        what really happened.
        """
        return cast("list[ChatMessage]", self._state.conversation())

    def call(self, name: str, arguments: Mapping[str, Any]) -> JsonObject:
        """Call a tool as the model would; the answer is always a JSON object, a refusal when the home was closed."""
        return call_tool(self.tools, name, arguments, self._services.require_open)

    def distrust_caller(
        self, name: str, heard: Callable[[], Sequence[str]] = tuple, project: str | None = None
    ) -> None:
        """Say that a program calls the tools of this session and does not record what its user says.

        Whatever it saves may come from elsewhere, so what would change behaviour waits for a person, unless the words
        that the user is known to have said support it: `heard` is asked for them. `project` is the one that the program
        works in, as sessions record it.
        """
        self._state.untrusted.caller, self._state.untrusted.heard = name, heard
        self._state.work_in(project)

    def remember(self, text: str, target: Target = "memory", *, key: str = "", until: str = "") -> "MemoryAnswer":
        """Save a fact that the user asked to keep; the answer is a receipt. Raises HomeError in a closed home.

        `key` and `until` are those of `Memory.remember`.
        """
        self._services.require_open()
        return remember(self._state.store, text, target, self.id, key=key, until=until)

    def entries(self, target: Target = "memory") -> tuple[str, ...]:
        """The live entries of MEMORY.md, USER.md or, with "project", of the project, as they may be shown."""
        return self._state.store.entries(target)

    # The methods below are for loops that watch the context, and for chats.

    def use_model(self, model: "ChatModel", *, reserved: int = 0) -> None:
        """Set the model that answers: its window decides when the context is full, and it writes the summaries.

        `reserved` is how many tokens of the window an answer may use.
        """
        self._chat_model = model
        self._state.toolbox.use_model(model)
        self._state.model = model.name
        usage = self._state.compressor.usage
        usage.window, usage.reserved = model.window, reserved

    def note_usage(self, usage: "Usage", *, model: str, provider: str) -> None:
        """Store what a call used, which also says how full the context is; it never fails the turn."""
        self._uncounted = usage
        self._services.count_usage(self.user, self.id, usage, model=model, provider=provider)

    def compress(self, *, force: bool = False, focus: str = "") -> "Compression":
        """Shorten the context if it is full, or at once when `force`; `focus` is what to keep above all."""
        from memoranda.agent.session_views import Compression

        if not self._state.record.exists:
            return Compression(False, "The conversation has no messages yet.")
        self._state.follow_continuation()
        compressor, db = self._state.compressor, self._state.record.db
        if not force and not compressor.is_due(self._state, db):
            return Compression(False, "The context has room left.")
        model = self._chat_model
        if model is not None:
            model = self._services.metered(model, "compression", lambda: self.id, self.user, background=True)
        return compressor.compress(self._state, db, model, new_session_id(), focus=focus, force=force)

    @property
    def title(self) -> str | None:
        """The conversation's name for people."""
        return self._state.record.db.get_session_title(self.id) if self._state.record.exists else None

    def rename(self, title: str) -> str | None:
        """Set the title, cleaned up; a blank one removes it. Raises SessionError when another session has the title."""
        self._state.follow_continuation()
        self._state.open_record().set_session_title(self.id, title or None)
        return self.title

    def undo(self, *, wait: float | None = None) -> "UndoneTurn | None":
        """Undo the last turn, the user's message and everything after it; None when there is none.

        What the turn saved in memory and skills is listed in the result, and stays: `revert` reverts it.
        Raises SessionBusyError when a turn is in progress for more than `wait` seconds.
        """
        from memoranda.agent.session_views import UndoneTurn
        from memoranda.memory.record.message_rows import text_of

        if not self._state.record.exists:
            return None
        lock = self._lock_turn(wait)
        try:
            self._state.follow_continuation()
            question = self._state.record.last_undoable()
            if question is None:
                return None
            saved = self._state.saved_since(question.id)
            rewound = self._state.open_record().rewind_to_message(self.id, question.id)
            self._state.after_rewind()
        finally:
            lock.release()
        return UndoneTurn(text_of(question.message.get("content")), int(rewound["rewound_count"]), saved)

    def revert(self, changes: "Sequence[SavedChange]") -> "list[RevertedChange]":
        """Revert what an undone turn saved, the latest change first; what was changed again since is refused."""
        from memoranda.api.session_parts.writes import revert_changes

        return list(revert_changes(self._state.store, self._services.skills_for(self.user), changes))

    def branch(self, title: str = "") -> "Session":
        """Start a new session with the same context and the same prompt."""
        self._state.follow_continuation()
        branch = self._state.open_record().branch_session(self.id, new_session_id(), title or None)
        options = self._state.options
        session = Session(
            self._services,
            branch.session_id,
            replace(options, model=self.model, parent=None, relation=None, external=True),
            is_new=False,
            follows=self,
        )
        session.external.switch(session.id, self.id, "branch")
        session._state.notify_boundary("branch", self.id)
        return session

    @property
    def todos(self) -> SessionTodos:
        """The list of tasks of the conversation, which the agent's `todo` tool reads and writes."""
        return SessionTodos(self._state)

    def reset(self, title: str = "", *, reason: str = "reset") -> "Session":
        """End this conversation and return a new one with the same options, for `/reset` and `/new` of a chat.

        The external memory stays attached: it receives the end of this conversation, and then the new id with
        `reset=True` and the reason. Raises SessionError when another session has the title; nothing has ended then.
        """
        session = self._prepare_successor(new_session_id(), is_new=True)
        if title:
            session.rename(title)
        return self._hand_over(session, reason, "reset")

    def switch(self, session_id: str, *, reason: str = "resume") -> "Session":
        """End this conversation and return another one of the same user, resumed with the same options.

        The external memory stays attached: it receives the end of this conversation, and then the new id.
        """
        latest = self._services.latest_session(session_id, self.user)
        return self._hand_over(self._prepare_successor(latest, is_new=False), reason, "resume")

    def for_review(self, model: "ChatModel | None") -> "ReviewedSession":
        """The session as a background review sees it, with the model that is to review it."""
        from memoranda.api.session_parts.state import ReviewedSession

        return ReviewedSession(self._state, model)

    def end(self, reason: str = "session_end") -> None:
        """End the conversation; opening a session with its id resumes it.

        The provider is notified before the record ends the session: a crash in between repeats the notification
        instead of losing it.
        """
        self._end_record(reason)
        self.external.close()
        self._ended = True
        self._state.curate_if_due()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _prepare_successor(self, session_id: str, *, is_new: bool) -> "Session":
        """A session with the options of this one, and with its external memory while that is active."""
        options = replace(self._state.options, model=self.model, parent=None, relation=None)
        external = self.external if self.external.active else None
        return Session(self._services, session_id, options, is_new=is_new, follows=self, external=external)

    def _hand_over(self, successor: "Session", reason: str, boundary: "BoundaryReason") -> "Session":
        self._end_record(reason)
        # This session no longer has the provider; a late turn starts its own.
        self._state.external = ExternalMemory()
        self._ended = True
        successor.external.switch(successor.id, self.id, reason, reset=boundary == "reset")
        successor._state.notify_boundary(boundary, self.id)
        return successor

    def _end_record(self, reason: str) -> None:
        if turn := self._latest_turn and self._latest_turn():
            turn.close()
        self._state.flush_provider()
        self._state.record.end(reason)

    def _lock_turn(self, wait: float | None) -> "HeldLock":
        """Wait for the turn of the conversation that is in progress, if any; raises SessionBusyError."""
        turn = self._latest_turn and self._latest_turn()
        if turn and turn.is_open_in_this_thread:
            raise SessionBusyError(
                f"A turn of session {self.id!r} is open. Finish it with done(), or leave it with close() or the end of "
                "its 'with' block, before the next one begins. Nothing was recorded."
            )
        return self._state.record.db.lock_turn(self.id, self._services.config.turn_wait if wait is None else wait)

    def _store_reading(self, usage: "Usage", message_id: int) -> None:
        """Store the model's own count of the tokens in the context up to a message."""
        from memoranda.agent.compression.trigger import TokenReading

        reading = TokenReading.of(usage, message_id)
        if reading is not None:
            try:
                self._state.compressor.note(self._state, self._state.record.db, reading)
            except StorageError as error:
                _log.warning("The token count of session %s could not be stored: %s", self.id, error)
