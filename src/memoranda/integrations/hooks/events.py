"""The names of the hosts that call us, of their events, and of what a plugin uses. Every call loads this module.

Some hosts call hooks; others run a plugin of ours. A plugin cannot import Memoranda, because the host has its own
interpreter. It calls `memoranda hook HOST EVENT` with a JSON payload on standard input, and gets a JSON object on
standard output. It puts turns into a spool, `host-turns/<host>/` in the home, until they are in the record.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

HERMES, OPENCLAW = "hermes", "openclaw"
PLUGIN_HOSTS = (HERMES, OPENCLAW)
TOOL_CALL = "ToolCall"
# The hosts have tools called `memory` and `session_search` themselves.
TOOLS = {"memoranda_search": "session_search", "memoranda_memory": "memory"}
SEARCH_TOOL = "memoranda_search"

HOOK_HOSTS = ("claude-code", "codex", "gemini-cli", "opencode", "cursor")
HOSTS = (*HOOK_HOSTS, *PLUGIN_HOSTS)
SESSION_START, USER_PROMPT, SESSION_END = "SessionStart", "UserPromptSubmit", "SessionEnd"
ANSWERED_EVENTS = frozenset({SESSION_START, USER_PROMPT})
CAPTURE_EVENTS = frozenset({"Stop", "SubagentStop", "PreCompact", SESSION_END})
# What other hosts call these events.
EVENT_NAMES = {
    "BeforeAgent": USER_PROMPT,
    "AfterAgent": "Stop",
    "sessionStart": SESSION_START,
    "beforeSubmitPrompt": USER_PROMPT,
    "stop": "Stop",
    "subagentStop": "SubagentStop",
    "sessionEnd": SESSION_END,
}


def spool_directory(home: "Path", host: str) -> "Path":
    return home / "host-turns" / host


def waiting_turns(home: "Path", host: str) -> "list[Path]":
    """Returns the files of turns that are not recorded yet, the oldest first."""
    return sorted(spool_directory(home, host).glob("*.json"))
