"""The holographic provider: long-term facts on this machine, as an external memory.

It keeps a fact for each entry of curated memory, and changes or removes it with the entry. A notification may be
delivered twice, so every operation can be repeated. Only mirrored facts are changed or removed; a fact that was stored
separately stays, even with the same text.
"""

import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from memoranda.errors import ProviderError, StorageError
from memoranda.external.holographic import health
from memoranda.external.holographic import settings as settings_module
from memoranda.external.holographic.entities import find_entities, find_entity
from memoranda.external.holographic.extraction import extract_statements
from memoranda.external.holographic.fact_store import (
    MAX_CONTENT_CHARS,
    Fact,
    FactError,
    FactStore,
    Provenance,
    content_key,
)
from memoranda.external.holographic.retrieval import FactFilter, FactMeanings, FoundFact, Retriever
from memoranda.external.holographic.tool import SYSTEM_PROMPT, FactTools, schemas
from memoranda.external.holographic.user_facts import sweep_caches
from memoranda.external.provider import SERVER_URL, MemoryProvider, TextEmbedder
from memoranda.support.health_issues import repair_reported
from memoranda.support.shorten import shorten_end

_log = logging.getLogger(__name__)

# The weight of a fact that shares only an entity with the turn.
_NAME_ONLY_WEIGHT = 0.5
_MAX_NAMES = 4
_MAX_QUERY_CHARS = 2000
_MAX_LINE_CHARS = 400
_DAY = 86_400
_ALL_FACTS = 10**9


class HolographicProvider(MemoryProvider):
    """Keeps facts in `home.db`, or on the server that has the record; needs no service."""

    def __init__(self, home: Path | None = None, settings: Mapping[str, Any] | None = None) -> None:
        self._home = home
        self._overrides = dict(settings or {})
        self._user = ""
        self._server_url = ""
        self._lock = threading.Lock()
        self._session_id = ""
        self._settings: settings_module.HolographicSettings | None = None
        self._store: FactStore | None = None
        self._retriever: Retriever | None = None
        self._tools: FactTools | None = None
        self._embedder: TextEmbedder | None = None

    @property
    def name(self) -> str:
        return settings_module.NAME

    def is_available(self) -> bool:
        return True

    def initialize(self, session_id: str, **facts: Any) -> None:
        self._session_id = session_id
        self._embedder = facts.get("embedder")
        home = facts.get("hermes_home") or facts.get("home")
        user = str(facts.get("user_id") or "")
        with self._lock:
            # Each user of a gateway has a separate cache.
            self._user = user
            self._server_url = str(facts.get(SERVER_URL) or "")
            if home:
                self._home = Path(home)
            self._close()
            self._open()

    def system_prompt_block(self) -> str:
        return SYSTEM_PROMPT

    def prefetch(self, query: str, *, session_id: str = "", **facts: Any) -> str:
        """The facts that match a turn, one line each, with age and trust."""
        if self._store is not None:
            self._store.refresh()
        query = query[:_MAX_QUERY_CHARS].encode("utf-8", "replace").decode()
        store, retriever, current = self._store, self._retriever, self._settings
        if store is None or retriever is None or current is None or not current.prefetch_limit:
            return ""
        filters = FactFilter(None, current.min_trust, current.prefetch_limit)
        found = {hit.fact.fact_id: hit for hit in self._about_names(store, retriever, query, filters)}
        found |= {hit.fact.fact_id: hit for hit in retriever.recall(query, filters)}
        best = sorted(found.values(), key=lambda hit: (-hit.score, -hit.fact.fact_id))[: filters.limit]
        try:
            store.count_retrieved(hit.fact.fact_id for hit in best)
        except StorageError as error:
            _log.warning("Recalled facts were not counted: %s", error)
        return "\n".join(_format_fact(hit.fact, store.clock()) for hit in best)

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return schemas((self._settings or settings_module.HolographicSettings()).min_trust)

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **facts: Any) -> str:
        tools = self._tools
        if tools is None:
            return json.dumps({"error": "The facts are not open: the provider was not started, or was shut down."})
        self._require_store().refresh()
        origin = Provenance(
            str(facts.get("session_id") or self._session_id), str(facts.get("tool_call_id") or ""), "tool"
        )
        return json.dumps(tools.call(tool_name, args, origin), ensure_ascii=False)

    def on_memory_write(
        self, action: str, target: str, content: str, metadata: dict[str, Any] | None = None, **facts: Any
    ) -> None:
        """Mirrors a write of curated memory."""
        known = dict(metadata or {}) | {name: value for name, value in facts.items() if value}
        origin = Provenance(
            str(known.get("session_id") or self._session_id),
            str(known.get("tool_call_id") or known.get("task_id") or ""),
            f"mirror:{known.get('write_origin') or 'memory'}",
        )
        mirror(self._current_store(), action, target, content, str(known.get("old_text") or ""), origin)

    def on_session_switch(self, new_session_id: str, **facts: Any) -> None:
        self._session_id = new_session_id

    def on_session_end(self, messages: list[dict[str, Any]], **facts: Any) -> None:
        """Stores the user's statements, if `auto_extract` is on."""
        store = self._require_store()
        if self._settings is None or not self._settings.auto_extract:
            return
        session_id = str(facts.get("session_id") or self._session_id)
        for statement in extract_statements(messages):
            text = statement.text.rstrip(".").replace('"', "'")
            store.add(
                f'The user said: "{text}."'.encode("utf-8", "replace").decode(),
                category=statement.category,
                provenance=Provenance(session_id, statement.message, "extraction"),
            )

    def forget(self, session_ids: list[str] | None = None, **facts: Any) -> dict[str, Any]:
        """Deletes the facts of sessions, or all facts of the user.

        A fact that mirrors an entry of curated memory belongs to the entry, not to the session that wrote it.
        """
        store = self._current_store()
        found = [
            fact
            for fact in store.list_facts(limit=_ALL_FACTS)
            if session_ids is None or (fact.provenance.session_id in session_ids and not fact.mirror_of)
        ]
        return _erase(store, found)

    def forget_text(self, matches: Callable[[str], bool], **facts: Any) -> dict[str, Any]:
        """Deletes the facts whose text, tags or entities match."""
        store = self._current_store()
        found = [
            fact
            for fact in store.list_facts(limit=_ALL_FACTS)
            if any(map(matches, (fact.content, *fact.tags, *fact.entities)))
        ]
        return _erase(store, found)

    def get_config_schema(self) -> list[dict[str, Any]]:
        return [field.as_schema() for field in settings_module.FIELDS]

    def save_config(self, values: dict[str, Any], hermes_home: str, **facts: Any) -> None:
        settings_module.save(values, Path(hermes_home))

    def check(self, hermes_home: str, **facts: Any) -> list[dict[str, Any]]:
        return [issue.as_report() for issue in health.check_caches(Path(hermes_home))]

    def repair(self, issue: dict[str, Any], hermes_home: str, **facts: Any) -> str:
        return repair_reported(issue, health.check_caches(Path(hermes_home)))

    def shutdown(self) -> None:
        with self._lock:
            self._close()

    def _about_names(self, store: FactStore, retriever: Retriever, query: str, filters: FactFilter) -> list[FoundFact]:
        """Facts about the entities that a text names, by exact names and aliases only."""
        names = [entity.name for entity in find_entities(query) if entity.kind != "user"]
        with store.database.reading() as connection:
            known = [name for name in names if find_entity(connection, name) is not None][:_MAX_NAMES]
        return [
            FoundFact(hit.fact, hit.score * _NAME_ONLY_WEIGHT, hit.match)
            for name in known
            for hit in retriever.probe(name, filters)
        ]

    def _require_store(self) -> FactStore:
        """The open store; raises ProviderError if there is none, so that the notification is delivered again."""
        if self._store is None:
            raise ProviderError("The facts of holographic are not open.")
        return self._store

    def _current_store(self) -> FactStore:
        """The open store with what other nodes have changed."""
        store = self._require_store()
        store.refresh()
        return store

    def _open(self) -> None:
        if self._home is None:
            raise ProviderError("holographic needs a home for its facts.")
        current = settings_module.load(self._home, self._overrides)
        sweep_caches(self._home, self._server_url)
        self._store = FactStore(
            self._home, self._user, self._server_url, dimension=current.dimension, default_trust=current.default_trust
        )
        self._settings = current
        meanings = None if self._embedder is None else FactMeanings(self._store, self._embedder)
        self._retriever = Retriever(self._store, current.half_life_days, meanings)
        self._tools = FactTools(self._store, self._retriever, current.min_trust)

    def _close(self) -> None:
        store, self._store, self._retriever, self._tools = self._store, None, None, None
        if store is not None:
            store.close()


