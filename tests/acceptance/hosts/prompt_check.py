"""What the checks of Gemini CLI and OpenCode share: a machine, and figures for hosts that get memory with a prompt."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.acceptance.hosts.machine import (
    ANSWER,
    ASKING,
    NOTE,
    OTHERS,
    TIMEOUT,
    Machine,
    changed_files,
    choose_prompts,
    wait_for_count,
)
from tests.acceptance.hosts.model_servers import REPLY, ModelServer

Request = dict[str, Any]


class PromptMachine(Machine):
    """A machine with a host that calls a scripted server; `source` is the name of the host in the record."""

    # With its first plugin, OpenCode installs a package from npm.
    timeout = 5 * TIMEOUT

    def __init__(self, root: Path, program: str, server: ModelServer, source: str, **variables: str) -> None:
        super().__init__(root, variables)
        self.source = source
        self._program, self._server = program, server

    def ask(self, *arguments: str) -> Request:
        """Runs the host once and returns its first request."""
        start = len(self._server.requests)
        self.run([self._program, *arguments])
        return self._server.requests[start]

    def version(self) -> str:
        return self.run([self._program, "--version"]).strip()

    def wait_for_turns(self, turns: int) -> int:
        """Waits until this many turns are recorded, and returns how many sessions are complete."""
        wait_for_count(lambda: sum(map(len, self._complete_sessions())), 2 * turns)
        return len(self._complete_sessions())

    def recorded_texts(self) -> list[list[str]]:
        """Returns the texts of each session of the host."""
        return [[text for _, text in messages] for messages in self.recorded_messages(self.source)]

    def _complete_sessions(self) -> list[list[str]]:
        return [texts for texts in self.recorded_texts() if _is_complete(texts)]


def _is_complete(texts: list[str]) -> bool:
    """Whether each prompt is recorded as it was written, without what a hook added, and has its answer."""
    prompts, replies = texts[::2], texts[1::2]
    # `opencode run` puts the words of its command line in quotation marks.
    known = all(prompt.strip('"') in (ASKING, *OTHERS) for prompt in prompts)
    return bool(prompts) and known and len(prompts) == len(replies) and set(replies) == {REPLY}


@dataclass
class Counts:
    """What the requests and the record contained, over all runs."""

    version: str
    runs: int
    memory: int = 0
    asking: int = 0
    evidence_when_asking: int = 0
    evidence_otherwise: int = 0
    memory_once_when_resumed: int = 0
    recorded: int = 0
    turns_recorded: int = 0
    messages_added_by_import: int = 0
    changed_files_after_uninstall: list[str] = field(default_factory=list)

    def is_complete(self) -> bool:
        return (
            (self.memory, self.recorded, self.turns_recorded) == (self.runs, self.runs, self.runs + 1)
            and (self.evidence_when_asking, self.evidence_otherwise) == (self.asking, 0)
            and self.memory_once_when_resumed == 1
            and self.messages_added_by_import == 0
            and not self.changed_files_after_uninstall
        )


def check(
    machine: PromptMachine,
    runs: int,
    ask: Callable[[str], Request],
    resume: Callable[[str], Request],
    files: tuple[str, ...],
) -> Counts:
    """Installs, runs the host, imports its sessions, uninstalls, and counts what was seen.

    `ask` starts a session with a prompt, `resume` continues the last one; both return the first request to the model.
    """
    machine.fill_home()
    counts = Counts(machine.version(), runs)
    paths = [machine.user / name for name in files]
    before = machine.read_files(*paths)
    machine.memoranda("install", machine.source, "--yes")
    for prompt in choose_prompts(runs):
        text = json.dumps(ask(prompt))
        counts.memory += NOTE in text
        if prompt == ASKING:
            counts.asking += 1
            counts.evidence_when_asking += ANSWER in text
        else:
            counts.evidence_otherwise += ANSWER in text or "memory-context" in text
    machine.wait_for_turns(runs)
    counts.memory_once_when_resumed = json.dumps(resume(OTHERS[runs])).count(NOTE)
    counts.recorded = machine.wait_for_turns(runs + 1)
    recorded = sum(map(len, machine.recorded_texts()))
    counts.turns_recorded = recorded // 2
    machine.memoranda("import", machine.source, "--yes")
    counts.messages_added_by_import = sum(map(len, machine.recorded_texts())) - recorded
    machine.memoranda("uninstall", machine.source, "--yes")
    counts.changed_files_after_uninstall = changed_files(before, machine.read_files(*paths))
    return counts
