"""OpenViking's server from PyPI, with the scripted model as its embedder and its extractor.

The order of turns is that of the files on the server's disk; its listing only knows seconds.
"""

import json
import re
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memoranda.external.vendors.openviking.client import OpenVikingUris
from memoranda.models.model import Reply
from memoranda.testing.scripted.rules import RuleModel
from memoranda.testing.scripted.steps import ReceivedRequest, Refuse
from tests.acceptance.vendors.machine import (
    accepts_connections,
    free_port,
    install_python_packages,
    start_model,
    start_process,
    stop_process,
    wait_for,
)
from tests.acceptance.vendors.real_vendor import CannotRun, RealVendor

_VERSION = "0.5.2"
_DIMENSIONS = 512
_START_SECONDS = 600.0
_SETTLE_SECONDS = 600.0
_MEMORY = "The build server is called Hephaistos."
_PEERS = re.compile(r"Available peer_id values in this session: (\S+)")
_by_rules = RuleModel()


def answer(received: ReceivedRequest) -> Reply | Refuse:
    """The scripted model: a preference in OpenViking's own language when it extracts, else by rules."""
    system = received.conversation[0]
    if "restricted Python memory SDK" not in system:
        return _by_rules(received)
    peer = _PEERS.search(system)
    who = f'peer_id="{peer[1]}", ' if peer else ""
    content = '"""- Prefers tabs over spaces."""'
    return Reply(f'sdk.create_preferences({who}user="user", topic="indentation", content={content})\nsdk.commit()')


class OpenVikingServer(RealVendor):
    name = "openviking"
    title = "OpenViking, server"

    def __init__(self, cache: Path) -> None:
        super().__init__(cache)
        self._port = free_port()
        self._running: list[subprocess.Popen[bytes]] = []
        self._document = ""
        self._data = self.folder / "data" / str(time.time_ns())

    @property
    def port(self) -> int:
        return self._port

    @property
    def processes(self) -> Sequence[subprocess.Popen[bytes]]:
        return self._running[-1:]

    def install(self) -> None:
        self._python = install_python_packages(self.folder / "environment", [f"openviking=={_VERSION}"])

    def start(self) -> None:
        self._data.mkdir(parents=True)
        model, self._model = start_model(self._data, "--script", f"{__name__}:answer", "--dimensions", str(_DIMENSIONS))
        self._running.append(model)
        service = {"provider": "openai", "api_base": self._model, "api_key": "none"}
        settings = {
            "storage": {"workspace": str(self._data / "workspace")},
            "server": {"host": "127.0.0.1", "port": self._port, "auth_mode": "dev"},
            # The server takes the embedder's word for nothing: a wrong number gives every hit the score 0.5.
            "embedding": {"dense": {**service, "model": "scripted-embeddings", "dimension": _DIMENSIONS}},
            "vlm": {**service, "model": "scripted-model"},
            # The document of the scenario is on this machine.
            "allow_private_networks": True,
        }
        self._running.append(self._serve_document())
        configuration = self._data / "ov.conf"
        configuration.write_text(json.dumps(settings), "utf-8")
        program = self._python.parent / "openviking-server"
        server = start_process(
            [str(program), "--host", "127.0.0.1", "--port", str(self._port)],
            self._data / "server.log",
            {"OPENVIKING_CONFIG_FILE": str(configuration), "HOME": str(self._data)},
        )
        self._running.append(server)
        wait_for(lambda: accepts_connections(self._port), "openviking-server", _START_SECONDS, server)

    def _serve_document(self) -> subprocess.Popen[bytes]:
        folder, port = self._data / "web", free_port()
        folder.mkdir()
        (folder / "handbook.md").write_text("# Handbook\n\nThe handbook is about herons.\n", "utf-8")
        command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(folder)]
        process = start_process(command, self._data / "web.log")
        wait_for(lambda: accepts_connections(port), "the server of the document", 60, process)
        self._document = f"http://127.0.0.1:{port}/handbook.md"
        return process

    def stop(self) -> None:
        while self._running:
            stop_process(self._running.pop())

    def settings(self, url: str) -> Mapping[str, Any]:
        return {"endpoint": url}

    def stored_texts(self) -> list[str]:
        """Every file below the memories of the server's user, as the server reads it."""
        listing = self._get("/api/v1/fs/tree", uri="viking://user/default/memories", node_limit="100000")
        uris = [entry["uri"] for entry in listing if not entry["isDir"]]
        files = {uri: self._file(uri).stat().st_mtime_ns for uri in uris if self._file(uri).exists()}
        if len(files) < len(uris):
            raise CannotRun(f"{len(uris) - len(files)} files of the server were not found on its disk")
        return [str(self._get("/api/v1/content/read", uri=uri)) for uri in sorted(files, key=lambda uri: files[uri])]

    def tool_calls(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        memory = OpenVikingUris("default").memory("entity", _MEMORY)
        return [
            ("viking_remember", {"content": _MEMORY, "category": "entity"}),
            ("viking_read", {"uri": memory}),
            ("viking_browse", {"action": "tree"}),
            ("viking_search", {"query": "staging cluster"}),
            ("viking_search", {"query": "staging cluster", "mode": "deep"}),
            ("viking_add_resource", {"url": self._document, "wait": True, "reason": "A document."}),
            ("viking_forget", {"uri": memory}),
        ]

    def settle(self) -> None:
        """Wait until the server has indexed what it accepted; raises CannotRun if an extraction failed."""
        deadline = time.monotonic() + _SETTLE_SECONDS
        while any(task["status"] in ("pending", "running") for task in self._tasks()):
            if time.monotonic() > deadline:
                raise CannotRun(f"the server still works after {_SETTLE_SECONDS:g} s")
            time.sleep(0.5)
        failed = [task["error"] for task in self._tasks() if task["status"] == "failed"]
        if failed:
            raise CannotRun(f"{len(failed)} tasks of the server failed: {failed[0]}")

    def _tasks(self) -> list[dict[str, Any]]:
        found = self._get("/api/v1/tasks", limit="100")
        return [task for task in found if isinstance(task, dict)]

    def _file(self, uri: str) -> Path:
        return self._data / "workspace" / "viking" / "default" / uri.removeprefix("viking://")

    def _get(self, path: str, **query: str) -> Any:
        url = f"http://127.0.0.1:{self._port}{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=60) as response:
            return json.load(response)["result"]


VENDORS = [OpenVikingServer]
