"""The base of all vendors' providers: settings, recall, deliveries, tools and names, without assuming HTTP.

A vendor's provider has few members of its own. This one keeps memories at a service that has two calls:

    class AcmeProvider(VendorProvider):
        name = "acme"
        label = "Acme"
        fields = (
            ConfigField("url", "Address of the service", default="https://api.acme.example", env_var="ACME_URL"),
            ConfigField("api_key", "API key", secret=True, required=True, env_var="ACME_API_KEY"),
            *COMMON_FIELDS,
        )

        def open(self) -> None:
            url, key, timeout = (self.settings[name] for name in ("url", "api_key", "timeout"))
            self.client = RemoteClient(self.name, url, headers={"Authorization": f"Bearer {key}"}, timeout=timeout)

        def close(self) -> None:
            self.client.close()

        def search(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
            body = {"q": query, "user": self.scope.peer(), "limit": limit}
            found = self.client.post("/search", body, timeout=timeout, retry_safe=True)
            return [RecalledItem(hit["text"], hit["at"], hit["score"], hit["id"]) for hit in found["hits"]]

        def store_turn(self, turn: Turn) -> str:
            if turn.may_be_stored and (known := self.client.get("/memories", query={"key": turn.key})["ids"]):
                return known[0]
            body = {"text": turn.user, "answer": turn.assistant, "user": self.scope.peer(), "key": turn.key}
            return self.client.post("/memories", body)["id"]

and one line in `memoranda.providers.discovery`. Errors of `RemoteClient` need no handling: the outbox understands them.
A vendor that is a program or a library instead raises TemporaryProviderError or PermanentProviderError itself.
"""

import json
import threading
import time
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from memoranda.errors import PermanentProviderError, ProviderError, TemporaryProviderError
from memoranda.providers.provider import Facts, MemoryProvider, Message
from memoranda.providers.setup import ConfigField
from memoranda.providers.vendors.recalled_item import RecalledItem, format_items
from memoranda.providers.vendors.sent_record import SentItem, SentRecord
from memoranda.providers.vendors.vendor_deliveries import MemoryWrite, Turn, delivery_facts
from memoranda.providers.vendors.vendor_recall import VendorRecall
from memoranda.providers.vendors.vendor_scope import VendorScope, profile_of
from memoranda.providers.vendors.vendor_settings import COMMON_FIELDS, missing_fields, resolve_settings
from memoranda.providers.vendors.vendor_tool import ToolArgumentError, VendorTool

# What a live search gets of the turn's time; the rest is for formatting and for the thread to end.
_SHARE_OF_DEADLINE = 0.9
_DEFAULT_RECALL_SECONDS = 2.0
_AHEAD_SECONDS = 60.0
_MAX_QUERY_CHARS = 2_000
_RECALL_CHARS = 4_000


