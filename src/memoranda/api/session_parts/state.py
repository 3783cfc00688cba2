"""The state of one open session that changes as a whole when compression continues its conversation in another one.

A background review sees it as a `ReviewedSession`. A `PromptPreview` shows a person what a new session would send to a
model, section by section.
"""

import json
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memoranda.api.services import HomeServices, new_session_id
from memoranda.api.session_parts.options import GATEWAY, SessionOptions
from memoranda.api.session_parts.prompt import FrozenPrompt, PromptContext
from memoranda.api.session_parts.record import SessionRecord, strip_recall
from memoranda.api.session_parts.tools import PROVIDER_TOOLS, SessionTools, tools_as_columns
from memoranda.api.session_parts.writes import UntrustedText
from memoranda.errors import ContinuedError
from memoranda.external.external_memory import ExternalMemory, guarded
from memoranda.memory.curated.operations import MemoryReceipt
from memoranda.memory.curated.settings import Target
from memoranda.models.tokens import estimate_text, estimate_tools
from memoranda.safety.fence import fenced_text
from memoranda.search.continue_prompts import asks_to_continue
from memoranda.search.recall_log import GIVEN, NOTHING, TURN, PromptPlace
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.origin import Origin
from memoranda.support.projects import project_of
from memoranda.support.tool import Tool

if TYPE_CHECKING:
    from memoranda.agent.compression.trigger import BoundaryReason
    from memoranda.agent.session_views import SavedChange
    from memoranda.agent.todo_tool import Todo
    from memoranda.api.session_parts.compressor import SessionCompressor
    from memoranda.home.session_db import SessionDB
    from memoranda.models.model import ChatModel


