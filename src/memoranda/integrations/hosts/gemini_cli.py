"""Gemini CLI: adds our server and our hooks to its settings.json.

Its SessionStart hook is not used. In `gemini -p`, context from that hook becomes the beginning of the prompt, and a
session that is resumed later drops a prompt with such a beginning. The first prompt gets the memory instead, with its
evidence. PreCompress is not used either: Gemini CLI calls it before every prompt.
"""

from memoranda.integrations.hosts.hook_settings import add_hooks, remove_hooks
from memoranda.integrations.hosts.host import Host, HostEnvironment, Settings, SettingsFile
from memoranda.integrations.hosts.launch_command import PROGRAM, LaunchCommand
from memoranda.integrations.hosts.server_entry import add_server, remove_server

NAME = "gemini-cli"
_SERVERS = "mcpServers"
# The timeout is in milliseconds; `/hooks disable` uses the name.
_OPTIONS = {"name": PROGRAM, "timeout": 10_000}
EVENTS = ("BeforeAgent", "AfterAgent", "SessionEnd")


def _files(environment: HostEnvironment) -> list[SettingsFile]:
    if environment.project is not None:
        # Hooks are commands on this machine, and a project shares its only settings file.
        path = environment.project / ".gemini" / "settings.json"
        return [SettingsFile(path, add_server(_SERVERS), remove_server(_SERVERS))]
    directory = environment.directory("GEMINI_CLI_HOME", environment.user_home) / ".gemini"
    return [SettingsFile(directory / "settings.json", _add, _remove)]


def _add(settings: Settings, command: LaunchCommand) -> Settings:
    # Our hooks give the model its memory, so the server need not repeat it.
    settings = add_server(_SERVERS, flags=("--bare",))(settings, command)
    return add_hooks(NAME, dict.fromkeys(EVENTS, _OPTIONS))(settings, command)


def _remove(settings: Settings) -> Settings:
    return remove_hooks(NAME)(remove_server(_SERVERS)(settings))


HOST = Host(
    NAME,
    "Gemini CLI",
    _files,
    "Start a new session of Gemini CLI in a folder that you trust; /mcp and /hooks show what was added.",
)
