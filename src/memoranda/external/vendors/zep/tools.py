"""The tools of Zep for the model."""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from memoranda.external.vendors.sent_record import SentRecord
from memoranda.external.vendors.texts import SOURCE, clean_text
from memoranda.external.vendors.vendor import ToolArgumentError, VendorTool
from memoranda.external.vendors.zep.client import MAX_EPISODE_CHARS, Row, ZepClient, ZepDirectory, is_current
from memoranda.support.shorten import shorten_end
from memoranda.support.tool import JsonObject

# What a model asks for, and what Zep calls it.
_SCOPES = {"facts": "edges", "observations": "observations", "entities": "nodes", "messages": "episodes"}
_MAX_TEXT_CHARS = 1_200
_QUERY: JsonObject = {"type": "string", "description": "What to look for."}
_SCOPE: JsonObject = {
    "type": "string",
    "enum": list(_SCOPES),
    "default": "facts",
    "description": "facts, observations (patterns over time), entities, or messages as they were said.",
}
_LIMIT: JsonObject = {"type": "integer", "default": 10, "minimum": 1, "maximum": 50}
_MAX_CHARS: JsonObject = {"type": "integer", "default": 3_000, "minimum": 200, "maximum": 10_000}


class ZepTools:
    """Runs the tools for one user: every request names the user's own graph."""

    def __init__(self, client: ZepClient, directory: ZepDirectory, sent: SentRecord) -> None:
        self._client = client
        self._directory = directory
        self._sent = sent

    def tools(self) -> Sequence[VendorTool]:
        """The tools, with their handlers."""
        content = {"type": "string", "description": "The fact, in a sentence."}
        item_id = {"type": "string", "description": "The id of a fact or a message that zep_search returned."}
        return (
            VendorTool(
                "zep_search",
                "Search the graph of what is known about the user.",
                {"query": _QUERY, "scope": _SCOPE, "limit": _LIMIT},
                self._search,
                ("query",),
            ),
            VendorTool(
                "zep_context",
                "Get a summary of everything in the graph that matters for a question.",
                {"query": _QUERY, "max_characters": _MAX_CHARS},
                self._context,
                ("query",),
            ),
            VendorTool(
                "zep_remember",
                "Store a fact about the user; Zep adds it to the graph within seconds.",
                {"content": content},
                self._remember,
                ("content",),
                writes=True,
            ),
            VendorTool(
                "zep_forget", "Delete a fact or a message.", {"id": item_id}, self._forget, ("id",), writes=True
            ),
        )

    def _search(self, args: JsonObject, session_id: str) -> JsonObject:
        user = self._directory.find_user()
        rows = self._client.search(user, _SCOPES[args["scope"]], args["query"], args["limit"]) if user else []
        return {"results": [_result(row) for row in rows], "count": len(rows)}

    def _context(self, args: JsonObject, session_id: str) -> JsonObject:
        user = self._directory.find_user()
        return {"context": self._client.get_graph_context(user, args["query"], args["max_characters"]) if user else ""}

    def _remember(self, args: JsonObject, session_id: str) -> JsonObject:
        content = clean_text(args["content"])
        if len(content) > MAX_EPISODE_CHARS:
            raise ToolArgumentError(f"content has at most {MAX_EPISODE_CHARS:,} characters.")
        key = str(uuid.uuid4())
        episode = {
            "data": content,
            "source_description": "stored by the assistant",
            "metadata": {"source": SOURCE},
            "reference_time": datetime.now(UTC).isoformat(),
        }
        row = self._directory.with_user(lambda user: self._client.add_episode(user, episode, key))
        self._sent.add("episode", str(row.get("uuid")), str(row.get("uuid")), session_id)
        return {"result": "stored", "id": row.get("uuid")}

    def _forget(self, args: JsonObject, session_id: str) -> JsonObject:
        """Delete a fact or an episode, after reading it from the user's own graph."""
        try:
            item = str(uuid.UUID(args["id"]))
        except ValueError:
            raise ToolArgumentError("id must be one that zep_search returned.") from None
        user = self._directory.find_user()
        for what in ("edges", "episodes") if user else ():
            found = self._client.get_item(user, what, item)
            if found is not None and found.get("user_uuid") in (None, user):
                self._client.delete_item(user, what, item)
                return {"result": "deleted", "id": item}
        raise ToolArgumentError(f"There is nothing with the id {item}.")


def _result(row: Row) -> JsonObject:
    text = row.get("fact") or row.get("content") or row.get("summary") or row.get("name") or ""
    result: JsonObject = {"id": row.get("uuid"), "text": shorten_end(str(text), _MAX_TEXT_CHARS)}
    time = row.get("valid_at") or row.get("reference_time") or row.get("created_at")
    result |= {"time": time} | ({"name": row["name"]} if row.get("name") and not row.get("fact") else {})
    if is_current(row):
        return result
    return {**result, "no_longer_true_since": row.get("invalid_at") or row.get("expired_at")}
