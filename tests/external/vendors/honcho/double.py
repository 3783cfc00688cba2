"""A double of Honcho's server: a workspace in memory, with the answers of the recorded exchanges.

It derives a conclusion from each message at once, where the real server lets its deriver do so later.
"""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.external.http_service import Exchange
from tests.external.vendors.vendor_service import HttpDouble

KEY = "vendor-secret-4711"
_TIME = "2026-11-16T08:49:58.949971Z"
_COUNTS = ("total_work_units", "completed_work_units", "in_progress_work_units", "pending_work_units")
_NAME = re.compile(r"[a-zA-Z0-9_-]+")

Row = dict[str, Any]
Answer = tuple[int, Any]


class HonchoDouble(HttpDouble):
    """Answers for all workspaces; the state is kept by workspace."""

    recorded = Path(__file__).with_name("recorded")
    store_path = r"POST /v3/workspaces/[^/]+/sessions/[^/]+/messages$"

    def __init__(self) -> None:
        super().__init__()
        self.workspaces: dict[str, Workspace] = {}
        self.needs_key = True

    def stored_texts(self) -> Sequence[str]:
        return [text for workspace in self.workspaces.values() for text in workspace.stored_texts()]

    def handle(self, exchange: Exchange) -> None:
        parts = urlsplit(exchange.path)
        body = json.loads(exchange.body) if exchange.body else {}
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if self.needs_key and exchange.headers["Authorization"] != f"Bearer {KEY}":
            exchange.answer(401, {"detail": "Invalid JWT"})
            return
        status, answer = self.answer(exchange.command, parts.path, body, query)
        exchange.answer(status, b"" if answer is None else answer)

    def answer(self, method: str, path: str, body: Row, query: Row) -> Answer:
        """The answer to a request, as status and JSON value."""
        version, kind, *rest = [*path.strip("/").split("/"), ""]
        if (version, kind) != ("v3", "workspaces"):
            return _missing("Not Found")
        if not rest[0]:
            if not _NAME.fullmatch(body["id"]):
                return 422, {
                    "detail": [{"type": "string_pattern_mismatch", "loc": ["body", "id"], "msg": "", "input": ""}]
                }
            known = body["id"] in self.workspaces
            workspace = self.workspaces.setdefault(body["id"], Workspace(body["id"]))
            return 200 if known else 201, workspace.row()
        workspace = self.workspaces.setdefault(rest[0], Workspace(rest[0]))
        return workspace.answer(method, [part for part in rest[1:] if part], body, query)


