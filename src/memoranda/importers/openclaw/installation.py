"""Finds OpenClaw's directory, its configuration, the workspaces of its agents, and its running processes.

The directory is `~/.openclaw`, or `~/.clawdbot` or `~/.moltbot` from before it was renamed. A workspace contains the
files of one agent: MEMORY.md, USER.md, SOUL.md, daily notes and skills. Its directory differs between versions. After a
migration, the directory can be renamed; its content is not changed.
"""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memoranda.support.durable_files import sync_directory
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.relaxed_json import JsonTextError, parse_json5
from memoranda.support.text_file import MissingFile, TextFile, read_text

DIRECTORIES = (".openclaw", ".clawdbot", ".moltbot")
CONFIG_FILES = ("openclaw.json", "clawdbot.json", "moltbot.json")
_MAIN = "main"
_IN_TREE = ("workspace", "workspace.default", "workspace-main", "workspace-assistant")
_SUFFIX = ".pre-migration"
_NAMES = frozenset(
    ("openclaw", "clawdbot", "moltbot", "openclaw-gateway", "openclaw.mjs", "clawdbot.mjs", "moltbot.mjs")
)
_RUNTIMES = frozenset(("node", "bun", "deno"))
_PS_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class OtherAgent:
    """An agent whose workspace is not the one that is imported."""

    id: str
    workspace: Path


@dataclass(frozen=True, slots=True)
class Installation:
    """An OpenClaw directory; a file is taken from the first workspace that has it."""

    root: Path
    config: Mapping[str, Any]
    config_file: Path | None
    agent: str
    workspaces: tuple[Path, ...]
    others: tuple[OtherAgent, ...] = ()
    problems: tuple[str, ...] = ()

    def find(self, name: str) -> Path | None:
        """Return the path of a file or directory in the first workspace that has it."""
        return next((path for workspace in self.workspaces if (path := workspace / name).exists()), None)


def find_directories(home: Path | None = None) -> list[Path]:
    """Return the directories of OpenClaw, by any of its names, in a user's home directory."""
    home = home or Path.home()
    return [home / name for name in DIRECTORIES if (home / name).is_dir()]


def inspect_installation(root: Path, agent: str | None = None, *, moved: bool = False) -> Installation:
    """Inspect an OpenClaw directory, for its default agent or another one.

    `moved` means that the user named the directory, which may be a copy: then the workspaces in it come before those
    that its configuration names.
    """
    root = root.expanduser().absolute()
    config_file = next((root / name for name in CONFIG_FILES if (root / name).is_file()), None)
    config, problems = _read_config(config_file)
    agents = _agents(config)
    chosen = agent or _default_agent(agents)
    is_main = chosen == _default_agent(agents)
    inside = [root / name for name in _IN_TREE] if is_main else []
    inside.append(root / f"workspace-{chosen}")
    configured = _configured_workspaces(config, agents, chosen, is_main)
    workspaces = _existing([*inside, *configured] if moved else [*configured, *inside])
    others = _other_agents(root, config, agents, chosen)
    if not workspaces and is_main and agent is None and others:
        # The main agent has no workspace; use the first agent that has one.
        chosen, workspaces, others = others[0].id, [others[0].workspace], others[1:]
    remaining = tuple(other for other in others if other.workspace not in workspaces)
    return Installation(root, config, config_file, chosen, tuple(workspaces), remaining, tuple(problems))


def _read_config(path: Path | None) -> tuple[Mapping[str, Any], list[str]]:
    if path is None:
        return {}, []
    state = read_text(path)
    if isinstance(state, MissingFile):
        return {}, []
    if not isinstance(state, TextFile):
        return {}, [f"{path} cannot be read: {state.problem}"]
    try:
        found = parse_json5(state.text)
    except JsonTextError as error:
        return {}, [f"{path} is not valid: {error}"]
    if not isinstance(found, dict):
        return {}, [f"{path} is not an object"]
    problems = [f"{path} includes other files, which were not read"] if "$include" in found else []
    return found, problems