class SessionState:
    """Prompt, tools, record and external memory of one session, and how they continue together.

    A turn works with this class, and compression too (`agent.session_views.CompressibleSession`).
    """

    def __init__(
        self,
        services: HomeServices,
        session_id: str,
        options: SessionOptions,
        *,
        is_new: bool,
        external: ExternalMemory | None = None,
    ) -> None:
        """`external` is the external memory of the session before, which this one takes over."""
        self.services = services
        self.options = options
        self.model = options.model
        self.record = SessionRecord(services, session_id, options.user)
        self.project = self._find_project(is_new)
        self.store = services.curated_for(options.user, self.project)
        self.store.written = self._on_memory_write
        self.untrusted = UntrustedText(self.record, services.config.curated.trusted_tools)
        self.toolbox = SessionTools(services, options, self.store, self.untrusted)
        self.external = external or self._start_external()
        self.toolbox.bind(session_id)
        self._compressor: SessionCompressor | None = None
        self._turn_number: int | None = None
        self._facts_stored = not options.facts
        self.frozen = (None if is_new else self._restore_prompt()) or self._build_prompt()

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def prompt(self) -> str:
        return self.frozen.prompt.text

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self.toolbox.definitions(self.external.tools(), self.external.find_tool)

    def work_in(self, project: str | None) -> None:
        """Use the memory of a project, as sessions record it, in a session that has no directory."""
        self.project = project
        self.store.use_project(project)
        self.toolbox.bind(self.id)

    @property
    def compressor(self) -> "SessionCompressor":
        from memoranda.api.session_parts.compressor import ContextUsage, SessionCompressor
        from memoranda.models.tokens import context_window

        if self._compressor is None:
            settings = self.services.config
            window = settings.model.window or context_window(self.model)
            self._compressor = SessionCompressor(settings.compression, ContextUsage(window))
        return self._compressor

    def conversation(self) -> list[dict[str, Any]]:
        """The recorded messages in the form that chat APIs accept, whatever an interruption has left out."""
        from memoranda.agent.model_messages import to_api_messages

        return to_api_messages(self.record.db.get_messages_as_conversation(self.id))

    def recorded_message(self, message_id: int) -> dict[str, Any]:
        """One message as it was recorded; empty when it was rewound."""
        return self.record.db.get_message(message_id) or {}

    def next_turn_number(self) -> int:
        """The number of the turn whose question was just recorded; it continues after a resume and a compression."""
        self._turn_number = self.record.count_turns() if self._turn_number is None else self._turn_number + 1
        return self._turn_number

    def recall(self, prompt: str, message_id: int | None = None) -> str:
        """What is added to the prompt of a turn: changes of memory, the last work, what the providers recall.

        Each is a fenced block. What the providers recall is untrusted text for the rest of the turn. `message_id` is
        the number of the prompt in the record, if it is known.
        """
        began = time.time()
        note, recent, recalled = self.frozen.changes.note(), self.recent_work(prompt), ""
        if self.external.active:
            recalled = self.external.begin_turn(prompt, self.id, self.next_turn_number)
        self.untrusted.called.clear()
        names = self.services.config.providers if recalled else ()
        self.untrusted.recalled = tuple(f"provider {name}" for name in names)
        if note or recent or self.external.active:
            self.log_recall(message_id, prompt, note, recalled, began, recent)
        return "\n\n".join(filter(None, (note, recent, recalled)))

    def log_recall(
        self, message_id: int | None, prompt: str, note: str, recalled: str, began: float, recent: str = ""
    ) -> None:
        """Log what the prompt of a turn received: that there was a note of changes, and what the providers recalled.

        The note itself is not logged: it may quote an entry that was forgotten meanwhile.
        """
        reasons = [
            "what changed in memory since the conversation began" if note else "",
            "the last conversations" if recent else "",
            "what the external memory recalled" if recalled else "",
            self.external.recall_reason(),
        ]
        self.services.recall_log(self.options.user).add(
            PromptPlace(TURN, self.options.source, self.id, message_id),
            prompt,
            GIVEN if note or recalled or recent else NOTHING,
            "; ".join(filter(None, reasons)) or "nothing was recalled",
            began=began,
            text=fenced_text(recalled),
        )

    def curate_if_due(self) -> None:
        """Let the curator tidy up after a session, if the settings say so; a failure is logged and costs nothing."""
        if self.services.config.curate.mode == "auto":
            from memoranda.api.curate import curate_if_due

            curate_if_due(self.services, self.store, self.options.user, self.options.directory)

    def recent_work(self, prompt: str) -> str:
        """A fenced block for a prompt that asks to continue: the last conversations of this project; "" for others."""
        if not asks_to_continue(prompt) or not self.services.has_record:
            return ""
        from memoranda.api.recent import recent_for_prompt

        row = self.record.db.get_session(self.id) or {}
        own = self.record.db.conversations.conversation_of(self.id)
        sessions = own.sessions if own is not None else (self.id,)
        begins = (row.get("message_count") or 0) <= 1 and len(sessions) == 1
        return recent_for_prompt(
            self.services,
            self.options.user,
            prompt,
            row.get("project"),
            is_own=lambda session_id: session_id in sessions,
            begins=begins,
        )

    def open_record(self) -> "SessionDB":
        """The session store; creates or reopens the session's row before the first write."""
        if not self.record.is_open:
            options = self.options
            self.record.create(
                options.source,
                model=self.model or None,
                system_prompt=self.prompt or None,
                parent_session_id=options.parent,
                relation=options.relation,
                project=self.project,
                **self.frozen.as_columns(),
                **tools_as_columns(self.external.tools(), self.external.provider_of),
            )
        if not self._facts_stored:
            if facts := self.options.facts_to_store(self.record.load()):
                self.record.db.set_extra_fields(self.id, **{GATEWAY: facts})
            self._facts_stored = True
        return self.record.db

    def freeze(self) -> None:
        """Store the prompt with the session now, unless another process stored one first, which then counts."""
        row = self.record.load()
        if row is None or not row.get("system_prompt"):
            self.record.db.create_session(
                self.id, self.options.source, system_prompt=self.prompt or None, **self.frozen.as_columns()
            )
        self.frozen = self._restore_prompt() or self.frozen

    def append(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """Record messages in one commit, without recalled memory that the model repeats in them."""
        clean = [strip_recall(message) for message in messages]
        while True:
            try:
                return self.open_record().append_messages(self.id, clean, fail_if_continued=True)
            except ContinuedError as error:
                # Another process has compressed the conversation meanwhile.
                self.continue_as(error.successor)

    def follow_continuation(self) -> None:
        """Continue in the latest session when another process has compressed the conversation."""
        if continuation := self.record.continuation():
            self.continue_as(continuation)

    def follow_record(self) -> None:
        """Before a turn: adopt what another thread or process has made of the conversation, its prompt included."""
        if self.record.exists:
            self.follow_continuation()
        else:
            self.frozen = self._restore_prompt() or self.frozen

    def restart_external(self) -> None:
        """Start the external memory again for a session that is resumed after its end."""
        self.external = self._start_external()

    def saved_since(self, message_id: int) -> "tuple[SavedChange, ...]":
        """What the agent saved in this conversation since a message was recorded."""
        from memoranda.api.session_parts.writes import find_saved_changes

        sessions = self.record.db.get_compression_lineage(self.id)
        since = self.recorded_message(message_id)["timestamp"]
        return find_saved_changes(self.store, self.services.skills_for(self.options.user), sessions, since)

    def after_rewind(self) -> None:
        """Bring everything up to date after messages were undone."""
        if self._compressor is not None:
            self._compressor.usage.reading = None
        # The model no longer sees the memory writes that it made in the undone turn.
        self.frozen = self._restore_prompt() or self.frozen
        self.external.switch(self.id, reason="undo", rewound=True)

    @guarded(None, "A context engine")
    def notify_boundary(self, reason: "BoundaryReason", old_session_id: str | None = None) -> None:
        """Notify the compressor and the developer's context engine that this session has started, and why."""
        for engine in (self._compressor, self.options.context_engine):
            if engine is not None:
                row = self.record.load() if self.record.exists else None
                facts = self.options.provider_facts(row, self.services.home.profile)
                engine.on_session_start(self.id, boundary_reason=reason, old_session_id=old_session_id, **facts)

    # What compression needs.

    def before_compression(self) -> str:
        notes = self.external.before_compression(self._provider_messages()) if self.external.active else ""
        # The calls that wrote the list leave the context, but the tasks are still to be done.
        return "\n\n".join(filter(None, (notes, SessionTodos(self).note())))

    def flush_provider(self) -> None:
        self.external.commit(self._provider_messages(), self.id)

    def new_prompt_columns(self) -> dict[str, Any]:
        frozen = self._build_prompt()
        return {"system_prompt": frozen.prompt.text, **frozen.as_columns()}

    def continue_as(self, session_id: str) -> None:
        old, self.record.id = self.id, session_id
        self.toolbox.bind(session_id)
        self.frozen = self._restore_prompt() or self.frozen
        self.external.switch(session_id, old, "compression")
        self.notify_boundary("compression", old)

    def _provider_messages(self) -> list[dict[str, Any]]:
        return self.record.completed_turns() if self.external.active else []

    def _start_external(self) -> ExternalMemory:
        if not self.options.external or not self.services.config.providers:
            return ExternalMemory()
        return self.services.external_for(
            self.id,
            self.options.user,
            self.options.provider_facts(self.record.load(), self.services.home.profile),
        )

    def _find_project(self, is_new: bool) -> str | None:
        """The project of the directory; of a session that is resumed without one, the project that it recorded."""
        if self.options.directory is not None:
            return project_of(self.options.directory)
        row = None if is_new else self.record.load()
        return row.get("project") if row else None

    def _build_prompt(self) -> FrozenPrompt:
        context = PromptContext(
            home=self.services.home.root,
            settings=self.services.config.prompt,
            platform=self.options.source,
            instructions=self.options.instructions,
            directory=self.options.directory,
            window=self.compressor.usage.window if self.model else 0,
        )
        names = [tool.name for tool in self.tools]
        skills = self.toolbox.skill_index()
        return FrozenPrompt.build(
            context,
            self.store,
            self.services.redact,
            tools=names,
            skills=skills if "skill_view" in names else "",
            provider=self.external.system_prompt(),
        )

    def _restore_prompt(self) -> FrozenPrompt | None:
        """The prompt that is stored with the session: resuming the session changes no byte of it."""
        row = self.record.load()
        if row is None:
            return None
        self.model = self.model or row.get("model") or ""
        self.toolbox.stored_provider_tools = row.get(PROVIDER_TOOLS)
        return FrozenPrompt.restore(row, self.store, self.services.redact)

    def _on_memory_write(self, receipt: MemoryReceipt, origin: Origin) -> None:
        """Mirror a curated write to the external memory, or queue it when none is running."""
        if origin.session == self.id:
            self.frozen.changes.mark_seen(receipt.target)
        if self.external.active:
            self.external.mirror(receipt, origin, lambda text: self.store.visible_text(receipt.target, text))
        else:
            self.services.queue_memory_write(self.store, receipt, origin, self.options.user)


class ReviewedSession:
    """The session of a `SessionState` for a review by `chat_model` (`agent.session_views.ReviewableSession`)."""

    def __init__(self, state: SessionState, chat_model: "ChatModel | None") -> None:
        self.chat_model = chat_model
        self._state = state

    @property
    def id(self) -> str:
        return self._state.id

    @property
    def user(self) -> str | None:
        return self._state.options.user

    @property
    def prompt(self) -> str:
        return self._state.prompt

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self._state.tools

    def conversation(self) -> list[dict[str, Any]]:
        return self._state.conversation()

    def user_texts(self) -> list[str]:
        from memoranda.memory.record.message_rows import text_of

        record = self._state.record
        spoken = record.spoken_context(0, record.context_size())
        return [text_of(message["content"]) for message in spoken if message["is_own"]]

    def entries(self, target: Target) -> tuple[str, ...]:
        return self._state.store.entries(target)

    def review_tools(self) -> tuple[Tool, ...]:
        return self._state.toolbox.for_review(self.id, self.user_texts())


@dataclass(frozen=True, slots=True)
class PromptPart:
    """One section of the prompt, or one tool; `tokens` is an estimate."""

    name: str
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class PromptPreview:
    """The sections in their order, the tools that are sent with them, and what was left out and why."""

    sections: tuple[PromptPart, ...]
    tools: tuple[PromptPart, ...]
    notices: tuple[str, ...]

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in (*self.sections, *self.tools))


def preview_prompt(services: HomeServices, user: str | None, source: str) -> PromptPreview:
    """Build the prompt of a new session without starting one: nothing is recorded, and no provider is started.

    A provider adds its own section and tools when a session starts; they are not part of this.
    """
    state = SessionState(services, new_session_id(), SessionOptions(source, user, external=False), is_new=True)
    prompt = state.frozen.prompt
    sections = [(section.name, services.redact(section.text)) for section in prompt.sections]
    return PromptPreview(
        tuple(PromptPart(name, text, estimate_text(text)) for name, text in sections),
        tuple(PromptPart(tool.name, tool.description, estimate_tools([tool])) for tool in state.tools),
        prompt.notices,
    )


class SessionTodos:
    """Reads and writes the `todo` list of the conversation that a session belongs to."""

    def __init__(self, state: SessionState) -> None:
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
