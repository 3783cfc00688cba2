"""What a vendor of memory implements: how to reach its service, search, store and delete. No HTTP is assumed.

    class AcmeVendor(Vendor):
        name = "acme"
        label = "Acme"
        fields = (
            ConfigField("url", "Address of the service", default="https://api.acme.example", env_var="ACME_URL"),
            ConfigField("api_key", "API key", secret=True, required=True, env_var="ACME_API_KEY"),
            *COMMON_FIELDS,
        )

        def open(self) -> None:
            url, key, timeout = (self.settings[name] for name in ("url", "api_key", "timeout"))
            self._client = RemoteClient(self.name, url, headers={"Authorization": f"Bearer {key}"}, timeout=timeout)

        def close(self) -> None:
            self._client.close()

        def search(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
            body = {"q": query, "user": self.scope.peer(), "limit": limit}
            found = self._client.post("/search", body, timeout=timeout, retry_safe=True)
            return [RecalledItem(hit["text"], hit["at"], hit["score"], hit["id"]) for hit in found["hits"]]

        def store_turn(self, turn: Turn) -> str:
            if turn.may_be_stored and (known := self._client.get("/memories", query={"key": turn.key})["ids"]):
                return known[0]
            body = {"text": turn.user, "answer": turn.assistant, "user": self.scope.peer(), "key": turn.key}
            return self._client.post("/memories", body)["id"]


    class AcmeProvider(VendorProvider):
        vendor_class = AcmeVendor

and one line in `memoranda.external.loading.discovery`. Errors of `RemoteClient` need no handling: the outbox
understands them. A vendor that is a program or a library instead raises TemporaryProviderError or
PermanentProviderError itself.
"""

# Methods that do nothing by default are intended.
# ruff: noqa: B027

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Literal

from memoranda.external.loading.setup import ConfigField
from memoranda.external.provider import Message
from memoranda.external.vendors.recalled_item import RecalledItem
from memoranda.external.vendors.sent_record import SentItem, SentRecord
from memoranda.external.vendors.vendor_deliveries import Delegation, MemoryWrite, SessionEnd, SessionSwitch, Turn
from memoranda.external.vendors.vendor_scope import VendorScope
from memoranda.external.vendors.vendor_settings import COMMON_FIELDS
from memoranda.external.vendors.vendor_tool import VendorTool


class Vendor(ABC):
    """One vendor, for one user. `open`, `search` and `store_turn` are required; everything else has a default.

    `settings` has a value for every field, `scope` says for whom it was started, and `sent` is the record of what the
    vendor has received. Methods that write (`store_…`, `end_session`, `switch_session`) are only called for sessions
    that may write. They raise ProviderError unless the vendor accepted, and may be called from another thread than
    `search` and the tools.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    """The vendor's name as people write it; it labels recalled items."""
    fields: ClassVar[tuple[ConfigField, ...]] = COMMON_FIELDS
    live_recall: bool = True
    """False for a vendor that is slower than a turn waits: it is only searched after a turn, for the next one."""
    recall_ahead: Literal["after_miss", "always"] = "after_miss"
    """When to search after a turn for the next one: if the live search failed or was late, or always. `always` adds
    the result to that of the live search."""

    def __init__(self, settings: Mapping[str, Any], scope: VendorScope, sent: SentRecord, session_id: str) -> None:
        self.settings = settings
        self.scope = scope
        self.sent = sent
        self.session_id = session_id
        """The current session; `switch_session` has the next one before this changes."""

    @classmethod
    def missing_dependency(cls, settings: Mapping[str, Any]) -> str:
        """What must be installed first and how, as a sentence; empty if nothing is missing. Fast, without network."""
        return ""

    @classmethod
    def remote_names(cls, scope: VendorScope, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """The vendor's names for the user, the workspace …, for `memoranda provider status`."""
        return {"user_at_vendor": scope.peer()}

    @abstractmethod
    def open(self) -> None:
        """Create the client from `self.settings` and `self.scope`. No network: the service may be down."""

    def close(self) -> None:
        """Close what `open` created."""

    def test_connection(self) -> str:
        """Make one cheap call that needs the key, and return a sentence about what answered. Raises ProviderError."""
        return ""

    @property
    def mode(self) -> str:
        """hybrid, context or tools."""
        return str(self.settings.get("mode") or "hybrid")

    @property
    def recall_limit(self) -> int:
        """How many items `search` is asked for."""
        return int(self.settings.get("recall_limit") or 6)

    def prompt_block(self) -> str:
        """Static text for the system prompt; no network."""
        return ""

    @abstractmethod
    def search(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        """Search the vendor, at most `timeout` seconds, best items first. Raises ProviderError."""

    def search_ahead(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        """Search after a turn, for the next one; may be slower and deeper than `search`."""
        return self.search(query, limit, timeout)

    @abstractmethod
    def store_turn(self, turn: Turn) -> str | None:
        """Store a turn and return the vendor's id for it, or "" if it gives none. Raises ProviderError otherwise.

        None means that there is nothing to store, by the settings or without text: the turn is not recorded as sent. If
        `turn.may_be_stored`, first look for `turn.key` at the vendor, unless storing it twice has no effect.
        """

    def store_memory_write(self, write: MemoryWrite) -> str | None:
        """Mirror a write of curated memory; like `store_turn`."""
        return None

    def store_delegation(self, delegation: Delegation) -> str | None:
        """Store the result of a delegate; like `store_turn`."""
        return None

    def end_session(self, end: SessionEnd) -> None:
        """A session has ended. May be repeated."""

    def switch_session(self, switch: SessionSwitch) -> None:
        """The conversation continues under another id, or was rewound. May be repeated."""

    def before_compression(self, messages: list[Message], session_id: str) -> str:
        """Text for the summary of messages that are about to leave the context; under a deadline."""
        return ""

    def tools(self) -> Sequence[VendorTool]:
        """The tools for the model."""
        return ()

    def delete_sent(self, session_ids: Collection[str] | None) -> tuple[list[SentItem], list[str]]:
        """Delete what the vendor has received: of some sessions, or all of it if None.

        Return the items of `self.sent` that are deleted, and descriptions of what remains. Raises ProviderError.
        """
        kept = self.sent.of_sessions(session_ids)
        return [], [f"{len(kept)} turns and memory writes: {self.label} offers no way to delete them"] if kept else []
