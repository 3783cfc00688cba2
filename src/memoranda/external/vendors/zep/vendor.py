"""Zep as a vendor: a graph of facts about each user, in Zep's cloud."""

import time
import uuid
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from memoranda.errors import PermanentProviderError
from memoranda.external.vendors.provider import VendorProvider
from memoranda.external.vendors.scope import VendorScope
from memoranda.external.vendors.sent_record import SentItem
from memoranda.external.vendors.texts import SOURCE, RecalledItem, clean_text, missing_parts
from memoranda.external.vendors.vendor import MemoryWrite, ToolArgumentError, Turn, Vendor, integer, text, tool
from memoranda.external.vendors.zep.client import (
    FIELDS,
    IDS,
    MAX_EPISODE_CHARS,
    Row,
    ZepClient,
    ZepDirectory,
    batches,
    build_messages,
    context_items,
    fact_items,
    idempotency_key,
    is_current,
)
from memoranda.support.shorten import shorten_end
from memoranda.support.tool import JsonObject

# What a model asks for, and what Zep calls it.
_SCOPES = {"facts": "edges", "observations": "observations", "entities": "nodes", "messages": "episodes"}
_MAX_TEXT_CHARS = 1_200
_QUERY = text("What to look for.")
_SCOPE = text(
    "facts, observations (patterns over time), entities, or messages as they were said.",
    enum=list(_SCOPES),
    default="facts",
)


def _result(row: Row) -> JsonObject:
    shown = row.get("fact") or row.get("content") or row.get("summary") or row.get("name") or ""
    result: JsonObject = {"id": row.get("uuid"), "text": shorten_end(str(shown), _MAX_TEXT_CHARS)}
    time = row.get("valid_at") or row.get("reference_time") or row.get("created_at")
    result |= {"time": time} | ({"name": row["name"]} if row.get("name") and not row.get("fact") else {})
    if is_current(row):
        return result
    return {**result, "no_longer_true_since": row.get("invalid_at") or row.get("expired_at")}


_ABOUT = "Zep keeps a graph of facts about this user, with the time at which each was true."
_RECALL = "Facts that fit a message are added to it."
_TOOLS = (
    "Tools: zep_search (facts, observations, entities or messages), zep_context (everything about a question),"
    " zep_remember (store a fact), zep_forget (delete one)."
)


