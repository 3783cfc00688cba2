"""OpenViking as a vendor: every turn is a file of the user's memory tree, found by meaning within seconds.

A turn's address depends on its key only, and writing is an upsert, so a repeated delivery replaces itself. At the end
of a session its messages are committed as well, so that the server extracts memories from them with its own model.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from memoranda.errors import PermanentProviderError, ProviderError, TemporaryProviderError
from memoranda.external.vendors.openviking.client import OpenVikingClient
from memoranda.external.vendors.openviking.session_archive import archive_session, delete_archive
from memoranda.external.vendors.openviking.settings import FIELDS
from memoranda.external.vendors.openviking.tools import OpenVikingTools
from memoranda.external.vendors.openviking.turn_file import format_delegation, format_turn, recalled_items
from memoranda.external.vendors.openviking.uris import SHARED_RESOURCES, OpenVikingUris
from memoranda.external.vendors.peer_names import encode_name
from memoranda.external.vendors.recalled_item import RecalledItem
from memoranda.external.vendors.sent_record import SentItem
from memoranda.external.vendors.vendor import Vendor
from memoranda.external.vendors.vendor_deliveries import Delegation, MemoryWrite, SessionEnd, Turn
from memoranda.external.vendors.vendor_guidance import build_guidance
from memoranda.external.vendors.vendor_provider import VendorProvider
from memoranda.external.vendors.vendor_scope import VendorScope
from memoranda.external.vendors.vendor_tool import VendorTool
from memoranda.storage.files.fork_lock import ForkLock

_ABOUT = (
    "# OpenViking\n"
    "OpenViking stores every turn of your conversations, and memories and documents in a tree of viking:// addresses."
)
_RECALL = "What fits the user's message is recalled before you answer."
_TOOLS = (
    "viking_search searches all of it, viking_read reads an address, viking_browse lists one, and viking_remember "
    "stores a memory."
)
# Files of other users and directories do not count against the limit.
_EXTRA_HITS = 3


class OpenVikingVendor(Vendor):
    """One user of a home at an OpenViking server."""

    name = "openviking"
    label = "OpenViking"
    fields = FIELDS

    def open(self) -> None:
        self._peer = peer_of(self.scope, self.settings)
        self._uris: OpenVikingUris | None = None
        self._uris_lock = ForkLock()
        self._client = OpenVikingClient(
            self.settings["endpoint"],
            api_key=self.settings["api_key"] or "",
            account=self.settings["account"],
            user=self.settings["user"],
            peer=self._peer,
            timeout=self.settings["timeout"],
            allow_http=self.settings["allow_http"],
        )
        self._tools = OpenVikingTools(self._client, self.uris, self._record)

    def close(self) -> None:
        self._client.close()

    def uris(self, timeout: float | None = None) -> OpenVikingUris:
        """The addresses of this user. The server is asked once who its user is, because a key decides that."""
        with self._uris_lock:
            if self._uris is None:
                self._uris = OpenVikingUris(self._client.user(timeout), self._peer)
            return self._uris

    def test_connection(self) -> str:
        try:
            health = self._client.health()
        except TemporaryProviderError as error:
            advice = "Start 'openviking-server', or set another endpoint: 'memoranda provider setup openviking'."
            raise TemporaryProviderError(f"{error} {advice}", error.retry_after) from error
        if not health.get("version"):
            raise PermanentProviderError(f"What answers at {self.settings['endpoint']} is not an OpenViking server.")
        uris = self.uris()
        self._client.find({"query": "connection test", "limit": 1, "target_uri": uris.memories, "level": 2})
        mode = str(health.get("auth_mode") or "unknown")
        warning = " Everyone who reaches this server can read everything in it." if mode == "dev" else ""
        return f"OpenViking {health['version']} (mode {mode}) answers; memories are in {uris.memories}.{warning}"

    @classmethod
    def remote_names(cls, scope: VendorScope, settings: Mapping[str, Any]) -> Mapping[str, str]:
        uris = OpenVikingUris(str(settings.get("user") or "default"), peer_of(scope, settings))
        return {"memories_at_vendor": uris.memories}

    def prompt_block(self) -> str:
        return build_guidance(self.mode, _ABOUT, _RECALL, _TOOLS)

    def search(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        deadline = time.monotonic() + timeout
        uris = self.uris(timeout)
        targets = [uris.memories]
        if self.settings["recall_resources"]:
            targets += [uris.resources, SHARED_RESOURCES]
        body = {"query": query, "limit": limit * _EXTRA_HITS, "level": 2, "target_uri": targets}
        hits = self._client.find(body, max(deadline - time.monotonic(), 0.001))
        return recalled_items(hits, uris, self.settings["score_threshold"])[:limit]

    def store_turn(self, turn: Turn) -> str:
        uri = self.uris().turn(turn.session_id, turn.key)
        return self._client.write(uri, format_turn(turn.user, turn.assistant, turn.time))

    def store_memory_write(self, write: MemoryWrite) -> str | None:
        uris, stored = self.uris(), None
        if write.action != "remove" and write.content.strip():
            stored = self._client.write(uris.curated(write.target, write.content), write.content.strip())
        if write.action != "add" and write.old_text.strip():
            old = uris.curated(write.target, write.old_text)
            if old != stored:
                self._client.delete(old)
        return stored

    def store_delegation(self, delegation: Delegation) -> str:
        uri = self.uris().turn(delegation.session_id, delegation.key)
        return self._client.write(uri, format_delegation(delegation.task, delegation.result, delegation.time))

    def end_session(self, end: SessionEnd) -> None:
        if not self.settings["commit_sessions"] or not end.messages:
            return
        name = self._session_name(end.session_id)
        # Before it is sent: an attempt whose answer is lost must be found by `forget`.
        self.sent.add("session", end.session_id, name, end.session_id)
        archive_session(self._client, name, end.messages, self._peer)

    def tools(self) -> Sequence[VendorTool]:
        return self._tools.tools()

    def delete_sent(self, session_ids: Collection[str] | None) -> tuple[list[SentItem], list[str]]:
        uris, deleted, remaining = self.uris(), [], []
        items = self.sent.of_sessions(session_ids)
        for session_id in {item.session_id for item in items if item.kind in ("turn", "delegation")}:
            self._client.delete(uris.turns(session_id), recursive=True)
        for item in items:
            if item.kind == "session":
                kept = delete_archive(self._client, item.remote_id, uris)
                remaining += [f"{uri}: a conversation changed it, and it has other sources" for uri in kept]
            elif item.kind in ("memory_write", "memory", "resource") and item.remote_id:
                self._client.delete(item.remote_id, recursive=item.kind == "resource")
            deleted.append(item)
        return deleted, remaining

    def _record(self, kind: str, uri: str, session_id: str) -> None:
        """Record what a tool has stored, for `forget`."""
        self.sent.add(kind, uri, uri, session_id)

    def _session_name(self, session_id: str) -> str:
        """The session at the server. All peers of a user share its sessions, so the name has the peer in it.

        An encoded id has no full stop, so no peer's session has the name of another's.
        """
        return f"memoranda-{f'{self._peer}.' if self._peer else ''}{encode_name(session_id)}"


def peer_of(scope: VendorScope, settings: Mapping[str, Any]) -> str:
    """The peer that has this user's memories; empty for the owner of the default profile, who needs none."""
    agent = str(settings.get("agent") or "").strip()
    if "__" in agent or not all(char.isascii() and (char.isalnum() or char in "_.@-") for char in agent):
        raise ProviderError("agent must consist of letters, digits and _ . @ -, without two underscores in a row.")
    if scope.user_id or scope.profile != "default":
        return scope.peer()
    return agent


class OpenVikingProvider(VendorProvider):
    """OpenViking as an external memory."""

    vendor_class = OpenVikingVendor
