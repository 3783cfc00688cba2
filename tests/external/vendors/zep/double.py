"""A double of Zep's service (v4): users, threads, messages and graphs in memory, in the shapes of Zep's own client.

Nothing of Zep can be run here, so nothing is recorded. The shapes are those that its client, zep-cloud 4.0.1, sends
and accepts (`shapes/sdk.json`). Codes and messages of errors, limits, and how lookups and idempotency behave are
assumptions that no real answer has confirmed. The double extracts a fact from each message at once, where the service
does so later.
"""

import json
import re
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.external.http_service import Exchange
from tests.external.vendors.vendor_service import HttpDouble

KEY = "vendor-secret-4711"
_TIME = "2026-11-16T08:49:58Z"
_PREFIX = "/api/v4/"

Row = dict[str, Any]
Answer = tuple[int, Any]


class ZepDouble(HttpDouble):
    """One project. `remembers_keys` turns idempotency off, as if the service had forgotten the keys."""

    recorded = Path(__file__).with_name("shapes")
    store_path = r"POST /api/v4/threads/[^/]+/messages$"

    def __init__(self) -> None:
        super().__init__()
        self.users: dict[str, Row] = {}
        self.threads: dict[str, Row] = {}
        self.messages: list[Row] = []
        self.episodes: list[Row] = []
        self.edges: list[Row] = []
        self.remembers_keys = True
        self.answer_seconds = 0.0
        self.bodies: list[tuple[str, Any]] = []
        self._answers: dict[str, Answer] = {}

    def stored_texts(self) -> Sequence[str]:
        return [row["content"] for row in [*self.messages, *self.episodes] if not row.get("thread_of")]

    def handle(self, exchange: Exchange) -> None:
        if exchange.headers["Authorization"] != f"Api-Key {KEY}":
            exchange.answer(401, _error("unauthorized"))
            return
        time.sleep(self.answer_seconds)
        parts = urlsplit(exchange.path)
        body = json.loads(exchange.body) if exchange.body else {}
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        assert exchange.command == "GET" or exchange.headers["Idempotency-Key"], "as Zep's own client sends it"
        key = f"{exchange.headers['Idempotency-Key']}"
        known = self._answers.get(key) if exchange.command != "GET" and self.remembers_keys else None
        answer = known or self.answer(exchange.command, parts.path.removeprefix(_PREFIX), body, query)
        self._answers[key] = answer
        self.bodies.append((f"{exchange.command} {parts.path}", body))
        exchange.answer(*answer)

    def answer(self, method: str, path: str, body: Row, query: Row) -> Answer:
        """The answer to a request, as status and JSON value."""
        answers: dict[str, Callable[..., Answer]] = {
            "GET project": lambda: (200, {"name": "home", "uuid": _new_id(), "created_at": _TIME}),
            "POST users/lookup": lambda: self._look_up(body["user_id"]),
            "POST users": lambda: self._create_user(body),
            "DELETE users/*": self._delete_user,
            "POST threads": lambda: self._create_thread(body["user_uuid"]),
            "GET threads": lambda: self._list_threads(query["user_uuid"]),
            "DELETE threads/*": self._delete_thread,
            "POST threads/*/messages": lambda thread: self._add_messages(thread, body["messages"]),
            "GET threads/*/messages": lambda thread: self._list_messages(thread, query),
            "GET threads/*/episodes": self._list_episodes,
            "GET threads/*/context": self._thread_context,
            "POST graphs/*/context": lambda user: self._graph_context(user, body["query"]),
            "POST graphs/*/search/*": lambda user, what: self._search(user, what, body["query"], query),
            "POST graphs/*/episodes": lambda user: self._add_episode(user, body),
            "GET graphs/*/edges/*": lambda user, item: self._get(self.edges, user, item),
            "GET graphs/*/episodes/*": lambda user, item: self._get(self.episodes, user, item),
            "DELETE graphs/*/edges/*": lambda user, item: self._delete(self.edges, user, item),
            "DELETE graphs/*/episodes/*": self._delete_episode,
        }
        for route, handle in answers.items():
            found = re.fullmatch(route.replace("*", "([^/]+)"), f"{method} {path}")
            if found:
                return handle(*found.groups())
        return 404, _error("not_found")

    def _look_up(self, user_id: str) -> Answer:
        found = [row for row in self.users.values() if row["user_id"] == user_id]
        return (200, found[0]) if found else (404, _error("not_found"))

    def _create_user(self, body: Row) -> Answer:
        if any(row["user_id"] == body["user_id"] for row in self.users.values()):
            return 409, _error("conflict")
        row = {**body, "uuid": _new_id(), "graph_uuid": _new_id(), "created_at": _TIME}
        self.users[row["uuid"]] = row
        return 201, row

    def _delete_user(self, user: str) -> Answer:
        if self.users.pop(user, None) is None:
            return 404, _error("not_found")
        for thread in [name for name, row in self.threads.items() if row["user_uuid"] == user]:
            self._delete_thread(thread)
        self.episodes = [row for row in self.episodes if row["user_uuid"] != user]
        self.edges = [row for row in self.edges if row["user_uuid"] != user]
        return 202, {"task": _task()}

    def _create_thread(self, user: str) -> Answer:
        if user not in self.users:
            return 404, _error("not_found")
        row = {"uuid": _new_id(), "user_uuid": user, "graph_uuid": self.users[user]["graph_uuid"]}
        row |= {"created_at": _TIME, "updated_at": _TIME}
        self.threads[row["uuid"]] = row
        return 201, row

    def _list_threads(self, user: str) -> Answer:
        return 200, {"items": [row for row in self.threads.values() if row["user_uuid"] == user], "total_size": 0}

    def _delete_thread(self, thread: str) -> Answer:
        if self.threads.pop(thread, None) is None:
            return 404, _error("not_found")
        self.messages = [row for row in self.messages if row["thread_uuid"] != thread]
        return 202, {"task": _task()}

    def _add_messages(self, thread: str, texts: list[Row]) -> Answer:
        if thread not in self.threads:
            return 404, _error("not_found")
        if not 1 <= len(texts) <= 30 or any(len(text["content"]) > 4_096 for text in texts):
            return 422, _error("unprocessable_entity")
        rows = [{**text, "uuid": _new_id(), "created_at": _TIME, "thread_uuid": thread} for text in texts]
        self.messages += [{**row, "processed": False} for row in rows]
        for row in rows:
            episode = self._store_episode(self.threads[thread]["user_uuid"], row["content"], row["metadata"])
            episode |= {"thread_uuid": thread, "thread_of": row["uuid"]}
        return 202, {"messages": rows, "task": _task()}

    def _list_messages(self, thread: str, query: Row) -> Answer:
        if thread not in self.threads:
            return 404, _error("not_found")
        rows = [row for row in self.messages if row["thread_uuid"] == thread]
        rows = rows[::-1] if query["order"] == "desc" else rows
        return 200, {"items": rows[: int(query["page_size"])], "total_size": len(rows)}

    def _list_episodes(self, thread: str) -> Answer:
        rows = [_public(row) for row in self.episodes if row.get("thread_uuid") == thread]
        return 200, {"items": rows}

    def _thread_context(self, thread: str) -> Answer:
        if thread not in self.threads:
            return 404, _error("not_found")
        facts = [row["fact"] for row in self.edges if row["user_uuid"] == self.threads[thread]["user_uuid"]]
        return 200, {"context": "# Facts\n<FACTS>\n" + "\n".join(f"- {fact}" for fact in facts) + "\n</FACTS>"}

    def _graph_context(self, user: str, query: str) -> Answer:
        facts = [row["fact"] for row in _ranked(self.edges, query) if row["user_uuid"] == user]
        return 200, {"context": "\n".join(facts), "truncated": False}

    def _search(self, user: str, what: str, query: str, options: Row) -> Answer:
        if user not in self.users:
            return 404, _error("not_found")
        rows = {"edges": self.edges, "episodes": self.episodes, "nodes": [], "observations": []}[what]
        found = [_public(row) | {"score": 0.5} for row in _ranked(rows, query) if row["user_uuid"] == user]
        return 200, {"items": found[: int(options["page_size"])]}

    def _add_episode(self, user: str, body: Row) -> Answer:
        if user not in self.users:
            return 404, _error("not_found")
        episode = self._store_episode(user, body["data"], body["metadata"])
        episode |= {"source_description": body["source_description"], "reference_time": body["reference_time"]}
        return 202, {"episode": _public(episode), "task": _task()}

    def _store_episode(self, user: str, content: str, metadata: Row) -> Row:
        episode: Row = {"uuid": _new_id(), "content": content, "metadata": metadata, "user_uuid": user}
        episode |= {"created_at": _TIME, "source": "text", "processed": True}
        self.episodes.append(episode)
        fact = {"uuid": _new_id(), "fact": content[:300], "name": "RELATES_TO", "user_uuid": user}
        self.edges.append(fact | {"created_at": _TIME, "valid_at": _TIME, "episode_uuids": [episode["uuid"]]})
        return episode

    def _get(self, rows: list[Row], user: str, item: str) -> Answer:
        found = [_public(row) for row in rows if row["uuid"] == item and row["user_uuid"] == user]
        return (200, found[0]) if found else (404, _error("not_found"))

    def _delete(self, rows: list[Row], user: str, item: str) -> Answer:
        found = [row for row in rows if row["uuid"] == item and row["user_uuid"] == user]
        for row in found:
            rows.remove(row)
        return (202, {"task": _task()}) if found else (404, _error("not_found"))

    def _delete_episode(self, user: str, item: str) -> Answer:
        self.edges = [row for row in self.edges if row["episode_uuids"] != [item]]
        return self._delete(self.episodes, user, item)


def _public(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "thread_of"}


def _task() -> Row:
    return {"uuid": _new_id(), "status": "pending", "created_at": _TIME}


def _error(code: str) -> Row:
    return {"error": {"code": code, "message": code.replace("_", " "), "request_id": "req_1"}}


def _new_id() -> str:
    return str(uuid.uuid4())


def _ranked(rows: list[Row], query: str) -> list[Row]:
    """Rows that share a word with the query, most common words first."""
    words = set(re.findall(r"\w+", query.casefold()))
    common = {row["uuid"]: len(words & set(re.findall(r"\w+", _text(row).casefold()))) for row in rows}
    return sorted((row for row in rows if common[row["uuid"]]), key=lambda row: -common[row["uuid"]])


def _text(row: Row) -> str:
    return str(row.get("fact") or row.get("content") or "")
