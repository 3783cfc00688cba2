"""What the checks of Hermes and OpenClaw have in common: a scripted model, a Memoranda home, and what is counted."""

import json
import os
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import memoranda
from memoranda.llm.model import Reply, ToolCall
from memoranda.testing.scripted.server import ScriptedServer
from memoranda.testing.scripted.steps import ReceivedRequest

NOTE = "The build server runs Debian 12."
ANSWER = "Staging uses the heron cluster, on port 5433."
NEW_NOTE = "The release branch is cut on Thursdays."
REPLY = "Noted."
ASKING = "Which port did the heron cluster in staging have?"
SEARCH = "Please look up the heron cluster in your memory with the search tool."
SAVE = "Please save with your memory tool on which day the release branch is cut."
_EVERYDAY = Path(__file__).parent.parent / "everyday_prompts.txt"
# The longest come first: short ones never get evidence.
OTHERS = sorted(_EVERYDAY.read_text("utf-8").splitlines(), key=len, reverse=True)
CONVERSATIONS = [
    ("Rename the parser module", "Renamed it to reader.py and fixed the imports."),
    ("Add a spinner to the page", "Added a spinner that shows while the list loads."),
    ("Why does the build fail?", "The lock file was stale; I regenerated it."),
    ("Which database does staging use?", ANSWER),
]
CALLS = {
    SEARCH: ("memoranda_search", {"query": "heron cluster port"}),
    SAVE: ("memoranda_memory", {"target": "memory", "action": "add", "content": NEW_NOTE}),
}
_RECALL_MARK = "around_message_id"
_PROMPT = "UserPromptSubmit"
_TIMEOUT = 240.0


@dataclass
class Counts:
    """What was seen over all runs."""

    version: str = ""
    runs: int = 0
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

    def format(self) -> str:
        others = self.runs - self.asking
        lines = [
            f"{self.version}, {self.runs} first requests",
            f"memory in the system prompt    {self.memory_in_prompt} of {self.runs}",
            f"tools offered                  {self.tools_offered} of {self.runs}",
            f"recall when it is relevant     {self.recall_when_asking} of {self.asking}",
            f"recall otherwise               {self.recall_otherwise} of {others}",
            f"answers after the deadline     {self.late_answers} (a busy machine; the turn continues without recall)",
            f"tool calls answered            {self.tool_answers} of {self.tool_calls}",
            f"turns recorded                 {self.turns_recorded} of {self.turns}",
            f"recorded twice by an import    {self.turns_recorded_twice_by_import}",
            f"curated files changed          {', '.join(self.changed_curated_files) or 'none'}",
            f"files changed after uninstall  {', '.join(self.changed_files_after_uninstall) or 'none'}",
        ]
        return "\n".join(lines)


def scripted_model(received: ReceivedRequest) -> Reply:
    """Calls the tool that the last prompt asks for, and says a fixed sentence otherwise."""
    messages = received.json.get("messages") or []
    last = max((index for index, message in enumerate(messages) if _asks(message)), default=-1)
    if last >= 0 and not any(message.get("role") == "tool" for message in messages[last:]):
        prompt = next(prompt for prompt in CALLS if prompt in _text(messages[last]))
        name, arguments = CALLS[prompt]
        if name in tool_names(received):
            return Reply(tool_calls=(ToolCall("call_1", name, json.dumps(arguments)),), finish_reason="tool_calls")
        if "tool_call" in tool_names(received):
            wrapped = {"id": name, "args": arguments}
            return Reply(tool_calls=(ToolCall("call_1", "tool_call", json.dumps(wrapped)),), finish_reason="tool_calls")
    return Reply(REPLY)


def _asks(message: dict[str, Any]) -> bool:
    return message.get("role") == "user" and any(prompt in _text(message) for prompt in CALLS)


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def tool_names(received: ReceivedRequest) -> list[str]:
    return [tool.get("function", {}).get("name", "") for tool in received.json.get("tools") or ()]


