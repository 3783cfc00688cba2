"""What the checks of Hermes and OpenClaw share: a scripted model, a machine, and what is counted."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from memoranda.models.model import Reply, ToolCall
from memoranda.testing.scripted.server import ScriptedServer
from memoranda.testing.scripted.steps import ReceivedRequest
from tests.acceptance.hosts.machine import (
    ANSWER,
    ASKING,
    NOTE,
    TIMEOUT,
    Machine,
    changed_files,
    choose_prompts,
    wait_for_count,
)
from tests.acceptance.hosts.model_servers import REPLY

NEW_NOTE = "The release branch is cut on Thursdays."
SEARCH = "Please look up the heron cluster in your memory with the search tool."
SAVE = "Please save with your memory tool on which day the release branch is cut."
CALLS = {
    SEARCH: ("memoranda_search", {"query": "heron cluster port"}),
    SAVE: ("memoranda_memory", {"target": "memory", "action": "add", "content": NEW_NOTE}),
}
_RECALL_MARK = "around_message_id"
_PROMPT = "UserPromptSubmit"


@dataclass
class Counts:
    """What the requests and the record contained, over all runs."""

    version: str
    runs: int
    memory_in_prompt: int = 0
    tools_offered: int = 0
    asking: int = 0
    recall_when_asking: int = 0
    recall_otherwise: int = 0
    late_answers: int = 0
    tool_calls: int = 0
    tool_answers: int = 0
    turns: int = 0
    turns_recorded: int = 0
    turns_recorded_twice_by_import: int = 0
    changed_curated_files: list[str] = field(default_factory=list)
    changed_files_after_uninstall: list[str] = field(default_factory=list)

    def is_complete(self) -> bool:
        return (
            self.memory_in_prompt == self.tools_offered == self.runs
            and (self.recall_when_asking, self.recall_otherwise) == (self.asking, 0)
            and self.tool_answers == self.tool_calls > 0
            and self.turns_recorded == self.turns
            and not self.turns_recorded_twice_by_import
            and not self.changed_curated_files
            and not self.changed_files_after_uninstall
        )


def scripted_model(received: ReceivedRequest) -> Reply:
    """Calls the tool that the last prompt asks for, and says a fixed sentence otherwise."""
    messages = received.json.get("messages") or []
    last = max((index for index, message in enumerate(messages) if _asks_for_tool(message)), default=-1)
    if last >= 0 and not any(message.get("role") == "tool" for message in messages[last:]):
        prompt = next(prompt for prompt in CALLS if prompt in _text(messages[last]))
        name, arguments = CALLS[prompt]
        if name in tool_names(received):
            return Reply(tool_calls=(ToolCall("call_1", name, json.dumps(arguments)),), finish_reason="tool_calls")
        if "tool_call" in tool_names(received):
            wrapped = {"id": name, "args": arguments}
            return Reply(tool_calls=(ToolCall("call_1", "tool_call", json.dumps(wrapped)),), finish_reason="tool_calls")
    return Reply(REPLY)


def _asks_for_tool(message: dict[str, Any]) -> bool:
    return message.get("role") == "user" and any(prompt in _text(message) for prompt in CALLS)


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def tool_names(received: ReceivedRequest) -> list[str]:
    return [tool.get("function", {}).get("name", "") for tool in received.json.get("tools") or ()]


class PluginMachine(Machine, ABC):
    """A machine with a host that runs our plugin and calls the scripted server."""

    timeout = 2 * TIMEOUT
    host: str
    title: str

    def __init__(self, root: Path, program: list[str], server: ScriptedServer) -> None:
        self.program, self.server = program, server
        super().__init__(root, self.variables())
        self.prepare()

    def variables(self) -> dict[str, str]:
        """Returns the environment variables that the host needs."""
        return {}

    @abstractmethod
    def prepare(self) -> None:
        """Writes the host's settings and curated files."""

    @abstractmethod
    def ask(self, prompt: str) -> None:
        """Runs one turn in a new session."""

    @abstractmethod
    def version(self) -> str:
        """Returns the name and version of the host."""

    @abstractmethod
    def settings(self) -> dict[str, bytes]:
        """Returns every settings and plugin file of the host."""

    @abstractmethod
    def curated_files(self) -> dict[str, bytes]:
        """Returns the host's own memory files."""

    def run_turn(self, prompt: str) -> list[ReceivedRequest]:
        """Runs one turn; returns its requests to the model, without those for titles and the like."""
        start = len(self.server.received)
        self.ask(prompt)
        found = [received for received in self.server.received[start:] if tool_names(received)]
        if not found:
            raise SystemExit(f"{self.title} sent no request for {prompt!r}.")
        return found

    def recorded_turns(self) -> list[tuple[str, str]]:
        """Returns the prompt and the reply of every recorded turn of the host."""
        return [turn for messages in self.recorded_messages(self.host) for turn in _complete_turns(messages)]


def _complete_turns(messages: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    spoken = [(role, text) for role, text in messages if role in ("user", "assistant") and text]
    for (role, prompt), (next_role, reply) in pairwise(spoken):
        if (role, next_role, reply) == ("user", "assistant", REPLY):
            yield prompt, reply


def check(machine: PluginMachine, runs: int) -> Counts:
    """Installs, runs the host, uninstalls, and counts what was seen."""
    machine.fill_home()
    counts = Counts(machine.version(), runs)
    before, curated = machine.settings(), machine.curated_files()
    machine.memoranda("install", machine.host, "--yes")
    for prompt in choose_prompts(runs):
        _count_request(counts, machine.run_turn(prompt)[0], prompt)
    for prompt in CALLS:
        counts.tool_calls += 1
        results = [_text(message) for message in machine.run_turn(prompt)[-1].json["messages"]]
        counts.tool_answers += any(_is_answer(prompt, text) for text in results)
    counts.turns = runs + len(CALLS)
    calls = json.loads(machine.memoranda("hook", "status", "--limit", "1000", "--json"))["calls"]
    answered = [call for call in calls if call["event"] == _PROMPT and call["outcome"] in ("given", "nothing")]
    counts.late_answers = counts.turns - len(answered)
    counts.turns_recorded = wait_for_count(lambda: len(machine.recorded_turns()), counts.turns)
    machine.memoranda("import", machine.host, "--yes")
    counts.turns_recorded_twice_by_import = len(machine.recorded_turns()) - counts.turns_recorded
    counts.changed_curated_files = changed_files(curated, machine.curated_files())
    machine.memoranda("uninstall", machine.host, "--yes")
    counts.changed_files_after_uninstall = changed_files(before, machine.settings())
    return counts


def _count_request(counts: Counts, request: ReceivedRequest, prompt: str) -> None:
    messages = request.json["messages"]
    system = "\n".join(_text(message) for message in messages if message["role"] in ("system", "developer"))
    said = "\n".join(_text(message) for message in messages if message["role"] == "user")
    counts.memory_in_prompt += NOTE in system
    counts.tools_offered += all(name in request.text for name, _ in CALLS.values())
    if prompt == ASKING:
        counts.asking += 1
        counts.recall_when_asking += ANSWER in said
    else:
        counts.recall_otherwise += _RECALL_MARK in said


def _is_answer(prompt: str, text: str) -> bool:
    """Whether a message is the result of the tool that the prompt asked for."""
    return ANSWER in text if prompt == SEARCH else NEW_NOTE in text and "Saved" in text
