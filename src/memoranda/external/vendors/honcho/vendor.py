"""Honcho as a vendor: a model of the user across conversations, in its cloud or on a server of your own.

Other programs may use the same workspace, and even the same peers if the settings name them: only sessions and
conclusions of this home are deleted.
"""

from collections.abc import Collection, Mapping
from itertools import islice
from typing import Any, ClassVar

from memoranda.external.loading.setup import ConfigField
from memoranda.external.vendors.honcho.client import (
    CLOUD,
    FIELDS,
    MAX_CONCLUSION_CHARS,
    MAX_MESSAGES_PER_CALL,
    REASONING_LEVELS,
    HonchoClient,
    HonchoNames,
    Row,
)
from memoranda.external.vendors.honcho.recall import HonchoRecall
from memoranda.external.vendors.provider import VendorProvider
from memoranda.external.vendors.scope import VendorScope
from memoranda.external.vendors.sent_record import SentItem
from memoranda.external.vendors.texts import SOURCE, RecalledItem, clean_text, missing_parts, split_turn
from memoranda.external.vendors.vendor import (
    MemoryWrite,
    ToolArgumentError,
    Turn,
    Vendor,
    integer,
    text,
    tool,
)
from memoranda.support.shorten import shorten_end
from memoranda.support.tool import JsonObject