def section(config: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return a section of the configuration; empty when it is missing or not an object."""
    found: Any = config
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _agents(config: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the configured agents: `entries` by id in current versions, a `list` before."""
    entries = section(config, "agents", "entries")
    found = {str(name): agent for name, agent in entries.items() if isinstance(agent, Mapping)}
    listed = section(config, "agents").get("list")
    for agent in listed if isinstance(listed, list) else ():
        if isinstance(agent, Mapping) and isinstance(agent.get("id"), str):
            found.setdefault(agent["id"], agent)
    return found


def _default_agent(agents: Mapping[str, Mapping[str, Any]]) -> str:
    marked = [name for name, agent in agents.items() if agent.get("default") is True]
    return marked[0] if marked else _MAIN if _MAIN in agents or not agents else next(iter(agents))


def _configured_workspaces(
    config: Mapping[str, Any], agents: Mapping[str, Mapping[str, Any]], agent: str, is_main: bool
) -> list[Path]:
    own = agents.get(agent, {}).get("workspace")
    shared = section(config, "agents", "defaults").get("workspace") or section(config, "agent").get("workspace")
    found = [_path(own)] if isinstance(own, str) else []
    if isinstance(shared, str):
        found += [_path(shared)] if is_main else [_path(shared) / agent]
    return found


def _other_agents(
    root: Path, config: Mapping[str, Any], agents: Mapping[str, Mapping[str, Any]], chosen: str
) -> list[OtherAgent]:
    names = dict.fromkeys(
        [*agents, *(path.name.removeprefix("workspace-") for path in sorted(root.glob("workspace-*")))]
    )
    found = []
    for name in names:
        candidates = [
            *_configured_workspaces(config, agents, name, name == _default_agent(agents)),
            root / f"workspace-{name}",
        ]
        present = _existing(candidates)
        if name != chosen and present:
            found.append(OtherAgent(name, present[0]))
    return found


def _existing(directories: Sequence[Path]) -> list[Path]:
    return [directory for directory in dict.fromkeys(directories) if directory.is_dir()]


def _path(text: str) -> Path:
    return Path(os.path.abspath(Path(text).expanduser())) if text.startswith("~/") or text == "~" else Path(text)


@dataclass(frozen=True, slots=True)
class DirectoryRename:
    """The planned rename of a directory, with the size of its content."""

    directory: Path
    new_path: Path
    files: int
    bytes: int


def plan_rename(directory: Path) -> DirectoryRename:
    """Return how a directory would be renamed."""
    directory = directory.absolute()
    files = total = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            files += 1
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except OSError:
                continue
    return DirectoryRename(directory, _free_name(directory), files, total)


def rename_directory(planned: DirectoryRename) -> Path:
    """Rename a directory and return its new path; raises OSError."""
    new_path = _free_name(planned.directory)
    os.rename(planned.directory, new_path)
    sync_directory(new_path.parent)
    return new_path


def _free_name(directory: Path) -> Path:
    day = f"{datetime.now(UTC):%Y%m%d}"
    endings = [_SUFFIX, f"{_SUFFIX}-{day}", *(f"{_SUFFIX}-{day}-{number}" for number in range(2, 1000))]
    names = (directory.with_name(directory.name + ending) for ending in endings)
    return next(name for name in names if not os.path.lexists(name))


def find_openclaw_processes() -> list[int]:
    """Return the process ids of OpenClaw; empty also where processes cannot be listed."""
    try:
        output = subprocess.run(
            ["ps", "-axo", "pid=,command="], capture_output=True, timeout=_PS_TIMEOUT, check=False
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.SubprocessError):
        return []
    found = (line.strip().partition(" ") for line in output.splitlines())
    return [int(number) for number, _, command in found if number.isdigit() and is_openclaw_command(command)]


def is_openclaw_command(command: str) -> bool:
    """Whether a command line is OpenClaw's own: the program, or a JavaScript runtime that runs it."""
    words = command.split()[:4]
    if not words:
        return False
    program, *following = [os.path.basename(word) for word in words]
    if program in _NAMES:
        return True
    if program not in _RUNTIMES and not program.startswith("node"):
        return False
    script = next((index for index, word in enumerate(words[1:]) if not word.startswith("-")), None)
    if script is None:
        return False
    return following[script] in _NAMES or bool(re.search(r"/(?:openclaw|clawdbot|moltbot)/dist/", words[1:][script]))
