"""Removes recalled memory that a model repeats from its messages before they are recorded."""

import json
from collections.abc import Mapping
from typing import Any

from memoranda.safety.fence import strip_recalled_blocks
from memoranda.support.json_texts import map_texts


def strip_recall(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message without recalled memory in its text, reasoning or calls; only the model's messages change."""
    if message.get("role") != "assistant":
        return message
    clean = {**message, "content": map_texts(message.get("content"), strip_recalled_blocks)}
    for name in ("reasoning", "reasoning_content"):
        if name in clean:
            clean[name] = map_texts(clean[name], strip_recalled_blocks)
    details = clean.get("reasoning_details")
    if details is not None and map_texts(details, strip_recalled_blocks) != details:
        # The vendor signed the details, and accepts all of them or none.
        del clean["reasoning_details"]
    if isinstance(clean.get("tool_calls"), list):
        clean["tool_calls"] = [_strip_call(call) for call in clean["tool_calls"]]
    return clean


def _strip_call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(arguments, str):
        return call
    try:
        parsed = json.loads(arguments)
    except (ValueError, RecursionError):
        clean = strip_recalled_blocks(arguments)
    else:
        stripped = map_texts(parsed, strip_recalled_blocks)
        clean = arguments if stripped == parsed else json.dumps(stripped, ensure_ascii=False)
    return {**call, "function": {**function, "arguments": clean}}
