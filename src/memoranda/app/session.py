"""One conversation: a frozen prompt, tools whose writes are durable at once, its record, and how it goes on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from memoranda.app.frozen_prompt import FrozenPrompt, PromptContext, freeze, thaw
from memoranda.app.provider_tools import TOOLS, restore_tools, tools_as_columns
from memoranda.app.strip_recall import strip_recall
from memoranda.app.tool_calls import call_tool, remember
from memoranda.app.turn import Turn
from memoranda.curated.settings import Target
from memoranda.curated.tool import MemoryTool
from memoranda.curated.write_result import MemoryReceipt, Origin
from memoranda.db.lost import is_there
from memoranda.errors import ContinuedError, StorageError
from memoranda.skills.prompt_list import render_index
from memoranda.skills.tool import SkillTools
from memoranda.support.projects import project_of
from memoranda.tools import JsonObject, Tool

if TYPE_CHECKING:
    # Loaded when they are first used: whoever only wants the prompt starts twice as fast.
    from memoranda.agent.session_views import Compression, UndoneTurn
    from memoranda.app.memory import Memory
    from memoranda.app.session_compressor import SessionCompressor
    from memoranda.llm.model import ChatModel, Usage
    from memoranda.recall.session_db import SessionDB
    from memoranda.sessions.rotation import LiveMessage


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """In which a conversation takes place; `parent` is the session that it works for or branches off."""

    source: str
    user: str | None = None
    model: str = ""
    directory: Path | None = None
    instructions: str = ""
    parent: str | None = None
    relation: str | None = None
    platform: str = ""
    """Whose toolsets it has, when not those of its source."""
    external: bool = True
    """Whether an external memory takes part, if one is configured."""


class Session:
    """One conversation. After compression it is the same object with another `id` and another prompt."""

    def __init__(self, memory: "Memory", session_id: str, circumstances: SessionOptions, *, is_new: bool) -> None:
        self.id = session_id
        self.source, self.user, self.model = circumstances.source, circumstances.user, circumstances.model
        self._memory = memory
        self._circumstances = circumstances
        self._store = memory.curated_for(self.user)
        self._store.written = self._written
        self._skills = memory.skills_for(self.user)
        self.external = memory.external_for(session_id, circumstances)
        self.chat_model: ChatModel | None = None
        self._compressor: SessionCompressor | None = None
        self._uncounted: Usage | None = None
        # Whether it has a row in the store, and whether that is open for us.
        self._exists = self._begun = self._ended = False
        self._tools_before: Any = None
        self._bind_tools()
        self._frozen = (None if is_new else self._restored()) or self._freeze()

    @property
    def prompt(self) -> str:
        """The system prompt, byte-identical until the conversation is compressed."""
        return self._frozen.prompt.text

    @property
    def notices(self) -> tuple[str, ...]:
        """What was left out of the prompt, and why, for a person."""
        return self._frozen.prompt.notices

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What the model may call; a part that is switched off offers no tool."""
        return (*self._own_tools(), *self._provider_tools())

    def turn(self, text: Any) -> Turn:
        """Begin a turn: the user's message (text or structured content) is durable when this returns."""
        self.begin_turn()
        self._go_to_the_tip()
        if self._ended:
            # Taken up again: the external memory that heard of the end is started anew.
            self.external = self._memory.external_for(self.id, self._circumstances)
            self._memory.session_opened(self)
            self._ended = False
        return Turn(self, text)

    def allows(self, tool: str) -> bool:
        """Whether the platform of this session has a tool."""
        around = self._circumstances
        toolset = self._memory.config.toolsets.get(around.platform or self.source)
        if toolset is not None and tool not in toolset:
            return False
        if around.relation != "delegation":
            return True
        from memoranda.agent.delegation import READING

        return tool in READING

    def begin_turn(self) -> None:
        """Say that a new user message came in: failed memory calls are counted per turn. `turn` says it too."""
        self._memory_tool.begin_turn()

    def note_of_changes(self) -> str:
        """What was saved or removed by others since the prompt was frozen, for the user's next message."""
        return self._frozen.changes.note()

    def record(self, role: str, content: Any = None, **fields: Any) -> int:
        """Record one message of the conversation; it is durable when its id is returned."""
        return self.record_all([{"role": role, "content": content, **fields}])[0]

    def record_all(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """Record several messages in one commit. Recalled memory that somebody repeats is left out."""
        clean = [strip_recall(message) for message in messages]
        while True:
            try:
                ids = self._record().append_messages(self.id, clean, at_the_tip=True)
                break
            except ContinuedError as error:
                # Another process has compressed the conversation meanwhile.
                self.continue_as(error.successor)
        if self._uncounted is not None and messages and messages[0].get("role") == "assistant":
            self._count(self._uncounted, ids[0])
            self._uncounted = None
        return ids

    def conversation(self) -> list[dict[str, Any]]:
        """What was recorded, as chat APIs take it."""
        return self._db.get_messages_as_conversation(self.id)

    def recorded(self, message_id: int) -> dict[str, Any]:
        """One message as it was recorded; empty when it was taken back."""
        return self._db.get_message(message_id) or {}

    def call(self, name: str, arguments: Mapping[str, Any]) -> JsonObject:
        """Call a tool as the model would; the answer is always a JSON object."""
        return call_tool(self.tools, name, arguments)

    def remember(self, text: str, target: Target = "memory") -> JsonObject:
        """Save a fact that the user asked to keep; the answer is a receipt."""
        return remember(self._store, text, target, self.id)

    def entries(self, target: Target = "memory") -> tuple[str, ...]:
        """The live entries of MEMORY.md or USER.md as they may be shown."""
        return self._store.entries(target)

    # What follows is for loops that watch the context and for chats; the record is the same for all.

    def use_model(self, model: "ChatModel", *, reserved: int = 0) -> None:
        """Say which model answers: its window decides when the context is full, and it writes the summaries.

        `reserved` is what an answer may take of the window.
        """
        self.chat_model = model
        self.model = model.name
        usage = self._compression().usage
        usage.window, usage.reserved = model.window, reserved

    def note_usage(self, usage: "Usage", *, model: str, provider: str) -> None:
        """Remember what a call used, which also says how full the context is; it never fails the turn."""
        self._uncounted = usage
        self._memory.count_usage(self.user, self.id, usage, model=model, provider=provider)

    def compress(self, *, force: bool = False, focus: str = "") -> "Compression":
        """Make the context shorter if it is full, or at once when `force`; `focus` is what to keep above all."""
        from memoranda.agent.session_views import Compression

        if not self._exists:
            return Compression(False, "Nothing has been said yet.")
        self._go_to_the_tip()
        shortening, db = self._compression(), self._db
        if not force and not shortening.is_due(self, db):
            return Compression(False, "The context has room left.")
        model = self._memory.metered(self.chat_model, "compression", self) if self.chat_model else None
        return shortening.compress(self, db, model, self._memory.new_session_id(), focus=focus, force=force)

    @property
    def title(self) -> str | None:
        """The conversation's name for people."""
        return self._db.get_session_title(self.id) if self._exists else None

    def rename(self, title: str) -> str | None:
        """Give it a title, tidied; blank takes it away. Raises SessionError when it is taken."""
        self._go_to_the_tip()
        self._record().set_session_title(self.id, title or None)
        return self.title

    def undo(self) -> "UndoneTurn | None":
        """Take the last turn back, the user's words and everything after; None when there is none."""
        from memoranda.agent.session_views import UndoneTurn
        from memoranda.sessions.records import text_of

        self._go_to_the_tip()
        live = self._db.live_context(self.id) if self._exists else []
        # What stands before a summary cannot be gone back to: the summary would go with it.
        summaries = [place for place, each in enumerate(live) if each.is_summary]
        asked = _users(live[summaries[-1] + 1 :] if summaries else live)
        if not asked:
            return None
        gone = self._record().rewind_to_message(self.id, asked[-1].id)
        if self._compressor is not None:
            self._compressor.usage.reading = None
        # What the model had seen of its own writes is out of its sight again.
        self._frozen = self._restored() or self._frozen
        self.external.switch(self.id, reason="undo", rewound=True)
        return UndoneTurn(text_of(asked[-1].message.get("content")), int(gone["rewound_count"]))

    def branch(self, title: str = "") -> "Session":
        """Another way on from here: a new session with the same context and the same prompt."""
        self._go_to_the_tip()
        branched = self._record().branch_session(self.id, self._memory.new_session_id(), title or None)
        session = self._memory.session(
            session_id=branched.session_id, source=self.source, model=self.model, user=self.user,
            directory=self._circumstances.directory, instructions=self._circumstances.instructions,
        )  # fmt: skip
        session.external.switch(session.id, self.id, "branch")
        return session

    def delegated(self, task: str, result: str, session_id: str) -> None:
        """Work that was delegated is done; the external memory hears of it."""
        self.external.delegated(task, result, session_id)

    def user_words(self) -> list[str]:
        """What the user said in this conversation, message by message; summaries are not the user's words."""
        from memoranda.sessions.records import text_of

        return [text_of(each.message.get("content")) for each in self._asked()]

    def review_tools(self) -> tuple[Tool, ...]:
        """Memory and skill tools for a review: it is named in the journals, and the external memory is not told."""
        reviewer = Origin("review", self.id)
        store = self._memory.curated_for(self.user)
        store.load_from_disk()
        skills = SkillTools(self._memory.skills_for(self.user), reviewer)
        return self._allowed((*MemoryTool(store, reviewer).definitions(), *skills.definitions()))

    def end(self, reason: str = "session_end") -> None:
        """Say that the conversation is over; opening a session with its id takes it up again."""
        # Before the record says that it is over: whoever is killed in between tells it again, and not never.
        self.external.commit(self._told(), self.id)
        if self._begun:
            self._record().end_session(self.id, reason)
            self._begun = False
        self.external.close()
        self._ended = True
        self._memory.session_ended(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    # What compression needs (`memoranda.app.session_compressor.Compressible`).

    def before_compression(self, context: "list[LiveMessage]") -> str:
        return self.external.before_compression(self._told()) if self.external.active else ""

    def flush_provider(self) -> None:
        self.external.commit(self._told(), self.id)

    def new_prompt(self) -> FrozenPrompt:
        return self._freeze()

    def continue_as(self, session_id: str) -> None:
        old, self.id = self.id, session_id
        self._bind_tools()
        self._frozen = self._restored() or self._frozen
        self.external.switch(session_id, old, "compression")

    @property
    def _db(self) -> "SessionDB":
        return self._memory.sessions_for(self.user)

    def _asked(self) -> "list[LiveMessage]":
        """What the user said, as far as it is in the context; a summary has the same role and is nobody's."""
        return _users(self._db.live_context(self.id) if self._exists else [])

    def _go_to_the_tip(self) -> None:
        """Another process may have compressed the conversation meanwhile."""
        tip = self._db.get_compression_tip(self.id) if self._exists else None
        if tip is not None and tip != self.id:
            self.continue_as(tip)

    def _bind_tools(self) -> None:
        self._memory_tool = MemoryTool(self._store, Origin("agent", self.id))
        self._skill_tools = SkillTools(self._skills, Origin("agent", self.id))

    def _own_tools(self) -> tuple[Tool, ...]:
        search = self._memory.search_tool(self.user, self.id, self._circumstances.directory)
        return self._allowed(
            (*self._memory_tool.definitions(), *search.definitions(), *self._skill_tools.definitions())
        )

    def _provider_tools(self) -> tuple[Tool, ...]:
        """Those of the external memory; in a session that is taken up again, those that it had."""
        return restore_tools(self._tools_before, self.external.tools())

    def _allowed(self, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
        """Each of our tools is a toolset of its own name; a platform that is not configured has them all.

        Who works for another session only reads.
        """
        return tuple(tool for tool in tools if self.allows(tool.name))

    def _freeze(self) -> FrozenPrompt:
        around = self._circumstances
        surroundings = PromptContext(
            self._memory.home.root, self._memory.config.prompt, self.source, around.instructions, around.directory,
            self._compression().usage.window if self.model else 0,
        )  # fmt: skip
        names = [tool.name for tool in self.tools]
        index = render_index(self._skills.catalogue(), self._skills.settings.index_char_limit)
        return freeze(
            surroundings, self._store, self._memory.redacted, tools=names,
            skills=index if "skill_view" in names else "", provider=self.external.system_prompt(),
        )  # fmt: skip

    def _restored(self) -> FrozenPrompt | None:
        """The prompt that was stored with the session: taking it up again changes no byte of it."""
        row = self._db.get_session(self.id) if is_there(self._memory.home.state_db) else None
        if row is None:
            return None
        self.model = self.model or row.get("model") or ""
        self._exists, self._begun = True, row.get("ended_at") is None
        self._tools_before = row.get(TOOLS)
        return thaw(row, self._store, self._memory.redacted)

    def _compression(self) -> "SessionCompressor":
        from memoranda.app.session_compressor import ContextUsage, SessionCompressor
        from memoranda.llm.context_windows import context_window

        if self._compressor is None:
            settings = self._memory.config
            window = settings.model.window or context_window(self.model)
            self._compressor = SessionCompressor(settings.compression, ContextUsage(window))
        return self._compressor

    def _count(self, usage: "Usage", message_id: int) -> None:
        """The provider has counted everything up to a message."""
        from memoranda.compression.trigger import TokenReading

        reading = TokenReading.of(usage, message_id)
        if reading is not None:
            try:
                self._compression().note(self, self._db, reading)
            except StorageError as error:
                self._memory.log.warning("How full session %s is could not be noted: %s", self.id, error)

    def _told(self) -> list[dict[str, Any]]:
        """What the external memory hears of when the session ends: everything but turns that were not done."""
        if not self._begun or not self.external.active:
            return []
        from memoranda.providers.recorded_turns import completed

        # What is repeated after compression was told with the session before, and a summary is nobody's words.
        said = [each for each in self._db.get_messages(self.id) if each["copy_of"] is None and not each["is_summary"]]
        return completed(said)

    def _written(self, receipt: MemoryReceipt, origin: Origin) -> None:
        """The built-in memory was changed, and the external one hears of it."""
        if origin.session == self.id:
            self._frozen.changes.told(receipt.target)
        if self.external.active:
            self.external.mirror(receipt, origin, lambda text: self._store.shown(receipt.target, text))
        else:
            self._memory.tell_later(self._store, receipt, origin, self.user)

    def _record(self) -> "SessionDB":
        """The store of this session's user; the session gets its row when something is first recorded."""
        db = self._db
        if not self._begun:
            around = self._circumstances
            db.create_session(
                self.id, self.source, model=self.model or None, system_prompt=self.prompt or None,
                parent_session_id=around.parent, relation=around.relation,
                project=project_of(around.directory) if around.directory else None,
                **self._frozen.kept(), **tools_as_columns(self.external.tools()),
            )  # fmt: skip
            db.reopen_session(self.id)
            self._exists = self._begun = True
        return db


def _users(live: "Sequence[LiveMessage]") -> "list[LiveMessage]":
    return [each for each in live if each.message["role"] == "user" and not each.is_summary]
