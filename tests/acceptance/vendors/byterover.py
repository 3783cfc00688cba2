"""ByteRover's program `brv` from npm, with a scripted model that calls its tool to store something.

`brv` contacts its vendor's servers when its daemon starts; here six variables lead it to the scripted model instead, so
nothing leaves the machine. Turns are files of its tree, so the outage is a tree that cannot be written.
"""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memoranda.models.model import Reply, ToolCall
from memoranda.testing.scripted.rules import RuleModel
from memoranda.testing.scripted.steps import ReceivedRequest, Refuse
from tests.acceptance.vendors.machine import run, start_model, stop_process, wait_for
from tests.acceptance.vendors.real_vendor import CannotRun, RealVendor

_VERSION = "3.14.0"
_START_SECONDS = 300.0
_URLS = ("IAM_BASE_URL", "COGIT_BASE_URL", "LLM_BASE_URL", "BILLING_BASE_URL", "WEB_APP_URL", "GIT_REMOTE_BASE_URL")
_STORED = {
    "type": "UPSERT",
    "path": "facts/notes",
    "title": "queues",
    "content": {"snippets": ["The deadlock was fixed with a second queue."]},
    "reason": "It was said.",
    "summary": "The deadlock was fixed with a second queue.",
    "confidence": "high",
    "impact": "low",
}
_by_rules = RuleModel()


def answer(received: ReceivedRequest) -> Reply | Refuse:
    """The scripted model: stores one fact with the tool of `brv curate`, else by rules."""
    system, messages, tools = received.conversation
    curates = "tools.curate(" in system and any(tool.name == "code_exec" for tool in tools)
    if not curates or any(message.get("role") == "tool" for message in messages):
        return _by_rules(received)
    code = f"(async () => {{ return await tools.curate([{json.dumps(_STORED)}]) }})()"
    call = ToolCall(f"call_{received.number}", "code_exec", json.dumps({"code": code}))
    return Reply("", (call,), finish_reason="tool_calls")


class ByteRoverProgram(RealVendor):
    name = "byterover"
    title = "ByteRover, program"

    def __init__(self, cache: Path) -> None:
        super().__init__(cache)
        self._data = self.folder / "data" / str(time.time_ns())
        self._model: subprocess.Popen[bytes] | None = None
        self._before: dict[str, str | None] = {}
        self._project = self._data

    def install(self) -> None:
        npm = shutil.which("npm")
        if npm is None:
            raise CannotRun("npm is not installed")
        if not self._program.exists():
            packages = str(self.folder / "packages")
            run([npm, "install", "--no-audit", "--no-fund", "--prefix", packages, f"byterover-cli@{_VERSION}"])

    def start(self) -> None:
        """Connect the model; the first command starts the daemon."""
        self._data.mkdir(parents=True)
        self._model, address = start_model(self._data, "--script", f"{__name__}:answer")
        # They must have no path; every answer will do, also 404.
        variables = {f"BRV_{name}": address.removesuffix("/v1") for name in _URLS} | {
            "HOME": str(self._data),
            "BRV_DATA_DIR": str(self._data / "brv"),
            "BRV_DISABLE_AUTOUPDATE": "1",
            "NO_UPDATE_NOTIFIER": "1",
        }
        # The provider inherits the environment of this process.
        self._before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        model = ["--base-url", address, "--api-key", "none", "-m", "scripted-model"]
        # Only some commands start the daemon, and none waits long enough for it on a busy machine.
        wait_for(lambda: self._succeeds("status"), "the daemon of brv", _START_SECONDS, None)
        connect = ("providers", "connect", "openai-compatible", *model)
        wait_for(lambda: self._succeeds(*connect), "the model of brv", _START_SECONDS, None)

    def _succeeds(self, *arguments: str) -> bool:
        printed = run([str(self._program), *arguments, "--format", "json"], cwd=self._data)
        return '"success":true' in printed.replace(" ", "")

    def stop(self) -> None:
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._before = {}
        self._stop_daemon()
        if self._model is not None:
            stop_process(self._model)
            self._model = None

    def settings(self, url: str) -> Mapping[str, Any]:
        """The settings of a new home, with a project of its own.

        Extraction at the end of a session is off: it takes longer than the end, and is completed by the next session,
        which the scenario does not have. The tool brv_curate runs the same command.
        """
        self._project = self._data / f"project-{time.time_ns()}"
        return {"program": str(self._program), "project": str(self._project), "auto_extract": False}

    def stored_texts(self) -> list[str]:
        """The files of the tree that was used last, in the order in which they were written."""
        files = [file for file in self._tree.rglob("*.md") if not file.name.endswith((".abstract.md", ".overview.md"))]
        return [file.read_text("utf-8") for file in sorted(files, key=lambda file: file.stat().st_mtime_ns)]

    def tool_calls(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        return [
            ("brv_status", {}),
            ("brv_curate", {"content": "The deadlock was fixed with a second queue."}),
            ("brv_query", {"query": "How was the deadlock fixed?"}),
        ]

    def begin_outage(self) -> None:
        self._tree.rename(self._tree.with_name("moved"))
        self._tree.write_text("", "utf-8")

    def end_outage(self) -> None:
        self._tree.unlink()
        self._tree.with_name("moved").rename(self._tree)

    @property
    def _program(self) -> Path:
        return self.folder / "packages" / "node_modules" / ".bin" / "brv"

    @property
    def _tree(self) -> Path:
        return self._project / ".brv" / "context-tree"

    def _stop_daemon(self) -> None:
        """Stop the daemon that the first command has started; it would stay for half an hour."""
        try:
            daemon = json.loads((self._data / "brv" / "daemon.json").read_text("utf-8"))["pid"]
            os.kill(int(daemon), signal.SIGTERM)
        except (OSError, ValueError, KeyError):
            # It has not started, or has ended.
            return


VENDORS = [ByteRoverProgram]
