"""Honcho as a vendor: a model of the user across conversations, in its cloud or on a server of your own.

Other programs may use the same workspace, and even the same peers if the settings name them: only sessions and
conclusions of this home are deleted.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from memoranda.external.loading.setup import ConfigField
from memoranda.external.vendors.honcho.client import (
    CLOUD,
    FIELDS,
    MAX_CONCLUSION_CHARS,
    MAX_MESSAGES_PER_CALL,
    HonchoClient,
    HonchoNames,
)
from memoranda.external.vendors.honcho.recall import HonchoRecall
from memoranda.external.vendors.honcho.tools import CHARS_PER_TOKEN, HonchoTools
from memoranda.external.vendors.provider import VendorProvider
from memoranda.external.vendors.scope import VendorScope
from memoranda.external.vendors.sent_record import SentItem
from memoranda.external.vendors.texts import SOURCE, RecalledItem, clean_text, missing_parts, split_turn
from memoranda.external.vendors.vendor import MemoryWrite, SessionSwitch, Turn, Vendor, VendorTool
from memoranda.support.shorten import shorten_end

_ABOUT = "Honcho models the user across conversations."
_RECALL = "What it knows about this user and their earlier conversations is shown with their messages."
_TOOLS = (
    "Tools: honcho_profile (card of key facts), honcho_search (excerpts of what was said), honcho_context (all about"
    " this conversation), honcho_reasoning (a model answers a question about the user; slow), honcho_conclude (store,"
    " list or delete a lasting fact)."
)
_MARK = {"source": SOURCE}
"""The metadata by which sessions of Memoranda are found."""


class HonchoVendor(Vendor):
    """Stores each turn as messages of two peers, and recalls what Honcho derived from them.

    Honcho has no idempotent write. Every message carries the key of its delivery in its metadata, and a delivery that
    may have arrived before asks for the key first, and then sends what is missing.
    """

    name = "honcho"
    label = "Honcho"
    fields: ClassVar[tuple[ConfigField, ...]] = FIELDS
    guidance = (_ABOUT, _RECALL, _TOOLS)
    recall_ahead = "always"

    @classmethod
    def missing_dependency(cls, settings: Mapping[str, Any]) -> str:
        if settings["api_key"] or settings["baseUrl"] != CLOUD:
            return ""
        return "Honcho's cloud needs an API key (HONCHO_API_KEY), and a server of your own its address (baseUrl)."

    @classmethod
    def remote_names(cls, scope: VendorScope, settings: Mapping[str, Any]) -> Mapping[str, str]:
        names = HonchoNames.resolve(scope, settings)
        return {"workspace": names.workspace, "user_at_vendor": names.user, "assistant_at_vendor": names.assistant}

    def open(self) -> None:
        settings = self.settings
        http = self.connect(settings["baseUrl"].rstrip("/").removesuffix("/v3"), settings["api_key"])
        self._names = HonchoNames.resolve(self.scope, settings)
        self._client = HonchoClient(http, self._names.workspace)
        self._recall = HonchoRecall(self._client, self._names, settings)
        self._tools = HonchoTools(
            self._client, self._names, self.sent, settings["timeout"], may_write=self.scope.accepts_writes
        )
        self._prepared: set[str] = set()

    def test_connection(self) -> str:
        self._client.create_workspace()
        waiting = self._client.queue_status().get("pending_work_units")
        return f"Honcho answers for the workspace {self._names.workspace}; {waiting} tasks wait for its deriver."

    @property
    def mode(self) -> str:
        return str(self.settings["recallMode"])

    def search(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        return self._recall.search(query, limit, timeout, self.session_id)

    def search_ahead(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        return self._recall.ask(query, timeout, self.session_id)

    def switch_session(self, switch: SessionSwitch) -> None:
        self._recall.reset()

    def store_turn(self, turn: Turn) -> str | None:
        if not self.settings["saveMessages"]:
            return None
        names, session = self._names, self._names.session(turn.session_id)
        texts = ((names.user, turn.user), (names.assistant, turn.assistant))
        messages = [
            {"peer_id": peer, "content": text, "metadata": about, "created_at": turn.iso_time}
            for peer, text, about in split_turn(texts, turn.key, self.settings["messageMaxChars"])
        ]
        if turn.may_be_stored and messages:
            messages = missing_parts(messages, self._client.find_messages(session, {"key": turn.key}))
        if messages:
            self._prepare_session(session, turn.session_id)
        for first in range(0, len(messages), MAX_MESSAGES_PER_CALL):
            self._client.add_messages(session, messages[first : first + MAX_MESSAGES_PER_CALL])
        return session

    def store_memory_write(self, write: MemoryWrite) -> str | None:
        """Mirror a write as a conclusion: about the user, or about the assistant for its own notes."""
        names = self._names
        observer = names.observer if write.target == "user" else names.assistant
        observed = names.user if write.target == "user" else names.assistant
        for peer in names.both:
            self._client.create_peer(peer)
        if write.action in ("replace", "remove") and write.old_text:
            for row in self._same_conclusions(write.old_text, observer, observed):
                self._client.delete_conclusion(row["id"])
        content = _conclusion_text(write.content)
        if write.action == "remove" or not content:
            return None
        same = self._same_conclusions(content, observer, observed)
        row = same[0] if same else self._client.add_conclusion(content, observer, observed)
        return str(row.get("id") or "")

    def tools(self) -> Sequence[VendorTool]:
        return self._tools.tools()

    def delete_sent(self, session_ids: Collection[str] | None) -> tuple[list[SentItem], list[str]]:
        self._prepared.clear()
        self._recall.reset()
        if session_ids is None:
            return _delete_everything(self._client, self._names, self.sent.items())
        return _delete_sessions(self._client, self._names, self.sent.items(), session_ids)

    def _prepare_session(self, session: str, session_id: str) -> None:
        """Create a session with its peers, once per process: a session that a message creates has no observers."""
        if session not in self._prepared:
            self._client.create_session(session, self._names.session_peers(), {**_MARK, "session": session_id})
            self._prepared.add(session)

    def _same_conclusions(self, text: str, observer: str, observed: str) -> list[dict[str, Any]]:
        """The conclusions with exactly this text; they have no metadata by which to find them."""
        wanted = _conclusion_text(text)
        rows = self._client.query_conclusions(wanted, observer, observed, 20) if wanted else []
        return [row for row in rows if row.get("content") == wanted]


class HonchoProvider(VendorProvider):
    """Honcho as an external memory; the setting contextTokens narrows the common limit of recalled text."""

    vendor_class = HonchoVendor

    def limits(self) -> Mapping[str, Any]:
        tokens = self._open_vendor().settings["contextTokens"]
        return {**super().limits()} | ({"recall_chars": tokens * CHARS_PER_TOKEN} if tokens else {})


def _conclusion_text(text: str) -> str:
    return shorten_end(clean_text(text), MAX_CONCLUSION_CHARS)


def _delete_sessions(
    client: HonchoClient, names: HonchoNames, sent: Collection[SentItem], session_ids: Collection[str]
) -> tuple[list[SentItem], list[str]]:
    """Delete some conversations and what was stored in them; returns what is gone, and what remains."""
    items = [item for item in sent if item.session_id in session_ids]
    stored = [item for item in items if item.kind != "turn"]
    _delete_conclusions(client, stored)
    if names.shares_session:
        return stored, [
            "the messages of these conversations: they share one session with all others, and Honcho deletes no single"
            " messages; forget without a session deletes everything",
            *_remaining(names),
        ]
    for session_id in session_ids:
        client.delete_session(names.session(session_id))
    return items, _remaining(names)


def _delete_everything(
    client: HonchoClient, names: HonchoNames, sent: Collection[SentItem]
) -> tuple[list[SentItem], list[str]]:
    """Delete all sessions that Memoranda created for the user, with conclusions and cards of the two peers.

    What peers that other programs use know about themselves and each other stays.
    """
    for session in [str(row["id"]) for row in client.list_sessions(names.user, _MARK)]:
        client.delete_session(session)
    _delete_conclusions(client, sent)
    for observer, observed in names.views():
        if observer in names.shared_peers and observed in names.shared_peers:
            continue
        for conclusion in [str(row["id"]) for row in client.list_conclusions(observer, observed)]:
            client.delete_conclusion(conclusion)
        if client.get_card(observer, observed):
            client.set_card(observer, observed, [])
    elsewhere = [
        f"what {peer} learned elsewhere, and its card: other programs may use it" for peer in names.shared_peers
    ]
    return list(sent), [*elsewhere, *_remaining(names)]


def _delete_conclusions(client: HonchoClient, items: Collection[SentItem]) -> None:
    for item in items:
        if item.kind != "turn" and item.remote_id:
            client.delete_conclusion(item.remote_id)


def _remaining(names: HonchoNames) -> list[str]:
    return [f"the names of the peers {names.user} and {names.assistant}: Honcho deletes no peers"]
