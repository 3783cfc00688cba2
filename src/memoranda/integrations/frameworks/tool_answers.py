"""Answers of the memory tools as the text that frameworks pass to their model."""

import json
from typing import TYPE_CHECKING, Any

from memoranda.integrations.frameworks import blocking_calls

if TYPE_CHECKING:
    from memoranda.api.memory import Memory


def call_tool(memory: "Memory", name: str, arguments: Any) -> str:
    """Call a memory tool and return its answer as JSON text; a failure is an answer too."""
    return json.dumps(memory.call(name, arguments), ensure_ascii=False)


async def call_tool_outside_the_loop(memory: "Memory", name: str, arguments: Any) -> str:
    """Call a memory tool without blocking the event loop; a cancellation takes effect when it has ended."""
    return await blocking_calls.run_to_end(call_tool, memory, name, arguments)
