"""An opened home: everything is wired here. A `Memory` gives sessions, and agents that work in them."""

import logging
import secrets
import threading
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from memoranda import config
from memoranda.app.session import Session, SessionOptions
from memoranda.app.tool_calls import call_tool, remember
from memoranda.curated.settings import Target
from memoranda.curated.store import MemoryStore
from memoranda.curated.tool import MemoryTool
from memoranda.curated.write_result import MemoryReceipt, Origin
from memoranda.db.lost import is_there
from memoranda.errors import SessionError, StorageError
from memoranda.providers.external_memory import ExternalMemory
from memoranda.safety.redaction import Redactor
from memoranda.sessions.scope import Scope
from memoranda.skills.store import SkillStore
from memoranda.support.home import Home
from memoranda.support.projects import project_of
from memoranda.tools import JsonObject, Tool

if TYPE_CHECKING:
    # Loaded when they are first used: whoever only wants the prompt starts twice as fast.
    from memoranda.agent.loop import Agent
    from memoranda.app.agents import Agents
    from memoranda.llm.model import ChatModel, Usage
    from memoranda.recall.session_db import SessionDB
    from memoranda.recall.summaries import Summarize
    from memoranda.recall.tool import SessionSearchTool


class Memory:
    """An opened home, for one user of it or for the home itself."""

    log = logging.getLogger(__name__)

    def __init__(
        self, home: Home, settings: config.Config, user: str | None = None, *, summarize: "Summarize | None" = None
    ) -> None:
        self.home = home
        self.config = settings
        self.user = user
        self.curated = self.curated_for(user)
        self.curated.load_from_disk()
        self.curated.written = lambda receipt, origin: self.tell_later(self.curated, receipt, origin, user)
        self._summarize = summarize
        self._memory_tool = MemoryTool(self.curated, Origin("agent"))
        self._opening = threading.Lock()
        self._open_sessions: set[Session] = set()
        self._db: SessionDB | None = None
        self._redactor: Redactor | None = None
        self._agents: Agents | None = None

    def session(
        self,
        *,
        source: str = "library",
        model: str = "",
        user: str | None = None,
        session_id: str | None = None,
        directory: str | Path | None = None,
        instructions: str = "",
        parent: str | None = None,
        platform: str = "",
    ) -> Session:
        """Begin a session, or take one up by its id; its prompt is frozen now, or the one it had is used again.

        A conversation that was compressed since is taken up where it stands now.
        `user` gives it the memory and the conversations of one user of a gateway. `directory` is where the user works:
        its project files (AGENTS.md …) become part of the prompt. `instructions` are your own words for the prompt.
        With a `parent` it is delegated work of that session. `platform` is whose toolsets it has, if not its source's.
        """
        circumstances = SessionOptions(
            source=source,
            user=self.user if user is None else user,
            model=model,
            directory=Path(directory).absolute() if directory is not None else None,
            instructions=instructions,
            parent=parent,
            relation="delegation" if parent else None,
            platform=platform,
            external=parent is None,
        )
        name = self.new_session_id() if session_id is None else self._where_it_stands(session_id, circumstances.user)
        session = Session(self, name, circumstances, is_new=session_id is None)
        self.session_opened(session)
        return session

    def agent(self, model: "ChatModel | None" = None, *, session: Session | None = None, **options: Any) -> "Agent":
        """An agent at work in a session: `memory.agent().turn("Hello")` is the whole loop.

        Without a model it is the one that is configured; without a session it begins one. Options: `tools` of your
        own, `on_text` for the answer as it is written, `on_event` and `on_review` for what happens beside it.
        """
        agents = self._opened_agents()
        model = model or agents.configured_model()
        return agents.make(model, session or self.session(model=model.name), **options)

    @property
    def sessions(self) -> "SessionDB":
        """The conversations of this user: everything that was recorded, and search over it."""
        return self.sessions_for(self.user)

    def search(self, query: str = "", **options: Any) -> JsonObject:
        """Find past conversations, with the exact messages; without a query, the latest ones.

        Options are those of the session_search tool: limit, since, until, source, role_filter, sort, session_id,
        around_message_id, window, cursor, project, why. Raises SessionError when they make no sense.
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
        return call_tool(self.tools, name, arguments)

    def entries(self, target: Target = "memory") -> tuple[str, ...]:
        """The live entries of MEMORY.md or USER.md as they may be shown."""
        return self.curated.entries(target)

    def remember(self, text: str, target: Target = "memory") -> JsonObject:
        """Save a fact because a person said so; the answer is a receipt: what, where, visible from when."""
        return remember(self.curated, text, target, "")

    def close(self) -> None:
        """Close the session store; every write was durable when it was answered."""
        if self._agents is not None:
            self._agents.close()
        for session in list(self._open_sessions):
            session.external.close()
        with self._opening:
            if self._db is not None:
                self._db.close()
                self._db = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What sessions need of their home.

    def session_opened(self, session: Session) -> None:
        """A session that needs closing, if nobody ends it."""
        self._open_sessions.add(session)

    def recorded_session(self, session_id: str, user: str | None) -> Session | None:
        """A session as it was recorded, to look at without taking it up; None when there is none."""
        row = self.sessions_for(user).get_session(session_id)
        if row is None:
            return None
        return Session(self, session_id, SessionOptions(row["source"], user, external=False), is_new=False)

    def session_ended(self, session: Session) -> None:
        """A session has ended and needs no closing."""
        self._open_sessions.discard(session)

    def new_session_id(self) -> str:
        """A name for a new session that sorts by time."""
        return new_session_id()

    def tell_later(self, store: MemoryStore, receipt: MemoryReceipt, origin: Origin, user: str | None) -> None:
        """A write outside any session: the provider hears of it when it is next started."""
        if self.config.provider:
            from memoranda.providers.attach import queue_writes

            queue_writes(
                self.home.root, self.config.provider, self.config.external, receipt, origin,
                lambda text: store.shown(receipt.target, text), user or "",
            )  # fmt: skip

    def curated_for(self, user: str | None) -> MemoryStore:
        """The curated memory of one user."""
        return MemoryStore(self.home.memories(user), self.config.curated)

    def skills_for(self, user: str | None) -> SkillStore:
        """The skills of one user, and behind them those of the home, which a user can read."""
        also = [] if user is None else [self.home.skills()]
        return SkillStore(self.home.skills(user), self.config.skills, also=also)

    def sessions_for(self, user: str | None) -> "SessionDB":
        """The conversations of one user; None is the home itself. The store is opened when it is first used."""
        from memoranda.recall.session_db import SessionDB

        with self._opening:
            if self._db is None:
                self._db = SessionDB(self.home.state_db, redactor=self._redacting())
            return self._db.scoped(Scope.of(user))

    def redacted(self, text: str) -> str:
        """A text as it may be stored."""
        redactor = self._redacting()
        return text if redactor is None else redactor.text(text)[0]

    def external_for(self, session_id: str, around: SessionOptions) -> ExternalMemory:
        """The external memory that is configured, for one session; delegated work has none."""
        if not self.config.provider or not around.external:
            return ExternalMemory()
        from memoranda.providers.attach import join
        from memoranda.providers.recorded_turns import RecordedTurns

        user = around.user
        turns = RecordedTurns(
            lambda: self.sessions_for(user) if is_there(self.home.state_db) else None, self.config.provider
        )
        return join(
            self.home.root, self.config.provider, self.config.external, session_id, turns,
            lend=lambda names: config.lease_secrets(self.home, names),
            secrets=lambda: config.known_secrets(self.home), toolsets=self.config.toolsets.get(around.source),
            platform=around.source, user_id=user or "", agent_identity=self.home.profile, agent_context="primary",
        )  # fmt: skip

    def search_tool(
        self, user: str | None, current_session_id: str | None = None, directory: Path | None = None
    ) -> "SessionSearchTool":
        """The session_search tool for one user and, if there is one, the conversation that is going on, and where."""
        from memoranda.recall.tool import SessionSearchTool

        return SessionSearchTool(
            lambda: self.sessions_for(user),
            self.config.recall,
            current_session_id=current_session_id,
            here=lambda: project_of(directory) if directory else None,
            summarize=self._summarize,
        )

    def metered(self, model: "ChatModel", purpose: str, session: Session) -> "ChatModel":
        """The same model for work that nobody asked for by name: within the day's budget, and in the ledger."""
        return self._opened_agents().metered(model, purpose, session, background=True)

    def count_usage(self, user: str | None, session_id: str, usage: "Usage", *, model: str, provider: str) -> None:
        """Add what a call used to its session; a failure of that is no failure of the call."""
        try:
            self.sessions_for(user).update_token_counts(
                session_id, **asdict(usage), api_call_count=1, model=model, billing_provider=provider
            )
        except StorageError as error:
            self.log.warning("What a call used could not be noted for session %s: %s", session_id, error)

    def _where_it_stands(self, session_id: str, user: str | None) -> str:
        """The session in which a conversation goes on; a name that is new stays as it is."""
        if not is_there(self.home.state_db):
            return session_id
        return self.sessions_for(user).get_compression_tip(session_id) or session_id

    def _redacting(self) -> Redactor | None:
        if self._redactor is None and self.config.redact_secrets:
            self._redactor = Redactor(config.known_secrets(self.home))
        return self._redactor

    def _opened_agents(self) -> "Agents":
        from memoranda.app.agents import Agents

        with self._opening:
            if self._agents is None:
                self._agents = Agents(self)
            return self._agents


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