class PluginMachine(ABC):
    """A user's home directory with one host in it, a home of Memoranda, and a working directory."""

    host: str
    title: str

    def __init__(self, root: Path, program: list[str], server: ScriptedServer) -> None:
        self.user_home, self.home, self._project = root / "user", root / "memory", root / "project"
        self.program, self.server = program, server
        for directory in (self.user_home, self._project):
            directory.mkdir(parents=True)
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "PYTHONPATH")}
        self.environment = {**kept, "HOME": str(self.user_home), **self.variables()}
        self.prepare()

    def variables(self) -> dict[str, str]:
        """Returns further variables of the environment."""
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

    def memoranda(self, *arguments: str) -> str:
        return self.run([sys.executable, "-P", "-m", "memoranda", *arguments, "--home", str(self.home)])

    def run(self, command: list[str]) -> str:
        done = subprocess.run(
            command, cwd=self._project, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=_TIMEOUT, check=False,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def requests(self, prompt: str) -> list[ReceivedRequest]:
        """Runs one turn; returns its requests to the model, without those for titles and the like."""
        start = len(self.server.received)
        self.ask(prompt)
        found = [received for received in self.server.received[start:] if tool_names(received)]
        if not found:
            raise SystemExit(f"{self.title} sent no request for {prompt!r}.")
        return found

    def recorded_turns(self) -> list[tuple[str, str]]:
        """Returns the prompt and the reply of every recorded turn of the host."""
        with memoranda.open(self.home) as memory:
            sessions = [row["id"] for row in memory.sessions.list_sessions_rich(source=self.host, limit=1000)]
            turns: list[tuple[str, str]] = []
            for session in sessions:
                texts = [
                    (row["role"], row["content"])
                    for row in memory.sessions.get_messages(session)
                    if row["role"] in ("user", "assistant") and row["content"]
                ]
                turns += list(_pairs(texts))
        return turns

    def wait_for_turns(self, count: int) -> int:
        """Returns how many turns are recorded; a separate process records them."""
        deadline = time.monotonic() + _TIMEOUT / 4
        while (found := len(self.recorded_turns())) < count and time.monotonic() < deadline:
            time.sleep(0.3)
        return found


def _pairs(texts: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for (role, prompt), (next_role, reply) in pairwise(texts):
        if (role, next_role, reply) == ("user", "assistant", REPLY):
            yield prompt, reply


def check(machine: PluginMachine, runs: int) -> Counts:
    """Installs, runs the host, uninstalls, and counts what was seen."""
    with memoranda.open(machine.home) as memory:
        memory.remember(NOTE)
        memory.sessions.create_session("earlier", "cli")
        for prompt, reply in CONVERSATIONS:
            memory.sessions.append_message("earlier", "user", prompt)
            memory.sessions.append_message("earlier", "assistant", reply)
    counts = Counts(machine.version(), runs)
    before, curated = machine.settings(), machine.curated_files()
    machine.memoranda("install", machine.host, "--yes")
    for number in range(runs):
        # No two other prompts are the same, because a recorded session is relevant to its own words.
        prompt = OTHERS[number] if number % 2 else ASKING
        _count_request(counts, machine.requests(prompt)[0], prompt)
    for prompt in CALLS:
        counts.tool_calls += 1
        results = [_text(message) for message in machine.requests(prompt)[-1].json["messages"]]
        counts.tool_answers += any(_is_answer(prompt, text) for text in results)
    counts.turns = runs + len(CALLS)
    calls = json.loads(machine.memoranda("hook", "status", "--limit", "1000", "--json"))["calls"]
    answered = [call for call in calls if call["event"] == _PROMPT and call["outcome"] in ("given", "nothing")]
    counts.late_answers = counts.turns - len(answered)
    counts.turns_recorded = machine.wait_for_turns(counts.turns)
    machine.memoranda("import", machine.host, "--yes")
    counts.turns_recorded_twice_by_import = len(machine.recorded_turns()) - counts.turns_recorded
    counts.changed_curated_files = _changed(curated, machine.curated_files())
    machine.memoranda("uninstall", machine.host, "--yes")
    counts.changed_files_after_uninstall = _changed(before, machine.settings())
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


def _changed(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def read_files(root: Path, *names: str) -> dict[str, bytes]:
    """Returns the files at these paths below a directory, those in directories included."""
    paths = [path for name in names for path in [root / name, *sorted((root / name).rglob("*"))]]
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else b"" for path in paths if path.exists()
    }
