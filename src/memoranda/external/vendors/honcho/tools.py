"""The five tools of Honcho for the model."""

from collections.abc import Sequence
from itertools import islice

from memoranda.external.vendors.honcho.client import (
    MAX_CONCLUSION_CHARS,
    REASONING_LEVELS,
    HonchoClient,
    HonchoNames,
    Row,
)
from memoranda.external.vendors.sent_record import SentRecord
from memoranda.external.vendors.vendor import ToolArgumentError, VendorTool
from memoranda.support.shorten import shorten_end
from memoranda.support.tool import JsonObject

CHARS_PER_TOKEN = 4
_MAX_EXCERPT_CHARS = 1_200
_MAX_LISTED = 50
_PEER: JsonObject = {
    "type": "string",
    "description": "Whom it is about: 'user' (default) or 'ai', the assistant.",
    "default": "user",
}
_CARD: JsonObject = {
    "type": "array",
    "items": {"type": "string"},
    "description": "New facts that replace the whole card; an empty list clears it.",
}
_SEARCH_QUERY: JsonObject = {"type": "string", "description": "What to look for."}
_MAX_TOKENS: JsonObject = {"type": "integer", "default": 800, "minimum": 100, "maximum": 2000}
_QUESTION: JsonObject = {"type": "string", "description": "The question, in plain words."}
_REASONING_LEVEL: JsonObject = {
    "type": "string",
    "enum": list(REASONING_LEVELS),
    "default": "low",
    "description": "How much it reasons; more is slower and costs more.",
}
_CONCLUDE: dict[str, JsonObject] = {
    "conclusion": {"type": "string", "description": "A fact to store."},
    "delete_id": {"type": "string", "description": "The id of a conclusion to delete."},
    "list": {"type": "boolean", "description": "True: list conclusions with their ids."},
    "query": {"type": "string", "description": "With list: only those nearest to this."},
}


class HonchoTools:
    """Runs the tools for one user: other peers of the workspace cannot be asked about."""

    def __init__(
        self, client: HonchoClient, names: HonchoNames, sent: SentRecord, timeout: float, *, may_write: bool
    ) -> None:
        self._client = client
        self._names = names
        self._sent = sent
        self._timeout = timeout
        self._may_write = may_write

    def tools(self) -> Sequence[VendorTool]:
        """The tools, with their handlers."""
        return (
            VendorTool(
                "honcho_profile",
                "Read the card of key facts that Honcho keeps about the user, or replace it.",
                {"peer": _PEER, "card": _CARD},
                self._profile,
            ),
            VendorTool(
                "honcho_search",
                "Search what was said in all conversations with the user; returns excerpts, without a model.",
                {"query": _SEARCH_QUERY, "max_tokens": _MAX_TOKENS, "peer": _PEER},
                self._search,
                ("query",),
            ),
            VendorTool(
                "honcho_context",
                "Everything that Honcho has about this conversation: summary, what it believes, card, last messages.",
                {"peer": _PEER},
                self._context,
            ),
            VendorTool(
                "honcho_reasoning",
                "Ask Honcho's model a question about the user. Takes seconds and costs tokens at the server.",
                {"query": _QUESTION, "reasoning_level": _REASONING_LEVEL, "peer": _PEER},
                self._reasoning,
                ("query",),
            ),
            VendorTool(
                "honcho_conclude",
                "Store a lasting conclusion about the user, list conclusions, or delete one. Pass exactly one of"
                " conclusion, delete_id and list.",
                {**_CONCLUDE, "peer": _PEER},
                self._conclude,
            ),
        )

    def _profile(self, args: JsonObject, session_id: str) -> JsonObject:
        observer, observed = self._view(args)
        if "card" in args:
            self._prepare_write("honcho_profile")
            return {"card": self._client.set_card(observer, observed, args["card"])}
        card = self._client.get_card(observer, observed)
        return {"card": card} if card else {"card": [], "hint": "No card yet: Honcho writes it as it learns."}

    def _search(self, args: JsonObject, session_id: str) -> JsonObject:
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

    def _context(self, args: JsonObject, session_id: str) -> JsonObject:
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

    def _reasoning(self, args: JsonObject, session_id: str) -> JsonObject:
        observer, observed = self._view(args)
        answer = self._client.chat(args["query"], observer, observed, args["reasoning_level"], self._timeout)
        return {"result": answer} if answer else {"result": "", "hint": "Honcho knows nothing about this yet."}

    def _conclude(self, args: JsonObject, session_id: str) -> JsonObject:
        observer, observed = self._view(args)
        wanted = [name for name in ("conclusion", "delete_id", "list") if args.get(name)]
        if len(wanted) != 1:
            raise ToolArgumentError("honcho_conclude needs exactly one of conclusion, delete_id and list.")
        if wanted == ["list"]:
            return {"conclusions": self._list(observer, observed, str(args.get("query") or ""))}
        if args.get("query"):
            raise ToolArgumentError("query is only for list.")
        if wanted == ["delete_id"]:
            return self._delete(args["delete_id"])
        if len(args["conclusion"]) > MAX_CONCLUSION_CHARS:
            raise ToolArgumentError(f"A conclusion has at most {MAX_CONCLUSION_CHARS:,} characters.")
        self._prepare_write("honcho_conclude")
        row = self._client.add_conclusion(args["conclusion"], observer, observed)
        self._sent.add("conclusion", str(row.get("id")), str(row.get("id")), session_id)
        return {"result": "stored", "id": row.get("id")}

    def _list(self, observer: str, observed: str, query: str) -> list[JsonObject]:
        if query:
            rows = self._client.query_conclusions(query, observer, observed, 10)
        else:
            rows = list(islice(self._client.list_conclusions(observer, observed), _MAX_LISTED))
        return [{"id": row.get("id"), "content": row.get("content"), "time": row.get("created_at")} for row in rows]

    def _delete(self, conclusion_id: str) -> JsonObject:
        """Delete a conclusion of this user's peers: the id of another user's is an unknown one."""
        self._prepare_write("honcho_conclude")
        for observer, observed in self._names.views():
            if any(self._client.list_conclusions(observer, observed, conclusion_id)):
                self._client.delete_conclusion(conclusion_id)
                return {"result": "deleted", "id": conclusion_id}
        raise ToolArgumentError(f"There is no conclusion {conclusion_id[:60]!r}; list shows the ids.")

    def _prepare_write(self, tool: str) -> None:
        """Create the peers that are written about; raise ToolArgumentError in a session that only reads."""
        if not self._may_write:
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