class VendorProvider(MemoryProvider):
    """One vendor. `open`, `search` and `store_turn` are required; everything else has a default.

    After `initialize`, `settings` has a value for every field, `scope` says for whom it was started, and `sent` is the
    record of what the vendor has received. Hooks that are not listed here (`on_session_end`, `on_delegation`,
    `on_pre_compress`, `system_prompt_block` …) are overridden as in any provider; those that write return at once
    unless `self.scope.accepts_writes`.
    """

    label: ClassVar[str]
    """The vendor's name as people write it; it labels recalled items."""
    fields: ClassVar[tuple[ConfigField, ...]] = COMMON_FIELDS
    live_recall: ClassVar[bool] = True
    """False for a vendor that is slower than a turn waits: it is only searched after a turn, for the next one."""
    recall_ahead: ClassVar[Literal["after_miss", "always"]] = "after_miss"
    """When to search after a turn for the next one: if the live search failed or was late, or always. `always` adds
    the result to that of the live search."""

    settings: Mapping[str, Any]
    scope: VendorScope
    sent: SentRecord

    def __init__(self, home: Path | None = None, settings: Mapping[str, Any] | None = None) -> None:
        self._home = home
        self._given = dict(settings or {})
        self._variables: dict[str, str] = {}
        self._opening = threading.Lock()
        self._is_open = False
        self._recall = VendorRecall(self.label)
        self.session_id = ""

    # What a vendor implements

    @abstractmethod
    def open(self) -> None:
        """Create the client from `self.settings` and `self.scope`. No network: the service may be down."""

    def close(self) -> None:
        """Close what `open` created."""

    @abstractmethod
    def search(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        """Search the vendor, at most `timeout` seconds, best items first. Raises ProviderError."""

    def search_ahead(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        """Search after a turn, for the next one; may be slower and deeper than `search`."""
        return self.search(query, limit, timeout)

    @abstractmethod
    def store_turn(self, turn: Turn) -> str | None:
        """Store a turn and return the vendor's id for it, if it has one. Raises ProviderError unless it is stored.

        If `turn.may_be_stored`, first look for `turn.key` at the vendor, unless storing it twice has no effect.
        """

    def store_memory_write(self, write: MemoryWrite) -> str | None:
        """Mirror a write of curated memory; like `store_turn`."""
        return None

    def tools(self) -> Sequence[VendorTool]:
        """The tools for the model."""
        return ()

    def remote_names(self, scope: VendorScope, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """The vendor's names for the user, the workspace …, for `memoranda provider status`."""
        return {"user_at_vendor": scope.peer()}

    def delete_sent(self, session_ids: Collection[str] | None) -> tuple[list[SentItem], list[str]]:
        """Delete what the vendor has received: of some sessions, or all of it if None.

        Return the items of `self.sent` that are deleted, and descriptions of what remains. Raises ProviderError.
        """
        kept = [item for item in self.sent.items() if session_ids is None or item.session_id in session_ids]
        return [], [f"{len(kept)} turns and memory writes: {self.label} offers no way to delete them"] if kept else []

    # The contract

    def is_available(self) -> bool:
        return not missing_fields(self.fields, self._resolve(self._home))

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
            if missing := missing_fields(self.fields, settings):
                names = ", ".join(f"{field.key} ({field.env_var})" if field.env_var else field.key for field in missing)
                raise PermanentProviderError(f"{names} is not set. 'memoranda provider setup {self.name}' asks for it.")
            self.session_id, self.scope, self.settings = session_id, scope, settings
            self.sent = SentRecord(scope.home, self.name, scope.user_id)
            self.open()
            self._is_open = True

    def limits(self) -> Mapping[str, Any]:
        return {"mode": self.settings.get("mode", "hybrid")}

    def prefetch(self, query: str, *, session_id: str = "", **facts: Facts) -> str:
        self._require_open()
        query = query.strip()[:_MAX_QUERY_CHARS]
        if not query:
            return ""
        if self.live_recall:
            seconds = facts.get("seconds")
            within = seconds if isinstance(seconds, int | float) else _DEFAULT_RECALL_SECONDS
            items = self._recall.live_or_ahead(
                lambda text, timeout: self.search(text, self._limit, timeout),
                query,
                within * _SHARE_OF_DEADLINE,
                session_id,
                merge=self.recall_ahead == "always",
            )
        else:
            items = self._recall.take_ahead(session_id)
        return format_items(items, self.label, _RECALL_CHARS)

    def queue_prefetch(self, query: str, *, session_id: str = "", **facts: Facts) -> None:
        self._require_open()
        query = query.strip()[:_MAX_QUERY_CHARS]
        wanted = not self.live_recall or self.recall_ahead == "always" or self._recall.missed
        if query and wanted:
            self._recall.search_ahead(
                lambda text, timeout: self.search_ahead(text, self._limit, timeout), query, _AHEAD_SECONDS, session_id
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
        self._require_open()
        known = delivery_facts(facts, session_id or self.session_id, time.time())
        turn = Turn(*known, user_content, assistant_content, tuple(messages or ()))
        if self.scope.accepts_writes and self.sent.find("turn", turn.key) is None:
            remote_id = self.store_turn(turn)
            self.sent.add("turn", turn.key, remote_id or "", turn.session_id)

    def on_memory_write(
        self, action: str, target: str, content: str, metadata: dict[str, Any] | None = None, **facts: Facts
    ) -> None:
        self._require_open()
        about = metadata or {}
        known = delivery_facts(facts, str(about.get("session_id") or self.session_id), time.time())
        write = MemoryWrite(*known, action, target, content, str(about.get("old_text") or ""))
        if self.scope.accepts_writes and self.sent.find("memory_write", write.key) is None:
            remote_id = self.store_memory_write(write)
            self.sent.add("memory_write", write.key, remote_id or "", write.session_id)

    def on_session_switch(
        self,
        new_session_id: str,
        *,
        parent_session_id: str = "",
        reset: bool = False,
        rewound: bool = False,
        **facts: Facts,
    ) -> None:
        self.session_id = new_session_id
        self._recall.drop()

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [tool.schema() for tool in self.tools()] if self._is_open else []

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **facts: Facts) -> str:
        return json.dumps(self._call_tool(tool_name, args, str(facts.get("session_id") or "")), ensure_ascii=False)

    def forget(self, session_ids: list[str] | None = None, **facts: Facts) -> Mapping[str, Any]:
        self._require_open()
        deleted, remaining = self.delete_sent(session_ids)
        for item in deleted:
            self.sent.remove(item)
        counts: dict[str, int] = {}
        for item in deleted:
            counts[item.kind] = counts.get(item.kind, 0) + 1
        return {"deleted": [f"{count} of the kind {kind}" for kind, count in counts.items()], "remaining": remaining}

    def get_config_schema(self) -> list[dict[str, Any]]:
        return [field.as_schema() for field in self.fields]

    def get_status_config(self, provider_config: dict[str, Any], **facts: Facts) -> dict[str, Any]:
        if self._home is None:
            return dict(provider_config)
        scope = VendorScope(self._home, profile_of(self._home))
        return {**provider_config, **self.remote_names(scope, self._resolve(self._home))}

    def shutdown(self) -> None:
        with self._opening:
            self._close()

    # Private parts

    @property
    def _limit(self) -> int:
        return int(self.settings.get("recall_limit") or 6)

    def _resolve(self, home: Path | None) -> dict[str, Any]:
        return resolve_settings(self.fields, self.name, home, self._given, self._variables)

    def _require_open(self) -> None:
        """Raise an error that keeps a delivery, if the provider was not started or is shut down."""
        if not self._is_open:
            raise TemporaryProviderError(f"{self.label} was not started, or was shut down.")

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            self.sent.close()
            self.close()

    def _call_tool(self, name: str, args: Mapping[str, Any], session_id: str) -> Any:
        tool = next((tool for tool in self.tools() if tool.name == name), None) if self._is_open else None
        if tool is None:
            return {"error": f"{self.label} has no tool {name!r}, or was not started."}
        if tool.writes and not self.scope.accepts_writes:
            return {"error": f"{name} writes, and a session of the kind {self.scope.agent_context} only reads."}
        try:
            return tool.run(tool.check(args), session_id or self.session_id)
        except (ToolArgumentError, ProviderError) as error:
            return {"error": str(error)}
