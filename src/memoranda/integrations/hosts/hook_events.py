"""The hosts that call hooks, and their events. Every call loads this module, so it contains only names."""

from memoranda.integrations.hosts.plugin_hosts import PLUGIN_HOSTS

HOOK_HOSTS = ("claude-code", "codex", "gemini-cli", "opencode", "cursor")
HOSTS = (*HOOK_HOSTS, *PLUGIN_HOSTS)
SESSION_START, USER_PROMPT = "SessionStart", "UserPromptSubmit"
ANSWERED_EVENTS = frozenset({SESSION_START, USER_PROMPT})
CAPTURE_EVENTS = frozenset({"Stop", "SubagentStop", "PreCompact", "SessionEnd"})
# What other hosts call these events.
EVENT_NAMES = {
    "BeforeAgent": USER_PROMPT,
    "AfterAgent": "Stop",
    "sessionStart": SESSION_START,
    "beforeSubmitPrompt": USER_PROMPT,
    "stop": "Stop",
    "subagentStop": "SubagentStop",
    "sessionEnd": "SessionEnd",
}
