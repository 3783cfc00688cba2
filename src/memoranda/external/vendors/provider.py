"""The provider of any vendor: passes what a conversation needs to a `Vendor`, and what the vendor recalls back.

It resolves settings, searches within the deadline, sends each delivery once, checks arguments of tools, and refuses
writes of sessions that only read. See `vendor` for what a vendor implements.

Only recall has a circuit breaker: a vendor that is down costs a few deadlines and not one per turn, while deliveries
wait in the outbox anyway.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MethodType
from typing import Any, ClassVar

from memoranda.errors import PermanentProviderError, ProviderError, TemporaryProviderError
from memoranda.external.provider import Facts, MemoryProvider, Message
from memoranda.external.remote import CircuitBreaker
from memoranda.external.vendors.scope import VendorScope, profile_of
from memoranda.external.vendors.sent_record import SentRecord, describe_items
from memoranda.external.vendors.texts import RecalledItem, format_items
from memoranda.external.vendors.vendor import (
    Delegation,
    MemoryWrite,
    SessionEnd,
    ToolArgumentError,
    Turn,
    Vendor,
    delivery_facts,
    missing_fields,
    resolve_settings,
)
from memoranda.safety.redaction import Redactor

_log = logging.getLogger(__name__)

Search = Callable[[str, float], list[RecalledItem]]

# What a live search gets of the turn's time; the rest is for formatting and for the thread to end.
_SHARE_OF_DEADLINE = 0.9
_DEFAULT_RECALL_SECONDS = 2.0
_AHEAD_SECONDS = 60.0
_MAX_QUERY_CHARS = 2_000
_RECALL_CHARS = 4_000
# Hooks of the contract, and the member of the vendor that each of them needs.
_OPTIONAL_HOOKS = {
    "system_prompt_block": "guidance",
    "on_memory_write": "store_memory_write",
    "on_delegation": "store_delegation",
    "on_session_end": "end_session",
    "on_pre_compress": "before_compression",
    "test_connection": "test_connection",
}


class VendorProvider(MemoryProvider):
    """A vendor as an external memory. A subclass only says which: `vendor_class = AcmeVendor`."""

    vendor_class: ClassVar[type[Vendor]]

    def __init__(self, home: Path | None = None, settings: Mapping[str, Any] | None = None) -> None:
        self._home = home
        self._given = dict(settings or {})
        self._variables: dict[str, str] = {}
        self._opening = threading.Lock()
        self._vendor: Vendor | None = None
        self._recall = VendorRecall(self.vendor_class.label)
        for hook, member in _OPTIONAL_HOOKS.items():
            # The contract's default, for which the manager queues nothing.
            if getattr(self.vendor_class, member) is getattr(Vendor, member):
                setattr(self, hook, MethodType(getattr(MemoryProvider, hook), self))

    @property
    def name(self) -> str:
        return self.vendor_class.name

    def is_available(self) -> bool:
        return not self.explain_unavailable()

    def explain_unavailable(self) -> str:
        return self._explain_missing(self._resolve(self._home))

    def receive_secrets(self, values: Mapping[str, str]) -> None:
        self._variables = dict(values)

    def initialize(self, session_id: str, **facts: Facts) -> None:
        secrets = facts.get("secrets")
        with self._opening:
            self._close()
            if isinstance(secrets, Mapping):
                self._variables |= {str(name): str(value) for name, value in secrets.items()}
            scope = VendorScope.from_facts(facts, self._home)
            settings = self._resolve(scope.home)
            if missing := self._explain_missing(settings):
                raise PermanentProviderError(missing)
            sent = SentRecord(scope.home, self.name, scope)
            vendor = self.vendor_class(settings, scope, sent, session_id)
            vendor.open()
            self._vendor = vendor

    def limits(self) -> Mapping[str, Any]:
        return {"mode": self._open_vendor().mode}

    def system_prompt_block(self) -> str:
        return self._open_vendor().prompt_block()

    def prefetch(self, query: str, *, session_id: str = "", **facts: Facts) -> str:
        vendor = self._open_vendor()
        query = query.strip()[:_MAX_QUERY_CHARS]
        if not query:
            return ""
        if vendor.live_recall:
            seconds = facts.get("seconds")
            within = seconds if isinstance(seconds, int | float) else _DEFAULT_RECALL_SECONDS
            items = self._recall.live_or_ahead(
                lambda text, timeout: vendor.search(text, vendor.recall_limit, timeout),
                query,
                within * _SHARE_OF_DEADLINE,
                session_id,
                merge=vendor.recall_ahead == "always",
            )
        else:
            items = self._recall.take_ahead(session_id)
        max_chars = facts.get("max_chars")
        return format_items(items, vendor.label, max_chars if isinstance(max_chars, int) else _RECALL_CHARS)

    def queue_prefetch(self, query: str, *, session_id: str = "", **facts: Facts) -> None:
        vendor = self._open_vendor()
        query = query.strip()[:_MAX_QUERY_CHARS]
        wanted = not vendor.live_recall or vendor.recall_ahead == "always" or self._recall.missed
        if query and wanted:
            self._recall.search_ahead(
                lambda text, timeout: vendor.search_ahead(text, vendor.recall_limit, timeout),
                query,
                _AHEAD_SECONDS,
                session_id,
            )

    def sync_turn(
        self,
        user_content: str,
        assistant_content: str,
        *,
        session_id: str = "",
        messages: list[Message] | None = None,
        **facts: Facts,
    ) -> None:
        vendor = self._open_vendor()
        known = delivery_facts(facts, session_id or vendor.session_id, time.time())
        turn = Turn(*known, user_content, assistant_content, tuple(messages or ()))
        if not _may_store(vendor, facts) or vendor.sent.find("turn", turn.key) is not None:
            return
        if (remote_id := vendor.store_turn(turn)) is not None:
            vendor.sent.add("turn", turn.key, remote_id, turn.session_id)

    def on_memory_write(
        self, action: str, target: str, content: str, metadata: dict[str, Any] | None = None, **facts: Facts
    ) -> None:
        vendor = self._open_vendor()
        about = metadata or {}
        known = delivery_facts(facts, str(about.get("session_id") or vendor.session_id), time.time())
        write = MemoryWrite(*known, action, target, content, str(about.get("old_text") or ""))
        if _may_store(vendor, facts) and vendor.sent.find("memory_write", write.key) is None:
            vendor.sent.add("memory_write", write.key, vendor.store_memory_write(write) or "", write.session_id)

    def on_delegation(self, task: str, result: str, *, child_session_id: str = "", **facts: Facts) -> None:
        vendor = self._open_vendor()
        known = delivery_facts(facts, str(facts.get("session_id") or vendor.session_id), time.time())
        done = Delegation(*known, task, result, child_session_id)
        if _may_store(vendor, facts) and vendor.sent.find("delegation", done.key) is None:
            vendor.sent.add("delegation", done.key, vendor.store_delegation(done) or "", done.session_id)

    def on_session_end(self, messages: list[Message], **facts: Facts) -> None:
        vendor = self._open_vendor()
        known = delivery_facts(facts, str(facts.get("session_id") or vendor.session_id), time.time())
        if _may_store(vendor, facts):
            vendor.end_session(SessionEnd(*known, tuple(messages)))

    def on_session_switch(self, new_session_id: str, **facts: Facts) -> None:
        vendor = self._open_vendor()
        self._recall.drop()
        vendor.drop_recalled()
        vendor.session_id = new_session_id

    def on_pre_compress(self, messages: list[Message], **facts: Facts) -> str:
        vendor = self._open_vendor()
        return vendor.before_compression(messages, str(facts.get("session_id") or vendor.session_id))

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        vendor = self._vendor
        return [] if vendor is None else [tool.schema() for tool in vendor.tools()]

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **facts: Facts) -> str:
        return json.dumps(self._call_tool(tool_name, args, str(facts.get("session_id") or "")), ensure_ascii=False)

    def test_connection(self, **facts: Facts) -> str:
        return self._open_vendor().test_connection()

    def forget(self, session_ids: list[str] | None = None, **facts: Facts) -> Mapping[str, Any]:
        vendor = self._open_vendor()
        deleted, remaining = vendor.delete_sent(session_ids)
        for item in deleted:
            vendor.sent.remove(item)
        return {"deleted": describe_items(deleted), "remaining": remaining}

    def get_config_schema(self) -> list[dict[str, Any]]:
        # Settings are read from their own file, so only secrets go to `.env`.
        return [
            field.as_schema() | ({} if field.secret else {"in_env_file": False}) for field in self.vendor_class.fields
        ]

    def get_status_config(self, provider_config: dict[str, Any], **facts: Facts) -> dict[str, Any]:
        if self._home is None:
            return dict(provider_config)
        scope = VendorScope(self._home, profile_of(self._home))
        return {**provider_config, **self.vendor_class.remote_names(scope, self._resolve(self._home))}

    def shutdown(self) -> None:
        with self._opening:
            self._close()

    def _resolve(self, home: Path | None) -> dict[str, Any]:
        return resolve_settings(self.vendor_class.fields, self.name, home, self._given, self._variables)

    def _explain_missing(self, settings: Mapping[str, Any]) -> str:
        """Which setting, program or package is missing, and how to get it; empty if nothing is."""
        if missing := missing_fields(self.vendor_class.fields, settings):
            names = ", ".join(f"{field.key} ({field.env_var})" if field.env_var else field.key for field in missing)
            verb, object_ = ("is", "it") if len(missing) == 1 else ("are", "them")
            return f"{names} {verb} not set. 'memoranda provider setup {self.name}' asks for {object_}."
        return self.vendor_class.missing_dependency(settings)

    def _open_vendor(self) -> Vendor:
        """The vendor; raises an error that keeps a delivery, if it was not started or is shut down."""
        if self._vendor is None:
            raise TemporaryProviderError(f"{self.vendor_class.label} was not started, or was shut down.")
        return self._vendor

    def _close(self) -> None:
        vendor, self._vendor = self._vendor, None
        if vendor is not None:
            vendor.sent.close()
            vendor.close()

    def _call_tool(self, name: str, args: Mapping[str, Any], session_id: str) -> Any:
        vendor = self._vendor
        tool = next((tool for tool in vendor.tools() if tool.name == name), None) if vendor is not None else None
        if vendor is None or tool is None:
            return {"error": f"{self.vendor_class.label} has no tool {name!r}, or was not started."}
        if tool.writes and not vendor.scope.accepts_writes:
            return {"error": f"{name} writes, and a session of the kind {vendor.scope.agent_context} only reads."}
        try:
            return tool.run(vendor, tool.check(args), session_id or vendor.session_id)
        except (ToolArgumentError, ProviderError) as error:
            # A library behind the vendor may quote its key.
            keys = (vendor.settings[field.key] for field in vendor.fields if field.secret)
            return {"error": Redactor(str(key) for key in keys if key).text(str(error))[0]}


def _may_store(vendor: Vendor, facts: Mapping[str, Any]) -> bool:
    """Whether a delivery is stored: its own session decides, which need not be the one that delivers it."""
    context = facts.get("agent_context")
    return context == "primary" if isinstance(context, str) and context else vendor.scope.accepts_writes


class VendorRecall:
    """What one provider recalls. `search` gets a query and a timeout in seconds, and raises ProviderError."""

    def __init__(self, vendor: str) -> None:
        self._vendor = vendor
        self._breaker = CircuitBreaker()
        self._lock = threading.Lock()
        self._ahead: tuple[str, list[RecalledItem]] | None = None
        self.missed = False
        """Whether the last search in a turn failed or was late."""

    def search_ahead(self, search: Search, query: str, seconds: float, session_id: str) -> None:
        """Search for the next turn of a session, and keep the result for it. Raises ProviderError."""
        items = self._search(search, query, seconds)
        with self._lock:
            self._ahead = (session_id, items)

    def take_ahead(self, session_id: str) -> list[RecalledItem]:
        """The result that was kept for a session; it is used once, and never for another session."""
        with self._lock:
            kept, self._ahead = self._ahead, None
        return kept[1] if kept is not None and kept[0] == session_id else []

    def drop(self) -> None:
        """Drop what was kept: the session was switched or rewound."""
        with self._lock:
            self._ahead = None

    def live_or_ahead(
        self, search: Search, query: str, seconds: float, session_id: str, *, merge: bool
    ) -> list[RecalledItem]:
        """The result of a live search; the one that was kept if the live one fails. `merge` adds the two."""
        kept = self.take_ahead(session_id)
        self.missed = True
        try:
            found = self._search(search, query, seconds)
        except ProviderError as error:
            if not kept:
                raise
            _log.info("%s uses what it found after the last turn: %s", self._vendor, error)
            return kept
        self.missed = False
        return [*kept, *found] if merge else found

    def _search(self, search: Search, query: str, seconds: float) -> list[RecalledItem]:
        return self._breaker.run(lambda: search(query, seconds), self._vendor)