class Workspace:
    """The peers, sessions, conclusions and cards of one workspace."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.peers: dict[str, Row] = {}
        self.sessions: dict[str, Row] = {}
        self.members: dict[str, Row] = {}
        self.deleted: set[str] = set()
        self.messages: list[Row] = []
        self.conclusions: list[Row] = []
        self.cards: dict[tuple[str, str], list[str]] = {}
        self.chats: list[Row] = []
        self._ids = 0

    def row(self) -> Row:
        return {"id": self.name, "metadata": {}, "configuration": {}, "created_at": _TIME}

    def stored_texts(self) -> list[str]:
        return [row["content"] for row in self.messages] + [
            row["content"] for row in self.conclusions if row["session_id"] is None
        ]

    def answer(self, method: str, path: list[str], body: Row, query: Row) -> Answer:
        answers: dict[str, Callable[..., Answer]] = {
            "POST peers": lambda: self._create(self.peers, body, {}),
            "POST sessions": lambda: self._create_session(body),
            "POST sessions/list": lambda: self._page(list(self.sessions.values()), body, query),
            "POST sessions/*/messages": lambda session: self._add_messages(session, body),
            "POST sessions/*/messages/list": lambda session: self._list_messages(session, body, query),
            "DELETE sessions/*": self._delete_session,
            "GET sessions/*/context": lambda session: self._context(session, query),
            "POST search": lambda: self._search(body),
            "POST peers/*/sessions": lambda peer: self._sessions_of(peer, body, query),
            "GET peers/*/card": lambda peer: self._card(peer, query["target"]),
            "PUT peers/*/card": lambda peer: self._card(peer, query["target"], body["peer_card"]),
            "POST peers/*/chat": lambda peer: self._chat(peer, body),
            "POST conclusions": lambda: self._add_conclusion(body),
            "POST conclusions/list": lambda: self._page(self.conclusions, body, query),
            "POST conclusions/query": lambda: self._query_conclusions(body),
            "DELETE conclusions/*": self._delete_conclusion,
            "GET queue/status": lambda: (200, dict.fromkeys(_COUNTS, 0) | {"sessions": {}}),
            "DELETE ": lambda: (409, {"detail": f"Cannot delete workspace '{self.name}': active session(s) remain."}),
        }
        for route, handle in answers.items():
            found = re.fullmatch(route.replace("*", "([^/]+)"), f"{method} {'/'.join(path)}")
            if found:
                return handle(*found.groups())
        return _missing("Not Found")

    def _create(self, rows: dict[str, Row], body: Row, extra: Row) -> Answer:
        known = body["id"] in rows
        row = rows.setdefault(body["id"], {"id": body["id"]} | extra | {"workspace_id": self.name, "metadata": {}})
        row |= {"configuration": {}, "created_at": _TIME} | (
            {"metadata": body["metadata"]} if "metadata" in body else {}
        )
        return 200 if known else 201, row

    def _create_session(self, body: Row) -> Answer:
        if body["id"] in self.deleted:
            return self._missing_here(f"Session {body['id']}")
        self.members[body["id"]] = body.get("peers", {})
        for peer in self.members[body["id"]]:
            self._create(self.peers, {"id": peer}, {})
        return self._create(self.sessions, body, {"is_active": True})

    def _add_messages(self, session: str, body: Row) -> Answer:
        if session in self.deleted:
            return self._missing_here(f"Session {session}")
        texts = body["messages"]
        if not 1 <= len(texts) <= 100 or any(len(text["content"]) > 25_000 for text in texts):
            return 422, {
                "detail": [{"type": "too_short", "loc": ["body", "messages"], "msg": "", "input": [], "ctx": {}}]
            }
        if bad := [text["peer_id"] for text in texts if not _NAME.fullmatch(text["peer_id"])]:
            return 422, {"detail": f"Peer name(s) {bad} must match pattern ^[a-zA-Z0-9_-]+$"}
        if session not in self.sessions:
            self._create_session({"id": session, "peers": {text["peer_id"]: {} for text in texts}})
        rows = [self._message(session, text) for text in texts]
        self.messages += rows
        for row in rows:
            self._derive(row)
        return 201, rows

    def _message(self, session: str, text: Row) -> Row:
        return {
            "id": self._next_id(),
            "content": text["content"],
            "peer_id": text["peer_id"],
            "session_id": session,
            "metadata": text.get("metadata", {}),
            "created_at": text["created_at"].replace("+00:00", "Z"),
            "workspace_id": self.name,
            "token_count": len(text["content"]) // 4,
        }

    def _derive(self, message: Row) -> None:
        """A conclusion about the author, for everyone in the session who observes others, and for the author."""
        author = message["peer_id"]
        for peer, observes in self.members[message["session_id"]].items():
            if observes.get("observe_me" if peer == author else "observe_others"):
                content = f"{author} said: {message['content'][:200]}"
                self._conclude(content, peer, author, message["session_id"])

    def _conclude(self, content: str, observer: str, observed: str, session: str | None) -> Row:
        row: Row = {"id": self._next_id(), "content": content, "observer_id": observer, "observed_id": observed}
        row |= {"session_id": session, "level": "explicit", "created_at": _TIME}
        self.conclusions.insert(0, row)
        return row

    def _add_conclusion(self, body: Row) -> Answer:
        (new,) = body["conclusions"]
        if not new["content"]:
            return _invalid("string_too_short")
        if new["observed_id"] not in self.peers:
            return self._missing_here(f"Peer {new['observed_id']}")
        return 201, [self._conclude(new["content"], new["observer_id"], new["observed_id"], None)]

    def _query_conclusions(self, body: Row) -> Answer:
        if "observer_id" not in body.get("filters", {}):
            return 422, {"detail": "observer and observed must be specified for semantic search."}
        rows = _ranked(self.conclusions, body["query"], closest="distance" in body)
        return 200, [row for row in rows if _matches(row, body["filters"])][: body["top_k"]]

    def _delete_conclusion(self, number: str) -> Answer:
        found = [row for row in self.conclusions if row["id"] == number]
        self.conclusions = [row for row in self.conclusions if row["id"] != number]
        return (204, None) if found else _missing(f"Document {number} not found or does not belong to workspace")

    def _list_messages(self, session: str, body: Row, query: Row) -> Answer:
        return self._page([row for row in self.messages if row["session_id"] == session], body, query)

    def _sessions_of(self, peer: str, body: Row, query: Row) -> Answer:
        rows = [row for name, row in self.sessions.items() if peer in self.members.get(name, {})]
        return self._page(rows, body, query)

    def _search(self, body: Row) -> Answer:
        rows = _ranked(self.messages, body["query"], closest=False)
        return 200, [row for row in rows if _matches(row, body["filters"])][: body["limit"]]

    def _delete_session(self, session: str) -> Answer:
        if session not in self.sessions:
            return self._missing_here(f"Session {session}")
        del self.sessions[session]
        self.deleted.add(session)
        self.messages = [row for row in self.messages if row["session_id"] != session]
        self.conclusions = [row for row in self.conclusions if row["session_id"] != session]
        return 202, {"message": "Session deleted successfully"}

    def _context(self, session: str, query: Row) -> Answer:
        observer, observed = query["peer_perspective"], query["peer_target"]
        if observer not in self.peers:
            return self._missing_here(f"Peer {observer}")
        view = [row for row in self.conclusions if (row["observer_id"], row["observed_id"]) == (observer, observed)]
        return 200, {
            "id": session,
            "messages": [row for row in self.messages if row["session_id"] == session],
            "summary": None,
            "peer_representation": "".join(f"[{row['created_at']}] {row['content']}\n" for row in view),
            "peer_card": self.cards.get((observer, observed)),
        }

    def _card(self, observer: str, observed: str, card: list[str] | None = None) -> Answer:
        if observer not in self.peers:
            return self._missing_here(f"Peer {observer}")
        if card is not None:
            self.cards[observer, observed] = card
        return 200, {"peer_card": self.cards.get((observer, observed))}

    def _chat(self, observer: str, body: Row) -> Answer:
        if body["reasoning_level"] not in ("minimal", "low", "medium", "high", "max"):
            return _invalid("literal_error")
        observed = body.get("target", observer)
        if observed not in self.peers:
            return self._missing_here(f"Peer {observed}")
        self.chats.append({"observer": observer} | body)
        # The model reads every session in which the peer that asks takes part.
        seen = [row["content"] for row in self.messages if observer in self.members.get(row["session_id"], {})]
        return 200, {"content": f"{len(seen)} messages are known: {' '.join(seen)[:300]}" if seen else ""}

    def _page(self, rows: list[Row], body: Row, query: Row) -> Answer:
        filters = body.get("filters", {})
        if "bogus" in filters:
            return 422, {"detail": "Column 'bogus' is not allowed to be filtered on or does not exist on Session"}
        found = [row for row in rows if _matches(row, filters)]
        page, size = int(query["page"]), int(query["size"])
        items = found[(page - 1) * size : page * size]
        return 200, {"items": items, "total": len(found), "page": page, "size": size, "pages": -(-len(found) // size)}

    def _missing_here(self, what: str) -> Answer:
        return _missing(f"{what} not found in workspace {self.name}")

    def _next_id(self) -> str:
        self._ids += 1
        return f"id-{self._ids:05}"


def _missing(detail: str) -> Answer:
    return 404, {"detail": detail}


def _invalid(kind: str) -> Answer:
    return 422, {"detail": [{"type": kind, "loc": ["body"], "msg": "", "input": "", "ctx": {}}]}


def _matches(row: Row, filters: Row) -> bool:
    for name, wanted in filters.items():
        value = row.get(name)
        if name == "metadata":
            same = wanted.items() <= row["metadata"].items()
        elif isinstance(wanted, dict):
            same = value in wanted["in"] if "in" in wanted else value != wanted["ne"]
        else:
            same = value == wanted
        if not same:
            return False
    return True


def _ranked(rows: list[Row], query: str, *, closest: bool) -> list[Row]:
    """Rows by the number of common words; without `closest` also those that have none, as the server does."""
    words = set(re.findall(r"\w+", query.casefold()))
    common = {id(row): len(words & set(re.findall(r"\w+", row["content"].casefold()))) for row in rows}
    return sorted((row for row in rows if common[id(row)] or not closest), key=lambda row: -common[id(row)])
