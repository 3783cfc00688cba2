"""Finds the programs on this machine that have conversations to import or that can use memory."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from memoranda.cli.context import Invocation
from memoranda.cli.hosts.host_states import HostState, find_hosts
from memoranda.cli.imports.found_sources import FoundSource, find_all_sources
from memoranda.cli.terminal_text import bold, terminal_line
from memoranda.importers.sources import SOURCES
from memoranda.integrations.hosts.plugin_settings import replaced_memory
from memoranda.integrations.hosts.supported_hosts import HOSTS

# These are files that users download; they have no fixed directory on a machine.
_DOWNLOADS = frozenset({"chatgpt", "claude", "jsonl"})
_WITH_MEMORIES = frozenset({"hermes", "openclaw"})
PROGRAM_NAMES = sorted({*SOURCES, *HOSTS} - _DOWNLOADS)


@dataclass(frozen=True, slots=True)
class DetectedProgram:
    """A program on this machine: what its reader found, and whether it has memory; either may be missing."""

    name: str
    title: str
    source: FoundSource | None
    host: HostState | None

    @property
    def can_install(self) -> bool:
        return self.host is not None and bool(self.host.changes)

    @property
    def has_work(self) -> bool:
        return self.source is not None or self.can_install

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "conversations": None if self.source is None else self.source.as_json(),
            "memory": None if self.host is None else self.host.state,
            "settings": [] if self.host is None else [str(change.file) for change in self.host.changes],
        }

    def describe(self) -> str:
        """Describes what setup would do for this program."""
        parts = []
        if self.source is not None:
            parts.append(f"import {self.source.description}")
        if self.host is not None and self.host.problem:
            parts.append(f"cannot install: {self.host.problem}")
        elif self.can_install:
            parts.append("install memory")
        elif self.host is not None:
            parts.append("memory is installed")
        if self.source is not None and self.name in _WITH_MEMORIES:
            parts.append(f"'memoranda import {self.name}' also imports its memories and skills")
        return terminal_line("; ".join(parts))


def detect_programs(
    invocation: Invocation, *, only: Sequence[str] = (), imports: bool = True, installs: bool = True
) -> list[DetectedProgram]:
    """Returns the programs that are on this machine; `only` limits them to these names."""
    sources = {found.source.name: found for found in find_all_sources()} if imports else {}
    found = [item for item in find_hosts(invocation) if item.present] if installs else []
    # Another memory that the user selected is replaced only when the user names the program.
    hosts = {item.host.name: item for item in found if item.host.name in only or not replaced_memory(item.changes)}
    names = [name for name in dict.fromkeys([*hosts, *sources]) if not only or name in only]
    return [_program(name, sources.get(name), hosts.get(name)) for name in names]


def _program(name: str, source: FoundSource | None, host: HostState | None) -> DetectedProgram:
    title = host.host.title if host else source.source.program if source else name
    return DetectedProgram(name, title, source, host)


def format_programs(programs: Iterable[DetectedProgram], heading: str) -> str:
    """Lists the programs with numbers, and what would be done for each."""
    rows = list(programs)
    width = max(len(program.title) for program in rows)
    lines = [f"{i:>3}. {row.title:<{width}}  {row.describe()}" for i, row in enumerate(rows, start=1)]
    return "\n".join([bold(heading), *lines])


def describe_searched_locations(invocation: Invocation, only: Sequence[str]) -> str:
    """Describes what was searched for when nothing was found."""
    if only:
        return f"This machine has no {' or '.join(only)}. 'memoranda setup' shows which programs it has."
    readers = [source.program for source in SOURCES.values() if source.name not in _DOWNLOADS]
    hosts = [f"  {item.host.title}: {item.files[0]}" for item in find_hosts(invocation)]
    return "\n".join(
        [
            "No agent was found on this machine.",
            f"Looked for the conversations of {', '.join(readers)} where these programs keep them,",
            "and for the settings of:",
            *hosts,
            "For conversations in another directory: 'memoranda import NAME --source PATH'.",
            "'memoranda demo' shows memory and search at work without an agent.",
        ]
    )
