"""What all sessions of a home share: stores, settings, redaction, the external memory and the spend ledger.

Nothing here depends on a session, so sessions, agents and `Memory` can all depend on it.
"""

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.errors import ConfigError, HomeError, StorageError
from memoranda.home import config
from memoranda.memory.record.scope import Scope
from memoranda.safety.redaction import Redactor
from memoranda.storage.forks import is_of_parent, process_mark, require_same_process
from memoranda.storage.orphaned_wal import record_exists
from memoranda.support.home import Home
from memoranda.support.origin import Origin

if TYPE_CHECKING:
    from memoranda.api.search_extras import SearchExtras
    from memoranda.api.server_stores import StoreServices
    from memoranda.external.external_memory import ExternalMemory
    from memoranda.home.memory_store import CuratedMemories
    from memoranda.home.session_db import SessionDB
    from memoranda.memory.checkpoints.store import CheckpointStore
    from memoranda.memory.curated.facts import EntryFacts, Use
    from memoranda.memory.curated.operations import MemoryReceipt
    from memoranda.memory.curated.settings import Target
    from memoranda.memory.curated.store import MemoryStore
    from memoranda.memory.skills.store import SkillStore
    from memoranda.models.model import ChatModel, Usage
    from memoranda.models.spending.ledger import Ledger
    from memoranda.search.recall_log import RecallLog
    from memoranda.search.summaries import Summarize, SummaryWriter
    from memoranda.search.tool import SessionSearchTool
    from memoranda.storage.lazy_database import LazyDatabase
    from memoranda.support.text_matcher import TextMatcher

# Every other provider has its memory at a service, or on the server.
_LOCAL_PROVIDER = "byterover"


def refuse_what_needs_files(settings: config.Config) -> None:
    """Raise ConfigError for what works only beside a record in files."""
    if not settings.store.url:
        if settings.recall.user_index_mb:
            raise ConfigError("search.index is user, which needs a record on a server: set store.url, or unset it.")
        return
    if _LOCAL_PROVIDER in settings.providers:
        raise ConfigError(
            f"memory.provider is {_LOCAL_PROVIDER}, and the record is on a server. Its memory is a directory of one "
            "machine, and each node would have a part of it. Unset memory.provider or store.url."
        )
    if settings.recall.semantic and settings.recall.semantic_index and settings.recall.user_index_mb:
        raise ConfigError(
            "search.semantic_index is set, and search.index is user. An index of vectors has the messages of all "
            "users, which one node then does not index. Unset search.semantic_index: "
            "search.semantic reranks without it."
        )


_log = logging.getLogger(__name__)

# How many users' opened stores stay cached for the next call.
_MAX_VIEWS = 100
_VECTOR_FILES = "*.vectors.*.db"