def _erase(store: FactStore, facts: Sequence[Fact]) -> dict[str, Any]:
    """Removes facts, and what they left in the file."""
    for fact in facts:
        store.remove(fact.fact_id)
    # Also without facts: earlier ones may have been removed without overwriting their words.
    erased = store.erase_removed()
    remaining = [] if erased else [f"the log of {store.database.path.name}, which another program is reading"]
    return {
        "deleted": ["1 fact" if len(facts) == 1 else f"{len(facts)} facts"] if facts else [],
        "remaining": remaining,
    }


def _format_fact(fact: Fact, now: float) -> str:
    content = shorten_end(" ".join(fact.content.split()), _MAX_LINE_CHARS)
    return f"- {content} ({_format_age(now - fact.updated_at)}, trust {fact.trust:.2f}, fact {fact.fact_id})"


def _format_age(seconds: float) -> str:
    days = int(max(0.0, seconds) // _DAY)
    if days == 0:
        return "today"
    if days < 60:
        return "1 day old" if days == 1 else f"{days} days old"
    return f"{days // 30} months old" if days < 730 else f"{days // 365} years old"


def mirror(store: FactStore, action: str, target: str, content: str, old_text: str, origin: Provenance) -> None:
    """Applies the write of an entry (add, replace or remove) to its mirrored fact."""
    content = content.encode("utf-8", "replace").decode().strip()[:MAX_CONTENT_CHARS]
    if action == "add":
        _add(store, target, content, origin)
    elif action == "replace":
        old = _find_mirror(store, target, old_text)
        if old is None or not content:
            _add(store, target, content, origin)
        elif content_key(old.content) != content_key(content):
            try:
                store.update(old.fact_id, content=content)
            except FactError:
                # Another fact already has this text.
                store.remove(old.fact_id)
    elif action == "remove":
        old = _find_mirror(store, target, old_text or content)
        if old is not None:
            store.remove(old.fact_id)
    else:
        _log.warning("The memory write %r was not mirrored, because its action is unknown", action)


def _add(store: FactStore, target: str, content: str, origin: Provenance) -> None:
    if content:
        category = "user_pref" if target == "user" else "general"
        store.add(content, category=category, provenance=origin, mirror_of=target)


def _find_mirror(store: FactStore, target: str, text: str) -> Fact | None:
    """The mirrored fact of an entry; None if several match, which happens only after a missed write."""
    if not text:
        return None
    found = store.find_mirrored(target, text.encode("utf-8", "replace").decode())
    if len(found) > 1:
        _log.warning("%d facts mirror an entry with the same text; none of them was changed", len(found))
    return found[0] if len(found) == 1 else None
