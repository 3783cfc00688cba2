"""Where OpenClaw keeps things: its directory, its configuration, and the workspaces of its agents.

The directory is `~/.openclaw`, or `~/.clawdbot` or `~/.moltbot` from before it was renamed. A workspace is what an
agent calls its home: MEMORY.md, USER.md, SOUL.md, daily notes and skills. There is one per agent, and over the versions
it has been found in several places.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoranda.support.relaxed_json import JsonTextError, parse_json5
from memoranda.support.text_file import MissingFile, TextFile, read_text

DIRECTORIES = (".openclaw", ".clawdbot", ".moltbot")
CONFIG_FILES = ("openclaw.json", "clawdbot.json", "moltbot.json")
_MAIN = "main"
_IN_TREE = ("workspace", "workspace.default", "workspace-main", "workspace-assistant")


@dataclass(frozen=True, slots=True)
class OtherAgent:
    """An agent whose workspace is not the one that is imported."""

    id: str
    workspace: Path


@dataclass(frozen=True, slots=True)
class Installation:
    """An OpenClaw directory and what is known of it; a file is taken from the first workspace that has it."""

    root: Path
    config: Mapping[str, Any]
    config_file: Path | None
    agent: str
    workspaces: tuple[Path, ...]
    others: tuple[OtherAgent, ...] = ()
    problems: tuple[str, ...] = ()

    def find(self, name: str) -> Path | None:
        """A file or directory of the agent's workspace, wherever it lies."""
        return next((place / name for place in self.workspaces if (place / name).exists()), None)


def find_directories(home: Path | None = None) -> list[Path]:
    """The directories that OpenClaw, by any of its names, has left in a user's home."""
    home = home or Path.home()
    return [home / name for name in DIRECTORIES if (home / name).is_dir()]


def inspect_installation(root: Path, agent: str | None = None, *, moved: bool = False) -> Installation:
    """What there is in an OpenClaw directory, for its default agent or another one.

    `moved` means that somebody named the place, perhaps a copy: then its own workspaces come before those that its
    configuration points to.
    """
    root = root.expanduser().absolute()
    config_file = next((root / name for name in CONFIG_FILES if (root / name).is_file()), None)
    config, problems = _read_config(config_file)
    agents = _agents(config)
    chosen = agent or _default_agent(agents)
    is_main = chosen == _default_agent(agents)
    inside = [root / name for name in _IN_TREE] if is_main else []
    inside.append(root / f"workspace-{chosen}")
    configured = _configured(config, agents, chosen, is_main)
    workspaces = _present([*inside, *configured] if moved else [*configured, *inside])
    others = _others(root, config, agents, chosen)
    if not workspaces and is_main and agent is None and others:
        # Nothing belongs to the main agent; the first one there is takes its place.
        chosen, workspaces, others = others[0].id, [others[0].workspace], others[1:]
    left = tuple(other for other in others if other.workspace not in workspaces)
    return Installation(root, config, config_file, chosen, tuple(workspaces), left, tuple(problems))


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
        return {}, [f"{path} cannot be understood: {error}"]
    if not isinstance(found, dict):
        return {}, [f"{path} holds no settings"]
    problems = [f"{path} includes other files, which were not read"] if "$include" in found else []
    return found, problems


def section(config: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """A part of the configuration; empty when it is not there or is something else."""
    found: Any = config
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _agents(config: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The agents that are configured: `entries` by id today, a `list` before that."""
    entries = section(config, "agents", "entries")
    found = {str(name): each for name, each in entries.items() if isinstance(each, Mapping)}
    listed = section(config, "agents").get("list")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, Mapping) and isinstance(each.get("id"), str):
            found.setdefault(each["id"], each)
    return found


def _default_agent(agents: Mapping[str, Mapping[str, Any]]) -> str:
    marked = [name for name, each in agents.items() if each.get("default") is True]
    return marked[0] if marked else _MAIN if _MAIN in agents or not agents else next(iter(agents))


def _configured(
    config: Mapping[str, Any], agents: Mapping[str, Mapping[str, Any]], agent: str, is_main: bool
) -> list[Path]:
    own = agents.get(agent, {}).get("workspace")
    shared = section(config, "agents", "defaults").get("workspace") or section(config, "agent").get("workspace")
    found = [_path(own)] if isinstance(own, str) else []
    if isinstance(shared, str):
        found += [_path(shared)] if is_main else [_path(shared) / agent]
    return found


def _others(
    root: Path, config: Mapping[str, Any], agents: Mapping[str, Mapping[str, Any]], chosen: str
) -> list[OtherAgent]:
    names = dict.fromkeys(
        [*agents, *(path.name.removeprefix("workspace-") for path in sorted(root.glob("workspace-*")))]
    )
    found = []
    for name in names:
        places = [*_configured(config, agents, name, name == _default_agent(agents)), root / f"workspace-{name}"]
        present = _present(places)
        if name != chosen and present:
            found.append(OtherAgent(name, present[0]))
    return found


def _present(places: Sequence[Path]) -> list[Path]:
    return [place for place in dict.fromkeys(places) if place.is_dir()]


def _path(text: str) -> Path:
    return Path(os.path.abspath(Path(text).expanduser())) if text.startswith("~/") or text == "~" else Path(text)