CHARS_PER_TOKEN = 4
_MAX_EXCERPT_CHARS = 1_200
_MAX_LISTED = 50
_PEER = text("Whom it is about: 'user' (default) or 'ai', the assistant.", default="user")
_CARD: JsonObject = {
    "type": "array",
    "items": {"type": "string"},
    "description": "New facts that replace the whole card; an empty list clears it.",
}
_REASONING_LEVEL = text(
    "How much it reasons; more is slower and costs more.", enum=list(REASONING_LEVELS), default="low"
)

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

    def drop_recalled(self) -> None:
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

    @tool(
        "honcho_profile",
        "Read the card of key facts that Honcho keeps about the user, or replace it.",
        peer=_PEER,
        card=_CARD,
    )
    def _profile_tool(self, args: JsonObject, session_id: str) -> JsonObject:
        observer, observed = self._view(args)
        if "card" in args:
            self._prepare_write("honcho_profile")
            return {"card": self._client.set_card(observer, observed, args["card"])}
        card = self._client.get_card(observer, observed)
        return {"card": card} if card else {"card": [], "hint": "No card yet: Honcho writes it as it learns."}

    @tool(
        "honcho_search",
        "Search what was said in all conversations with the user; returns excerpts, without a model.",
        ("query",),
        query=text("What to look for."),
        max_tokens=integer(100, 2_000, 800),
        peer=_PEER,
    )
    def _search_tool(self, args: JsonObject, session_id: str) -> JsonObject:
        observed = self._view(args)[1]
        authors = self._names.both if observed == self._names.user else (observed,)
        left = args["max_tokens"] * CHARS_PER_TOKEN
        results = []
        for row in self._client.search_messages(args["query"], authors, 20):
            text = shorten_end(str(row.get("content") or ""), min(_MAX_EXCERPT_CHARS, left))
            if not text:
                break
            left -= len(text)
            results.append(self._excerpt(row, text))
        return {"results": results, "count": len(results)}

    @tool(
        "honcho_context",
        "Everything that Honcho has about this conversation: summary, what it believes, card, last messages.",
        peer=_PEER,
    )
    def _context_tool(self, args: JsonObject, session_id: str) -> JsonObject:
        observer, observed = self._view(args)
        context = self._client.get_session_context(self._names.session(session_id), observer, observed, tokens=2_000)
        summary = context.get("summary")
        return {
            "summary": summary.get("content") if isinstance(summary, dict) else None,
            "representation": context.get("peer_representation") or "",
            "card": context.get("peer_card") or [],
            "recent_messages": [
                self._excerpt(row, shorten_end(str(row.get("content") or ""), 200))
                for row in (context.get("messages") or [])[-5:]
            ],
        }

    @tool(
        "honcho_reasoning",
        "Ask Honcho's model a question about the user. Takes seconds and costs tokens at the server.",
        ("query",),
        query=text("The question, in plain words."),
        reasoning_level=_REASONING_LEVEL,
        peer=_PEER,
    )
    def _reasoning_tool(self, args: JsonObject, session_id: str) -> JsonObject:
        observer, observed = self._view(args)
        answer = self._client.chat(args["query"], observer, observed, args["reasoning_level"], self.timeout)
        return {"result": answer} if answer else {"result": "", "hint": "Honcho knows nothing about this yet."}

    @tool(
        "honcho_conclude",
        "Store a lasting conclusion about the user, list conclusions, or delete one. Pass exactly one of"
        " conclusion, delete_id and list.",
        conclusion=text("A fact to store."),
        delete_id=text("The id of a conclusion to delete."),
        list={"type": "boolean", "description": "True: list conclusions with their ids."},
        query=text("With list: only those nearest to this."),
        peer=_PEER,
    )
    def _conclude_tool(self, args: JsonObject, session_id: str) -> JsonObject:
        observer, observed = self._view(args)
        wanted = [name for name in ("conclusion", "delete_id", "list") if args.get(name)]
        if len(wanted) != 1:
            raise ToolArgumentError("honcho_conclude needs exactly one of conclusion, delete_id and list.")
        if wanted == ["list"]:
            return {"conclusions": self._list_conclusions(observer, observed, str(args.get("query") or ""))}
        if args.get("query"):
            raise ToolArgumentError("query is only for list.")
        if wanted == ["delete_id"]:
            return self._delete_conclusion(args["delete_id"])
        if len(args["conclusion"]) > MAX_CONCLUSION_CHARS:
            raise ToolArgumentError(f"A conclusion has at most {MAX_CONCLUSION_CHARS:,} characters.")
        self._prepare_write("honcho_conclude")
        row = self._client.add_conclusion(args["conclusion"], observer, observed)
        self.sent.add("conclusion", str(row.get("id")), str(row.get("id")), session_id)
        return {"result": "stored", "id": row.get("id")}

    def _list_conclusions(self, observer: str, observed: str, query: str) -> list[JsonObject]:
        if query:
            rows = self._client.query_conclusions(query, observer, observed, 10)
        else:
            rows = list(islice(self._client.list_conclusions(observer, observed), _MAX_LISTED))
        return [{"id": row.get("id"), "content": row.get("content"), "time": row.get("created_at")} for row in rows]

    def _delete_conclusion(self, conclusion_id: str) -> JsonObject:
        """Delete a conclusion of this user's peers: the id of another user's is an unknown one."""
        self._prepare_write("honcho_conclude")
        for observer, observed in self._names.views():
            if any(self._client.list_conclusions(observer, observed, conclusion_id)):
                self._client.delete_conclusion(conclusion_id)
                return {"result": "deleted", "id": conclusion_id}
        raise ToolArgumentError(f"There is no conclusion {conclusion_id[:60]!r}; list shows the ids.")

    def _prepare_write(self, tool: str) -> None:
        """Create the peers that are written about; raise ToolArgumentError in a session that only reads."""
        if not self.scope.accepts_writes:
            raise ToolArgumentError(f"{tool} cannot write in this session: only the main conversation writes.")
        for peer in self._names.both:
            self._client.create_peer(peer)

    def _view(self, args: JsonObject) -> tuple[str, str]:
        """Who observes whom; the assistant is seen by itself."""
        peer, names = args["peer"], self._names
        if peer in ("user", names.user):
            return names.observer, names.user
        if peer in ("ai", names.assistant):
            return names.assistant, names.assistant
        raise ToolArgumentError("peer must be 'user' or 'ai': other people's memories are not for this conversation.")

    def _excerpt(self, row: Row, text: str) -> JsonObject:
        author = {self._names.user: "user", self._names.assistant: "ai"}.get(str(row.get("peer_id")), "other")
        session = self._names.local_session(str(row.get("session_id") or ""))
        return {"text": text, "author": author, "session": session, "time": row.get("created_at")}

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
