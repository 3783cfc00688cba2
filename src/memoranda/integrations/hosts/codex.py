"""Codex: adds our server to its config.toml, and our commands to its hooks.json.

Codex runs a hook only after the user has reviewed it (`/hooks`). The server therefore provides the memory too, and
Codex waits for the server: its first request contains the memory even before the user trusts the hooks.
"""

from memoranda.integrations.hosts.codex_hook_state import remove_our_state
from memoranda.integrations.hosts.hook_settings import add_hooks, remove_hooks
from memoranda.integrations.hosts.host import Host, HostEnvironment, SettingsFile
from memoranda.integrations.hosts.launch_command import PROGRAM
from memoranda.integrations.hosts.server_entry import add_server, remove_server

NAME = "codex"
# Codex sends its first request without the tools of a server that is not required. A required server that does not
# start in time stops Codex, so it gets more than the ten seconds of other servers.
_WAIT_FOR_SERVER = {"required": True, "startup_timeout_sec": 60}
_TIMEOUT = {"timeout": 10}
# Codex moves longer context to a file. It counts tokens by bytes, and 9,500 characters may be 28,500 bytes.
_CONTEXT_OPTIONS = {**_TIMEOUT, "additionalContextLimit": 10_000}
# Codex stops this one after three seconds at the latest, and warns about a longer timeout.
_SESSION_END_OPTIONS = {"timeout": 3}
EVENTS = {
    "SessionStart": _CONTEXT_OPTIONS,
    "UserPromptSubmit": _CONTEXT_OPTIONS,
    "Stop": _TIMEOUT,
    "SubagentStop": _TIMEOUT,
    "PreCompact": _TIMEOUT,
    "SessionEnd": _SESSION_END_OPTIONS,
}


def _files(environment: HostEnvironment) -> list[SettingsFile]:
    table = ("mcp_servers", PROGRAM)
    remove = remove_server("mcp_servers")
    if environment.project is not None:
        # Others may not have Memoranda: a required server would stop their Codex, and our hooks would disturb it.
        path = environment.project / ".codex" / "config.toml"
        return [SettingsFile(path, add_server("mcp_servers"), remove, "toml", table)]
    directory = environment.directory("CODEX_HOME", environment.user_home / ".codex")
    add = add_server("mcp_servers", defaults=_WAIT_FOR_SERVER)
    hooks = SettingsFile(directory / "hooks.json", add_hooks(NAME, EVENTS), remove_hooks(NAME), local=True)
    config = SettingsFile(
        directory / "config.toml",
        add,
        remove,
        "toml",
        table,
        clean=lambda text: remove_our_state(text, hooks.path, NAME),
    )
    return [config, hooks]


HOST = Host(
    NAME,
    "Codex",
    _files,
    "Start Codex and trust the hooks that it asks you to review (/hooks): until then it does not run them, and "
    "Memoranda records nothing. /mcp shows the server.",
)
