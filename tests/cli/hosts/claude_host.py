"""A host that behaves like Claude Code: it writes a transcript, and calls the hooks in its settings with its payloads.

The payloads and the lines of the transcript have the form that version 2.1 of the program gives them.
"""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from memoranda.integrations.hooks.events import ANSWERED_EVENTS
from tests.timing import GIVE_UP

_SPACE = UUID(int=7)


@dataclass
class ClaudeHost:
    """One session of the host, at work in a directory."""

    person: Path
    directory: Path
    session_id: str
    environment: dict[str, str]

    @property
    def transcript(self) -> Path:
        folder = str(self.directory).replace("/", "-").replace(".", "-")
        return self.person / ".claude" / "projects" / folder / f"{self.session_id}.jsonl"

    def call(self, event: str, **fields: Any) -> str:
        """Run the hooks of an event as the host does; the text that they give its model."""
        payload = {
            "session_id": self.session_id,
            "transcript_path": str(self.transcript),
            "cwd": str(self.directory),
            "hook_event_name": event,
            **fields,
        }
        settings = json.loads((self.person / ".claude" / "settings.json").read_text())
        given = []
        for group in settings["hooks"].get(event, []):
            for hook in group["hooks"]:
                # Without the deadline of a hook, so that the answer does not depend on how busy the machine is.
                wait = " --wait" if event in ANSWERED_EVENTS else ""
                given.append(self._run(hook["command"] + wait, json.dumps(payload)))
        return "\n".join(filter(None, given))

    def _run(self, command: str, payload: str) -> str:
        done = subprocess.run(
            command, shell=True, input=payload, capture_output=True, text=True, cwd=self.directory,
            env=self.environment, check=False, timeout=GIVE_UP,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        if not done.stdout.strip():
            return ""
        answer = json.loads(done.stdout)["hookSpecificOutput"]
        assert answer.keys() == {"hookEventName", "additionalContext"}
        return str(answer["additionalContext"])

    def start(self, source: str = "startup") -> str:
        return self.call("SessionStart", source=source)

    def turn(self, prompt: str, reply: str) -> str:
        """A prompt, its evidence, the answer in the transcript, and the end of the turn."""
        given = self.call("UserPromptSubmit", prompt=prompt, permission_mode="default", prompt_id="p")
        self.write("user", prompt)
        if given:
            self._line({"type": "attachment", "attachment": {
                "type": "hook_additional_context", "content": [given], "hookEvent": "UserPromptSubmit"}})  # fmt: skip
        self.write("assistant", [{"type": "text", "text": reply}])
        self.call("Stop", stop_hook_active=False, last_assistant_message=reply, permission_mode="default")
        return given

    def write(self, role: str, content: Any) -> None:
        message: dict[str, Any] = {"role": role, "content": content}
        if role == "assistant":
            message |= {"model": "claude-opus-4-8", "type": "message", "stop_reason": "end_turn"}
        self._line({"type": role, "message": message})

    def _line(self, entry: dict[str, Any]) -> None:
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        with self.transcript.open("a") as stream:
            number = stream.tell()
            whole = {
                "parentUuid": None, "isSidechain": False, "userType": "external", "cwd": str(self.directory),
                "sessionId": self.session_id, "version": "2.1.197", "gitBranch": "", **entry,
                "uuid": str(uuid5(_SPACE, f"{self.session_id} {number}")), "timestamp": "2026-11-15T09:32:25.000Z",
            }  # fmt: skip
            stream.write(json.dumps(whole) + "\n")
