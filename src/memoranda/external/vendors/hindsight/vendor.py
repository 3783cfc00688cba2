"""Hindsight as a vendor: one bank per user, one document per turn."""

import re
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from memoranda.external.remote import RemoteClient
from memoranda.external.vendors.hindsight import guidance
from memoranda.external.vendors.hindsight.client import HindsightClient, RetainedItem
from memoranda.external.vendors.hindsight.deletion import delete_bank, delete_sessions
from memoranda.external.vendors.hindsight.retry_failed import DOCUMENT_PREFIX, FailedItemRetrier
from memoranda.external.vendors.hindsight.settings import FIELDS, bank_name, recall_options, split_list
from memoranda.external.vendors.hindsight.tools import hindsight_tools
from memoranda.external.vendors.recalled_item import RecalledItem
from memoranda.external.vendors.sent_record import SentItem
from memoranda.external.vendors.vendor import Vendor
from memoranda.external.vendors.vendor_deliveries import Delivery, MemoryWrite, Turn
from memoranda.external.vendors.vendor_provider import VendorProvider
from memoranda.external.vendors.vendor_scope import VendorScope
from memoranda.external.vendors.vendor_tool import VendorTool

_WORD = re.compile(r"\w")
_TOOL_LIMIT = 20


class HindsightVendor(Vendor):
    """Turns become documents, from which the server extracts facts; recall searches these and what they add up to."""

    name = "hindsight"
    label = "Hindsight"
    fields = FIELDS

    def open(self) -> None:
        settings = self.settings
        key = settings["api_key"]
        self._http = RemoteClient(
            self.name,
            settings["api_url"],
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=settings["timeout"],
            allow_http=settings["allow_http"],
        )
        self._client = HindsightClient(self._http, bank_name(self.scope, settings))
        self._retrier = FailedItemRetrier(self._client, self.sent)
        self._recall_options = recall_options(settings)
        self._missions_sent = not (settings["bank_mission"] or settings["bank_retain_mission"])
        self.recall_ahead = "always" if settings["recall_prefetch_method"] == "reflect" else "after_miss"

    def close(self) -> None:
        self._http.close()

    @classmethod
    def missing_dependency(cls, settings: Mapping[str, Any]) -> str:
        if settings["mode"] == "cloud" and not settings["api_key"]:
            return "api_key (HINDSIGHT_API_KEY) is not set. 'memoranda provider setup hindsight' asks for it."
        return ""

    @property
    def mode(self) -> str:
        return str(self.settings["memory_mode"]) if self.settings["auto_recall"] else "tools"

    def prompt_block(self) -> str:
        return guidance.system_prompt(self.mode)

    @classmethod
    def remote_names(cls, scope: VendorScope, settings: Mapping[str, Any]) -> Mapping[str, str]:
        return {"bank": bank_name(scope, settings)}

    def test_connection(self) -> str:
        version = self._client.version()
        self._client.check_access()
        report = f"Hindsight {version} at {self.settings['api_url']} answers; the bank is {self._client.bank_id}."
        return f"{report} {self._retrier.retry_all()}".strip()

    def search(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        query = query[: self.settings["recall_max_input_chars"]]
        # The server refuses a query without a word.
        return self._client.recall(query, self._recall_options, timeout=timeout)[:limit] if _WORD.search(query) else []

    def search_ahead(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        if self.settings["recall_prefetch_method"] != "reflect":
            return self.search(query, limit, timeout)
        answer = self._reflect(query[: self.settings["recall_max_input_chars"]], timeout)
        return [RecalledItem(answer, kind="reflection")] if answer else []

    def store_turn(self, turn: Turn) -> str | None:
        if not self.settings["auto_retain"]:
            return None
        spoken = (
            (self.settings["retain_user_prefix"], turn.user),
            (self.settings["retain_assistant_prefix"], turn.assistant),
        )
        text = "\n".join(f"{name}: {words}" for name, words in spoken if words.strip())
        if not text:
            return None
        item = self._item(turn, text, f"{DOCUMENT_PREFIX}{turn.uuid}", self.settings["retain_context"])
        self._retain(item, turn, wait=not self.settings["retain_async"])
        self._retrier.retry_if_due()
        return item.document_id

    def store_memory_write(self, write: MemoryWrite) -> str | None:
        """Mirror an entry as a document of its own; a replaced or removed entry is deleted with its facts."""
        if write.action in ("replace", "remove") and write.old_text:
            self._client.delete_document(f"{DOCUMENT_PREFIX}{write.target}-{write.old_entry_id}")
        if write.action == "remove" or not write.content.strip():
            return None
        about = "the user" if write.target == "user" else "the assistant's work"
        # A later write of the entry finds the document by its name.
        document_id = f"{DOCUMENT_PREFIX}{write.target}-{write.entry_id}"
        item = self._item(write, write.content, document_id, f"A note about {about}.")
        # Waits for the extraction, so that a later removal finds the document.
        self._retain(item, write, wait=True)
        return item.document_id

    def tools(self) -> Sequence[VendorTool]:
        timeout = self.settings["timeout"]
        return hindsight_tools(
            self._retain_for_tool,
            lambda query: self.search(query, _TOOL_LIMIT, timeout),
            lambda query: self._reflect(query, timeout),
        )

    def delete_sent(self, session_ids: Collection[str] | None) -> tuple[list[SentItem], list[str]]:
        if session_ids is None:
            return delete_bank(self._client, self.sent)
        return delete_sessions(self._client, self.sent, session_ids)

    def _reflect(self, query: str, timeout: float) -> str:
        return self._client.reflect(query, self.settings["recall_budget"], timeout=timeout).strip()

    def _retain_for_tool(self, content: str, context: str, tags: tuple[str, ...], key: str, session_id: str) -> None:
        delivery = Delivery(key, 1, time.time(), session_id)
        item = self._item(delivery, content, f"{DOCUMENT_PREFIX}{delivery.uuid}", context, tags)
        self._retain(item, delivery, repeat=True)
        self.sent.add("tool", key, item.document_id, session_id)

    def _item(
        self, delivery: Delivery, content: str, document_id: str, context: str, tags: tuple[str, ...] = ()
    ) -> RetainedItem:
        session = (f"session:{delivery.session_id}",) if delivery.session_id else ()
        # The server's model reads the metadata of each item, so there is little of it.
        metadata = {"source": self.settings["retain_source"], "session_id": delivery.session_id}
        return RetainedItem(
            content,
            document_id,
            context,
            delivery.iso_time,
            (*session, *split_list(self.settings["retain_tags"]), *tags),
            {name: value for name, value in metadata.items() if value},
            self.settings["observation_scopes"],
        )

    def _retain(self, item: RetainedItem, delivery: Delivery, *, wait: bool = False, repeat: bool = False) -> None:
        if not self._missions_sent:
            self._client.set_missions(self.settings["bank_mission"], self.settings["bank_retain_mission"])
            self._missions_sent = True
        self._client.retain(item, delivery.key, wait=wait, repeat=repeat)


class HindsightProvider(VendorProvider):
    """Hindsight as an external memory."""

    vendor_class = HindsightVendor
