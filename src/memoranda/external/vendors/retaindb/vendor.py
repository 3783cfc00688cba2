"""RetainDB as a vendor: turns become typed memories, searched by words and meaning; files can be stored beside them."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from memoranda.external.vendors.provider import VendorProvider
from memoranda.external.vendors.retaindb.client import (
    FIELDS,
    RetainDBClient,
    RetainedMemory,
    missing_key,
    project_of,
    utc_time,
)
from memoranda.external.vendors.retaindb.tools import FILE, RetainDBFiles, RetainDBTools
from memoranda.external.vendors.scope import VendorScope
from memoranda.external.vendors.sent_record import SentItem
from memoranda.external.vendors.texts import RecalledItem, clean_text
from memoranda.external.vendors.vendor import (
    Delegation,
    Delivery,
    MemoryWrite,
    Turn,
    Vendor,
    VendorTool,
)

_ABOUT = "# RetainDB\nRetainDB stores what was said in past conversations."
_RECALL = "Memories that fit a message are added to it."
_TOOLS = "retaindb_search searches all of them; retaindb_remember stores what should stay."
_REMAINS = "RetainDB marks deleted memories as expired; its operator decides when they are erased."


class RetainDBVendor(Vendor):
    """RetainDB's cloud, a server of yours, or its local program."""

    name = "retaindb"
    label = "RetainDB"
    fields = FIELDS
    guidance = (_ABOUT, _RECALL, _TOOLS)

    @classmethod
    def missing_dependency(cls, settings: Mapping[str, Any]) -> str:
        return missing_key(settings)

    @classmethod
    def remote_names(cls, scope: VendorScope, settings: Mapping[str, Any]) -> Mapping[str, str]:
        return {
            "user_at_vendor": scope.peer(),
            "project": project_of(scope, settings),
            "address": str(settings["base_url"]),
        }

    def open(self) -> None:
        settings, user_id = self.settings, self.scope.peer()
        key = settings["api_key"] or "local"
        self._project = project_of(self.scope, settings)
        http = self.connect(settings["base_url"], key, {"X-API-Key": key, "x-sdk-runtime": "memoranda"})
        self._client = RetainDBClient(http, self._project, user_id, settings["agent_id"])
        self._files = RetainDBFiles(http, self.scope.home, user_id, user_id, settings["agent_id"])

    def test_connection(self) -> str:
        return self._client.test()

    def search(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        found = self._client.search(query, limit, timeout)
        return [RecalledItem(memory.text, memory.time, memory.score, memory.id, memory.kind) for memory in found]

    def store_turn(self, turn: Turn) -> str:
        return self._ingest(turn, turn.user, turn.assistant)

    def store_memory_write(self, write: MemoryWrite) -> str:
        if write.action in ("replace", "remove") and write.old_text:
            self._delete_text(write.old_text)
        content = clean_text(write.content)
        if write.action == "remove" or not content:
            return ""
        kind = "preference" if write.target == "user" else "factual"
        return self._client.write(content, kind, write.session_id, write.uuid, write.time) or ""

    def store_delegation(self, delegation: Delegation) -> str:
        return self._ingest(delegation, f"Delegated task: {delegation.task}", delegation.result)

    def tools(self) -> tuple[VendorTool, ...]:
        return RetainDBTools(self._client, self._files, self._project, self.sent).tools()

    def delete_sent(self, session_ids: Collection[str] | None) -> tuple[list[SentItem], list[str]]:
        items = self.sent.of_sessions(session_ids)
        deleted: set[str] = set()
        for item in items:
            if item.kind == FILE:
                self._files.delete_if_there(item.remote_id)
                continue
            for memory_id in item.remote_id.split():
                self._client.delete(memory_id)
                deleted.add(memory_id)
        sessions = dict.fromkeys(item.session_id for item in items) if session_ids is None else session_ids
        listings: list[Callable[[], list[RetainedMemory]]] = [
            partial(self._client.session, session_id) for session_id in sessions if session_id
        ]
        if session_ids is None:
            listings.append(self._client.profile)
        waiting = set().union(*(self._delete_listed(listing, deleted) for listing in listings))
        remaining = [_REMAINS] if deleted else []
        if waiting:
            remaining.append(f"{len(waiting)} deliveries are still processed by RetainDB; repeat this in a minute.")
        return items, remaining

    def _delete_listed(self, listing: Callable[[], list[RetainedMemory]], deleted: set[str]) -> set[str]:
        """Delete what a listing shows, page by page, and note the ids; returns those of pending entries."""
        while True:
            own = [memory for memory in listing() if memory.user_id in ("", self.scope.peer())]
            new = {memory.id for memory in own if not memory.pending} - deleted
            if not new:
                return {memory.id for memory in own if memory.pending}
            for memory_id in sorted(new):
                self._client.delete(memory_id)
            deleted |= new

    def _ingest(self, delivery: Delivery, user: str, assistant: str) -> str:
        """Store a turn unless an earlier attempt did; returns the ids of its memories, separated by spaces."""
        messages = [
            (role, clean_text(text)) for role, text in (("user", user), ("assistant", assistant)) if clean_text(text)
        ]
        if not messages:
            return ""
        if delivery.may_be_stored:
            listed = self._client.session(delivery.session_id)
            if earlier := [memory for memory in listed if _is_attempt(memory, delivery, messages[0][1])]:
                for memory in earlier:
                    if memory.pending:
                        self._client.wait_for_job(memory.job_id)
                return " ".join(memory.id for memory in earlier if not memory.pending)
        return " ".join(self._client.ingest(messages, delivery.session_id, delivery.time))

    def _delete_text(self, text: str) -> None:
        """Delete the memories with exactly this text."""
        for memory in self._client.search(text, 20):
            if memory.text.strip() == clean_text(text) and not memory.pending:
                self._client.delete(memory.id)


class RetainDBProvider(VendorProvider):
    """RetainDB as an external memory."""

    vendor_class = RetainDBVendor


def _is_attempt(memory: RetainedMemory, delivery: Delivery, text: str) -> bool:
    """Whether a memory comes from an earlier attempt of a delivery that begins with `text`."""
    return memory.said_at == utc_time(delivery.time) or (memory.pending and text in memory.text)
