"""Answers of a size that hosts accept.

Claude Code warns of a result beyond 10,000 tokens and refuses one beyond 25,000; Codex cuts the middle out of one that
has more than 10,000 tokens, with some models more than 10 kB. So an answer that would be too long gives up the ends of
its longest parts, and says so.
"""

import json
from typing import Any

from memoranda.tools import JsonObject

MOST_BYTES = 40_000
# For search, which knows better what to leave out, and how to go on.
MOST_SEARCH_CHARS = 9_500
_NOTE = "Parts of this answer were left out because it was too long; ask for less at once."


def as_text(answer: JsonObject, most: int = MOST_BYTES) -> str:
    """An answer as compact JSON with at most so many bytes."""
    text = _dump(answer)
    if _size(text) <= most:
        return text
    shorter: JsonObject = dict(answer) | {"truncated": True, "note": _NOTE}
    while _size(_dump(shorter)) > most:
        name = max(shorter, key=lambda each: _size(_dump(shorter[each])))
        cut = _half(shorter[name])
        if cut is None:
            return _dump({"success": bool(answer.get("success")), "truncated": True, "note": _NOTE})
        shorter[name] = cut
    return _dump(shorter)


def _half(value: Any) -> Any:
    """The first half of something; None when it cannot be any shorter."""
    if isinstance(value, str | list) and value:
        return value[: len(value) // 2]
    if isinstance(value, dict) and value:
        return dict(list(value.items())[: len(value) // 2])
    return None


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
