"""What the services of vendors answer to the plugins that Hermes contains: one fact, in the format of each vendor.

Each answer is for the requests whose method and path match its pattern; the last one of a vendor is for all others.
The formats are those that the vendors' clients read.
"""

import re
from typing import Any

from tests.external.http_service import Exchange

FACT = "The zebra is called Otto."
_TIME = "2026-11-16T08:00:00Z"
_VIKING_FILE = "viking://user/default/memories/zebra.md"
_VIKING_HIT = {
    "context_type": "memory",
    "uri": _VIKING_FILE,
    "level": 2,
    "score": 0.9,
    "abstract": FACT,
    "category": "entity",
    "match_reason": "",
}
_HONCHO_ROW = {"metadata": {}, "configuration": {}, "created_at": _TIME, "workspace_id": "w", "is_active": True}
_HONCHO_FACT = {
    "id": "c1",
    "content": FACT,
    "observer_id": "user",
    "observed_id": "user",
    "peer_id": "user",
    "session_id": "s",
    "token_count": 5,
} | _HONCHO_ROW
_RETAIN_FACT = {"id": "m1", "content": FACT, "memory": FACT, "score": 0.9, "memory_type": "factual"}

Answers = tuple[tuple[str, Any], ...]


def _page(*items: Any) -> dict[str, Any]:
    return {"items": list(items), "total": len(items), "page": 1, "size": 50, "pages": 1}


def _viking(result: Any) -> dict[str, Any]:
    return {"status": "ok", "result": result, "error": None}


ANSWERS: dict[str, Answers] = {
    "hindsight": (
        (r"/version$", {"version": "1.1.0", "features": {}}),
        (r"/memories/recall$", {"results": [{"id": "m1", "text": FACT, "type": "observation"}]}),
        (r"/memories$", {"success": True, "bank_id": "hermes", "items_count": 1, "async": True}),
        (r"/reflect$", {"text": FACT}),
        ("", {}),
    ),
    "honcho": (
        (r"/(messages|conclusions)/list|/search$|/conclusions/query$", _page(_HONCHO_FACT)),
        (r"POST .*/messages$", [_HONCHO_FACT]),
        (r"POST .*/conclusions$", [_HONCHO_FACT]),
        (r"/list\b", _page()),
        (r"/representation$", {"representation": FACT}),
        (r"/card$", {"peer_card": [FACT]}),
        (r"/chat$", {"content": FACT}),
        (
            r"/context\b",
            {
                "id": "s",
                "messages": [],
                "summary": None,
                "peer_id": "user",
                "target_id": "user",
                "representation": FACT,
                "peer_representation": FACT,
                "peer_card": [FACT],
            },
        ),
        (r"(POST|PUT|GET) ", {"id": "default"} | _HONCHO_ROW),
        ("", {}),
    ),
    "mem0": ((r"/search$", {"results": [{"id": "m1", "memory": FACT, "score": 0.9}]}), ("", {"message": "Done."})),
    "openviking": (
        (r"/health$", {"status": "ok", "healthy": True}),
        (r"/search/", _viking({"memories": [_VIKING_HIT], "resources": [], "skills": [], "total": 1})),
        (r"GET .*/content/", _viking(FACT)),
        (r"/fs/(ls|tree)", _viking([{"uri": _VIKING_FILE, "isDir": False, "size": 25}])),
        (r"/fs/stat", _viking({"uri": _VIKING_FILE, "isDir": False, "size": 25})),
        ("", _viking({"session_id": "s", "uri": _VIKING_FILE, "root_uri": _VIKING_FILE, "status": "success"})),
    ),
    "retaindb": (
        (r"/context/query$", {"results": [_RETAIN_FACT], "context": FACT}),
        (r"/files", {"file": {"id": "f1", "path": "/note.txt"}, "files": [{"id": "f1"}], "id": "f1", "content": FACT}),
        ("", {"id": "m1", "results": [_RETAIN_FACT], "memories": [_RETAIN_FACT], "answer": FACT, "success": True}),
    ),
    "supermemory": (
        (
            r"/profile$",
            {
                "profile": {"static": [FACT], "dynamic": []},
                "searchResults": {
                    "results": [{"id": "m1", "memory": FACT, "similarity": 0.9}],
                    "timing": 1,
                    "total": 1,
                },
            },
        ),
        (
            r"/search$",
            {
                "results": [{"id": "m1", "memory": FACT, "similarity": 0.9, "metadata": None, "updatedAt": _TIME}],
                "timing": 1,
                "total": 1,
            },
        ),
        ("", {"id": "m1", "status": "queued", "forgotten": True}),
    ),
}


class VendorAnswers:
    """Answers for one vendor, and keeps what was sent."""

    def __init__(self, vendor: str) -> None:
        self._answers = ANSWERS[vendor]
        self.sent: list[str] = []

    def respond(self, exchange: Exchange) -> None:
        path = exchange.path.partition("?")[0]
        self.sent.append(exchange.body.decode("utf-8", "replace"))
        answer = next(body for pattern, body in self._answers if re.search(pattern, f"{exchange.command} {path}"))
        exchange.answer(200, answer, Content_Type="application/json")
