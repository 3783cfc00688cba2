"""Shortens the answers of tools to a size that other programs accept.

Claude Code warns about a result of more than 10,000 tokens and refuses one of more than 25,000. Codex removes the
middle of a result of more than 10,000 tokens, with some models of more than 10 kB. So an answer that is too long loses
the ends of its longest fields, and says so.
"""

import json
from typing import Any

from memoranda.support.tool import JsonObject

MAX_BYTES = 40_000
# Search gets a smaller limit, because it knows better what to omit and offers a cursor for the rest.
MAX_SEARCH_CHARS = 9_500
_NOTE = "Parts of this answer were left out because it was too long; ask for less at once."


def fit_answer(answer: JsonObject, max_bytes: int = MAX_BYTES) -> str:
    """Returns an answer as compact JSON of at most `max_bytes`."""
    text = _dump(answer)
    if _byte_count(text) <= max_bytes:
        return text
    shorter: JsonObject = dict(answer) | {"truncated": True, "note": _NOTE}
    while _byte_count(_dump(shorter)) > max_bytes:
        longest = max(shorter, key=lambda field: _byte_count(_dump(shorter[field])))
        half = _first_half(shorter[longest])
        if half is None:
            return _dump({"success": bool(answer.get("success")), "truncated": True, "note": _NOTE})
        shorter[longest] = half
    return _dump(shorter)


def _first_half(value: Any) -> Any:
    """Returns the first half of a value; None when it cannot be shortened further."""
    if isinstance(value, str | list) and value:
        return value[: len(value) // 2]
    if isinstance(value, dict) and value:
        return dict(list(value.items())[: len(value) // 2])
    return None


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _byte_count(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
