"""What a model says, as it is recorded: without recalled memory that it repeats, wherever it repeats it."""

import json
from collections.abc import Mapping
from typing import Any

from memoranda.providers.text import clean_texts
from memoranda.safety.fence import strip_recalled_blocks


def strip_recall(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message without recalled memory in its text, its reasoning or its calls; the user's words are never touched."""
    if message.get("role") != "assistant":
        return message
    kept = {**message, "content": clean_texts(message.get("content"), strip_recalled_blocks)}
    for name in ("reasoning", "reasoning_content"):
        if name in kept:
            kept[name] = clean_texts(kept[name], strip_recalled_blocks)
    details = kept.get("reasoning_details")
    if details is not None and clean_texts(details, strip_recalled_blocks) != details:
        # Signed by its vendor, who takes back all of it or nothing.
        del kept["reasoning_details"]
    if isinstance(kept.get("tool_calls"), list):
        kept["tool_calls"] = [_call(call) for call in kept["tool_calls"]]
    return kept


def _call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(arguments, str):
        return call
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        clean = strip_recalled_blocks(arguments)
    else:
        kept = clean_texts(given, strip_recalled_blocks)
        clean = arguments if kept == given else json.dumps(kept, ensure_ascii=False)
    return {**call, "function": {**function, "arguments": clean}}