class HomeServices:
    """Opens the stores of one home when they are first used, and closes them together."""

    def __init__(self, home: Home, settings: config.Config, *, summarize: "Summarize | None" = None) -> None:
        refuse_what_needs_files(settings)
        self.home = home
        self.config = settings
        self._summarize = summarize
        self._opening = threading.Lock()
        self._external: set[ExternalMemory] = set()
        # The sessions of frameworks' conversations that are open, by id.
        self.conversations: dict[str, Any] = {}
        self._db: SessionDB | None = None
        self._views: dict[str | None, SessionDB] = {}
        self._memories: CuratedMemories | None = None
        self._ledger: Ledger | None = None
        self._checkpoints: LazyDatabase | None = None
        self.search_extras: SearchExtras | None = None
        self._redactor: Redactor | None = None
        self._stores: StoreServices[HomeServices] | None = None
        self._root = self
        self._notify_of_others: Callable[[], object] | None = None
        self._closed = False
        self._opened_in = process_mark()

    def for_user(self, user: str | None) -> "HomeServices":
        """The services of the store that has a user now: these, unless users are distributed over several stores."""
        root = self._root
        if not root.config.store.servers:
            return self
        return root._open_stores().of_user(user)

    def _open_stores(self) -> "StoreServices[HomeServices]":
        self.require_open()
        with self._opening:
            if self._stores is None:
                from memoranda.api.server_stores import StoreServices

                self._stores = StoreServices(self.home, self.config, self._for_store)
            return self._stores

    def refresh_users(self) -> None:
        """Find users again in the stores of a fleet, after one has moved."""
        if self._root._stores is not None:
            self._root._stores.refresh()

    def _for_store(self, settings: config.Config) -> "HomeServices":
        services = HomeServices(self.home, settings, summarize=self._summarize)
        services._root = self
        return services

    def require_open(self) -> None:
        """Raise HomeError after `close`, which would otherwise be undone by the next use.

        Raises StorageError in the child of a fork.
        """
        require_same_process(self._opened_in, f"The memory at {self.home.root}")
        if self._closed:
            raise HomeError(f"The memory at {self.home.root} is closed. memoranda.open() opens it again.")

    def curated_for(self, user: str | None, project: str | None = None) -> "MemoryStore":
        """The curated memory of one user; None is the home itself. `project` is the one that the user works in.

        Raises HomeError for a new user whose id contains a credential, because the id becomes the name of a directory.
        """
        from memoranda.home.memory_store import CuratedMemories
        from memoranda.memory.curated.notes import Notes

        with self._opening:
            if self._memories is None:
                self._memories = CuratedMemories(self.home, self.config)
        store = self._memories.open(user)
        if user is not None and self.stored_name(user) != user and not store.storage.exists():
            raise HomeError(f"A user id must not contain a credential ({self.stored_name(user)}). Choose another.")
        if project is not None:
            store.use_project(project)
        store.notes = Notes(lambda: self.sessions_for(user).items, lambda: self.has_record)
        store.uses = lambda facts: self._count_uses(user, facts)
        store.similar = lambda target, texts: _find_similar(store, target, texts)
        return store

    def _count_uses(self, user: str | None, facts: "Sequence[EntryFacts]") -> "Mapping[str, Use]":
        """How often entries were of use in the conversations of a user."""
        if not self.has_record:
            return {}
        from memoranda.upkeep.curator.curate import count_uses

        return count_uses(self.sessions_for(user), facts)

    def checkpoints_for(self, user: str | None) -> "CheckpointStore":
        """The checkpoints that agent frameworks keep for one user; None is the home itself."""
        from memoranda.memory.checkpoints.store import CheckpointStore, open_checkpoints

        with self._opening:
            self.require_open()
            if self._checkpoints is None:
                self._checkpoints = open_checkpoints(self.home.root, self.record_location)
            return CheckpointStore(self._checkpoints, user)

    def skills_for(self, user: str | None) -> "SkillStore":
        """The skills of one user, who can also read those of the home."""
        from memoranda.memory.skills.store import SkillStore

        shared = [] if user is None else [self.home.skills()]
        return SkillStore(self.home.skills(user), self.config.skills, read_only_roots=shared)

    @property
    def has_record(self) -> bool:
        """Whether the home has a session store; asking does not create one. A server always has one."""
        return bool(self.config.store.url) or record_exists(self.home.state_db)

    @property
    def record_location(self) -> Path | str:
        """The path of the record, or the URL of its server, with the password."""
        return config.record_location(self.home, self.config)

    @property
    def server_url(self) -> str:
        """The URL of the server that has the record, with the password; "" if the home has it in files."""
        return config.server_url(self.home, self.config)

    def open_existing_record(self) -> None:
        """Open the session store if the home has one; raises StoreMismatchError and the like if it cannot be used."""
        if self._db is None and self.has_record:
            self.sessions_for(None)

    def sessions_for(self, user: str | None) -> "SessionDB":
        """The conversations of one user; None is the home itself."""
        self.require_open()
        if (view := self._views.get(user)) is not None:
            return view
        from memoranda.home.session_db import SessionDB

        with self._opening:
            self.require_open()
            if self._db is None:
                self._db = SessionDB(
                    self.record_location,
                    redactor=self._get_redactor(),
                    index_directory=self.home.root,
                    user_index_mb=self.config.recall.user_index_mb,
                )
                self._add_search_extras(self._db)
                self._db.forget_texts_with(self._forget_waiting)
                if self._root._notify_of_others is not None:
                    self._db.follow_others(self._root._notify_of_others)
            if len(self._views) >= _MAX_VIEWS:
                self._views.clear()
            return self._views.setdefault(user, self._db.scoped(Scope.of(user)))

    def follow_others(self, notify: Callable[[], object]) -> None:
        """For a process that runs long: follow other nodes, and call `notify`, in a thread, when one has written."""
        with self._opening:
            self._root._notify_of_others = notify
            if self._db is not None:
                self._db.follow_others(notify)
        if self.config.store.url:
            from memoranda.api.server_stores import open_indexed_stores

            open_indexed_stores(self.home, self.config, self._open_store)

    def _open_store(self, number: int) -> None:
        """Open the sessions of a store of the fleet, or those of the only store."""
        (self._open_stores().of_store(number) if self.config.store.servers else self).sessions_for(None)

    def latest_session(self, session_id: str, user: str | None) -> str:
        """The session that continues a conversation now; an id without a row stays as it is."""
        session_id = self.stored_name(session_id)
        if not self.has_record:
            return session_id
        return self.sessions_for(user).get_compression_tip(session_id) or session_id

    def search_tool(
        self,
        user: str | None,
        current_session_id: str | None = None,
        directory: Path | None = None,
        chat_model: "ChatModel | None" = None,
    ) -> "SessionSearchTool":
        """The session_search tool of one user; it skips the current session, and `directory` is "this" project.

        `chat_model` answers in the current session, and writes summaries if no other model is set for that.
        """
        from memoranda.search.tool import SessionSearchTool
        from memoranda.support.projects import project_of

        summarize = self._summarize
        if summarize is None and self.config.recall.summarize:
            summarize = self.summarizer(user, current_session_id or "", chat_model)
        return SessionSearchTool(
            lambda: self.sessions_for(user),
            self.config.recall,
            current_session_id=current_session_id and self.stored_name(current_session_id),
            current_project=lambda: project_of(directory) if directory else None,
            summarize=summarize,
        )

    def summarizer(
        self, user: str | None, session_id: str = "", chat_model: "ChatModel | None" = None, name: str = ""
    ) -> "SummaryWriter":
        """Summarizes search results with a model, as background work that the ledger records.

        `name` is a model of the configured service, instead of the one in the settings.
        """
        from memoranda.search.summaries import SummaryWriter

        def set_up_model() -> "ChatModel":
            chosen_name = name or self.config.recall.summary_model
            if chat_model is None or chosen_name:
                return self.background_model(chosen_name, "search", user, session_id)
            return self.metered(chat_model, "search", session_id, user, background=True)

        return SummaryWriter(set_up_model, self.config.recall.summary_deadline)

    def background_model(self, name: str, purpose: str, user: str | None, session_id: str = "") -> "ChatModel":
        """A model of the configured service, by default the one that answers, whose calls must fit the day's budget."""
        from memoranda.models.model_factory import model_for

        chosen = replace(self.config.model, name=name) if name else self.config.model
        model = model_for(chosen, config.credentials(self.home))
        return self.metered(model, purpose, session_id, user, background=True)

    def redact(self, text: str) -> str:
        """The text without credentials; unchanged when redaction is switched off."""
        redactor = self._get_redactor()
        return text if redactor is None else redactor.text(text)[0]

    def stored_name(self, name: str) -> str:
        """How the home stores an id, a source or a project: unchanged, unless it contains a credential."""
        redactor = self._get_redactor()
        return name if redactor is None else redactor.name(name)

    def external_for(self, session_id: str, user: str | None, facts: Mapping[str, Any]) -> "ExternalMemory":
        """The configured external memory, started for one session with these facts; closing the home closes it too."""
        from memoranda.external.external_memory import ExternalMemory

        if not self.config.providers:
            return ExternalMemory()
        from memoranda.api.search_extras import configured_embedder
        from memoranda.external.attach import SessionStart, attach_providers

        start = SessionStart(
            session_id,
            lambda: self.sessions_for(user) if self.has_record else None,
            lambda: self.sessions_for(user),
            lease_secrets=lambda names: config.lease_secrets(self.home, names),
            secrets=lambda: config.known_secrets(self.home),
            toolsets=self.config.toolsets.get(facts["platform"]),
            facts=facts,
            embedder=configured_embedder(self.config.recall),
            server_url=self.server_url,
        )
        external = attach_providers(self.home.root, self.config.providers, self.config.external, start)
        self._external.add(external)
        external.on_close(lambda: self._external.discard(external))
        return external

    def queue_memory_write(
        self, store: "MemoryStore", receipt: "MemoryReceipt", origin: Origin, user: str | None
    ) -> None:
        """Queue a curated write outside any session for the providers, which receive it at their next start."""
        if not self.config.providers:
            return
        from memoranda.external.attach import queue_writes
        from memoranda.external.external_memory import memory_changes

        changes = memory_changes(receipt, origin, lambda text: store.visible_text(receipt.target, text))
        for name in self.config.providers:
            queue_writes(
                self.home.root,
                name,
                self.config.external,
                changes,
                user or "",
                lambda: self.sessions_for(user),
                self.server_url,
            )

    def metered(
        self,
        model: "ChatModel",
        purpose: str,
        session_id: str | Callable[[], str],
        user: str | None,
        *,
        background: bool = False,
    ) -> "ChatModel":
        """The model, wrapped so that the ledger records its calls; background calls must fit the day's budget."""
        return self.ledger.metered(model, purpose, session_id=session_id, user_id=user or "", background=background)

    def count_usage(self, user: str | None, session_id: str, usage: "Usage", *, model: str, provider: str) -> None:
        """Add what a call used to its session; a failure is logged and does not fail the call."""
        try:
            self.sessions_for(user).update_token_counts(
                session_id, **asdict(usage), api_call_count=1, model=model, billing_provider=provider
            )
        except StorageError as error:
            _log.warning("The usage of a call could not be stored for session %s: %s", session_id, error)

    def close(self) -> None:
        """Close the ledger, the external memories and the session store; every write was durable when answered."""
        if is_of_parent(self._opened_in):
            return
        if self._ledger is not None:
            self._ledger.close()
        for external in list(self._external):
            external.close()
        if self._stores is not None:
            self._stores.close()
        with self._opening:
            self._closed = True
            if self.search_extras is not None:
                self.search_extras.close()
            if self._memories is not None:
                self._memories.close()
            if self._checkpoints is not None:
                self._checkpoints.close()
            if self._db is not None:
                self._db.close()
                self._db = None
                self._views.clear()

    def expand_searches(self) -> None:
        """Let a model suggest further words for the searches of this object, whatever the settings say."""
        self.config = replace(self.config, recall=replace(self.config.recall, expand=True))
        if self._db is not None:
            self._add_search_extras(self._db)

    def _add_search_extras(self, db: "SessionDB") -> None:
        settings = self.config.recall
        if settings.semantic or settings.rerank or settings.expand:
            from memoranda.api.search_extras import SearchExtras

            is_first = self.search_extras is None
            self.search_extras = SearchExtras(self.home, self.config, lambda: self.ledger)
            self.search_extras.attach(db, follow=is_first)
        if not (settings.semantic and settings.semantic_index) and any(self.home.root.glob(_VECTOR_FILES)):
            from memoranda.support.home import remove_vectors

            try:
                # Nothing would remove deleted messages from them.
                remove_vectors(config.vectors_base(self.home, self.config))
            except OSError as error:
                _log.warning("Vectors that are no longer used could not be deleted: %s", error)

    def _forget_waiting(self, matcher: "TextMatcher", scope: Scope) -> None:
        """Remove the text of a redacted message from deliveries that wait for external memories."""
        from memoranda.external.outbox.queued_passages import QueuedPassages

        user = None if scope.all else scope.user or ""
        queue = QueuedPassages(self.home.root, user, self.server_url, lambda: self.sessions_for(scope.user))
        queue.forget(matcher)
        queue.erase_removed()

    def recall_log(self, user: str | None) -> "RecallLog":
        """Where the recalls of programs for a user are logged."""
        from memoranda.search.recall_log import RecallLog

        return RecallLog(self.home.root, user, self.redact)

    def _get_redactor(self) -> Redactor | None:
        if self._redactor is None and self.config.redact_secrets:
            self._redactor = Redactor(config.known_secrets(self.home))
        return self._redactor

    @property
    def ledger(self) -> "Ledger":
        """The spend ledger of the home: what models cost."""
        from memoranda.models.spending.ledger import Ledger

        if self._root is not self:
            # The stores of a fleet share one budget.
            return self._root.ledger
        with self._opening:
            if self._ledger is None:
                self._ledger = Ledger(self.home.root, self.config.budget, server_url=self.server_url)
            return self._ledger


def new_session_id() -> str:
    """An id for a new session; ids sort by time."""
    return f"{datetime.now(UTC):%Y%m%d_%H%M%S}_{os.urandom(3).hex()}"


def _find_similar(store: "MemoryStore", target: "Target", texts: "Sequence[str]") -> list[str]:
    """The entries and notes that share most with texts; only writes need the tokenizer."""
    from memoranda.search.similar_entries import similar_entries

    return similar_entries(store, target, texts)