class ZepVendor(Vendor):
    """Adds each turn to a thread of the user, and recalls facts of the user's graph.

    A repeated delivery is recognised by its `Idempotency-Key`, and, because Zep does not say for how long it remembers
    these, by the key in the metadata of the newest messages.
    """

    name = "zep"
    label = "Zep"
    fields = FIELDS
    guidance = (_ABOUT, _RECALL, _TOOLS)
    recall_ahead = "always"

    @classmethod
    def remote_names(cls, scope: VendorScope, settings: Mapping[str, Any]) -> Mapping[str, str]:
        return {"user_at_vendor": _user_id(scope, settings)}

    def open(self) -> None:
        settings = self.settings
        http = self.connect(settings["url"], headers={"Authorization": f"Api-Key {settings['api_key']}"})
        self._client = ZepClient(http)
        self._directory = ZepDirectory(self._client, self.sent, _user_id(self.scope, settings))

    def test_connection(self) -> str:
        name = self._client.get_project().get("name") or "without a name"
        return f"Zep answers for the project {name}."

    def search(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        deadline = time.monotonic() + timeout
        user = self._directory.find_user(timeout)
        if not user:
            return []
        return fact_items(self._client.search(user, "edges", query, limit, deadline - time.monotonic()))

    def search_ahead(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        """What Zep finds relevant to the latest messages of the conversation."""
        thread = self._directory.find_thread(self.session_id)
        return context_items(self._client.get_thread_context(thread, timeout), limit) if thread else []

    def store_turn(self, turn: Turn) -> str | None:
        name = self.scope.facts.get("user_name", "")
        messages = build_messages(
            turn.user, turn.assistant, turn.key, turn.session_id, turn.iso_time, shorten_end(name, 100)
        )

        def add_to(thread: str) -> str:
            left = missing_parts(messages, self._client.newest_messages(thread)) if turn.may_be_stored else messages
            for batch, key in batches(left, thread):
                self._client.add_messages(thread, batch, key)
            return thread

        return self._directory.with_thread(turn.session_id, add_to) if messages else None

    def store_memory_write(self, write: MemoryWrite) -> str | None:
        """Mirror an entry as an episode of the graph; a replaced or removed one is deleted there."""
        if write.action in ("replace", "remove") and write.old_text:
            self._delete_entry(write.old_entry_id)
        content = clean_text(write.content)
        if write.action == "remove" or not content:
            return None
        known = self.sent.find("entry", write.entry_id)
        if known:
            return known
        about = "profile of the user" if write.target == "user" else "notes of the assistant"

        def add_to(user: str) -> str:
            episode = {
                "data": shorten_end(content, MAX_EPISODE_CHARS),
                "source_description": about,
                "metadata": {"source": SOURCE, "key": write.key},
                "reference_time": write.iso_time,
            }
            return str(
                self._client.add_episode(user, episode, idempotency_key(f"{user} {write.key}")).get("uuid") or ""
            )

        episode = self._directory.with_user(add_to)
        self.sent.add("entry", write.entry_id, episode, write.session_id)
        return episode

    @tool(
        "zep_search",
        "Search the graph of what is known about the user.",
        ("query",),
        query=_QUERY,
        scope=_SCOPE,
        limit=integer(1, 50, 10),
    )
    def _search_tool(self, args: JsonObject, session_id: str) -> JsonObject:
        user = self._directory.find_user()
        rows = self._client.search(user, _SCOPES[args["scope"]], args["query"], args["limit"]) if user else []
        return {"results": [_result(row) for row in rows], "count": len(rows)}

    @tool(
        "zep_context",
        "Get a summary of everything in the graph that matters for a question.",
        ("query",),
        query=_QUERY,
        max_characters=integer(200, 10_000, 3_000),
    )
    def _context_tool(self, args: JsonObject, session_id: str) -> JsonObject:
        user = self._directory.find_user()
        return {"context": self._client.get_graph_context(user, args["query"], args["max_characters"]) if user else ""}

    @tool(
        "zep_remember",
        "Store a fact about the user; Zep adds it to the graph within seconds.",
        ("content",),
        writes=True,
        content=text("The fact, in a sentence."),
    )
    def _remember_tool(self, args: JsonObject, session_id: str) -> JsonObject:
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
        self.sent.add("episode", str(row.get("uuid")), str(row.get("uuid")), session_id)
        return {"result": "stored", "id": row.get("uuid")}

    @tool(
        "zep_forget",
        "Delete a fact or a message.",
        ("id",),
        writes=True,
        id=text("The id of a fact or a message that zep_search returned."),
    )
    def _forget_tool(self, args: JsonObject, session_id: str) -> JsonObject:
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

    def delete_sent(self, session_ids: Collection[str] | None) -> tuple[list[SentItem], list[str]]:
        items = [item for item in self.sent.of_sessions(session_ids) if item.kind not in IDS]
        remaining = []
        if session_ids is None:
            user = self._directory.find_user()
            if user:
                self._client.delete_user(user)
            self._directory.remove()
        else:
            self._delete_sessions(session_ids, items)
            remaining = ["facts that Zep drew from several conversations, and summaries of the user"]
        # An entry is the text of a memory write, which is listed too.
        for item in [item for item in items if item.kind == "entry"]:
            self.sent.remove(item)
        return [item for item in items if item.kind != "entry"], remaining

    def _delete_sessions(self, session_ids: Collection[str], items: Collection[SentItem]) -> None:
        """Delete threads and what was extracted from them alone, and the episodes that were stored in them."""
        user = self._directory.find_user()
        if not user:
            return
        for item in items:
            if item.kind in ("entry", "episode") and item.remote_id:
                self._client.delete_item(user, "episodes", item.remote_id)
        for session_id in session_ids:
            thread = self._directory.find_thread(session_id)
            if thread:
                for episode in [str(row["uuid"]) for row in self._client.list_thread_episodes(thread)]:
                    self._client.delete_item(user, "episodes", episode)
                self._client.delete_thread(thread)
                self._directory.remove(session_id)

    def _delete_entry(self, entry_id: str) -> None:
        user = self._directory.find_user()
        for item in [item for item in self.sent.items("entry") if item.local_id == entry_id]:
            if user and item.remote_id:
                self._client.delete_item(user, "episodes", item.remote_id)
            self.sent.remove(item)


class ZepProvider(VendorProvider):
    vendor_class = ZepVendor


def _user_id(scope: VendorScope, settings: Mapping[str, Any]) -> str:
    """The id of the user at Zep: readable, and different for every user of every profile."""
    prefix = str(settings["user_prefix"])
    if not prefix.replace("-", "").isalnum() or len(prefix) > 100:
        raise PermanentProviderError(
            f"zep: user_prefix must be letters, digits and -, not {prefix[:60]!r}."
            " 'memoranda provider setup zep' sets it."
        )
    return f"{prefix}_{scope.peer(max_chars=300)}"
