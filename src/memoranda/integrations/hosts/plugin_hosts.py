"""The hosts that run a plugin of ours instead of hooks, and the names of our tools there.

A plugin cannot import Memoranda, because the host has its own interpreter. It calls `memoranda hook HOST EVENT` with a
JSON payload on standard input, and gets a JSON object on standard output.
"""

HERMES, OPENCLAW = "hermes", "openclaw"
PLUGIN_HOSTS = (HERMES, OPENCLAW)
TOOL_CALL = "ToolCall"
# The hosts have tools called `memory` and `session_search` themselves.
TOOLS = {"memoranda_search": "session_search", "memoranda_memory": "memory"}
SEARCH_TOOL = "memoranda_search"
