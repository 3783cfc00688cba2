"""What our own tools answered in another program: copies of what is remembered, which are not remembered once more.

Taken in as they are, they would be found instead of what they quote, under another conversation and another date, and
every search would add a hit about itself.
"""

import re
from typing import Any

# Each program writes the server's name before the tool's in its own way: mcp__memoranda__memory, memoranda.memory ...
_OURS = re.compile(r"(?:mcp[_.:/-]{1,2})?memoranda[_.:/-]{1,2}\w+", re.IGNORECASE)


def without_own_answer(message: dict[str, Any]) -> dict[str, Any]:
    """A message as it is; of an answer of one of our own tools, how long it was."""
    tool, content = message.get("tool_name"), message.get("content")
    if message.get("role") != "tool" or not content or not isinstance(tool, str) or not _OURS.fullmatch(tool):
        return message
    size = len(content if isinstance(content, str) else str(content))
    return {**message, "content": f"[an answer of memory: {size:,} characters, not imported]"}
