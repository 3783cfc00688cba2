"""RetainDB's local program, which needs no model, no key and no database.

Its source is cloned from GitHub, because no package is published; Node.js runs it. Where GitHub cannot be reached, put
the repository into the folder `source` of this vendor's cache. Its server is not run here: it needs engines of Prisma
that only Prisma's own address offers.
"""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.acceptance.vendors.machine import accepts_connections, free_port, run, start_process, stop_process, wait_for
from tests.acceptance.vendors.real_vendor import CannotRun, RealVendor

SOURCE = "https://github.com/RetainDB/RetainDB"
COMMIT = "2ad2cc4d6d58145eca1a6cbbce66dfc5b5380f38"


class RetainDBLocal(RealVendor):
    """The program, as a process of this machine."""

    name = "retaindb"
    title = "RetainDB, local program"

    def __init__(self, cache: Path) -> None:
        super().__init__(cache)
        self._source = self.folder / "source"
        self._program = self._source / "packages" / "local"
        self._data: Path | None = None
        self._server: subprocess.Popen[bytes] | None = None
        self._port = 0

    def install(self) -> None:
        npm = shutil.which("npm")
        if npm is None:
            raise CannotRun("npm is not installed")
        if not (self._program / "package.json").is_file():
            run(["git", "clone", "--quiet", "--filter=blob:none", SOURCE, str(self._source)])
            run(["git", "-C", str(self._source), "checkout", "--quiet", COMMIT])
        if not (self._program / "node_modules" / ".bin" / "tsx").exists():
            options = ["--omit=optional", "--legacy-peer-deps", "--no-audit", "--no-fund", "--silent"]
            run([npm, "install", *options], cwd=self._program)

    def start(self) -> None:
        self._data = Path(tempfile.mkdtemp(prefix="memoranda-retaindb-"))
        self._port = free_port()
        environment = {"RETAINDB_HOME": str(self._data), "RETAINDB_PORT": str(self._port)}
        command = [str(self._program / "node_modules" / ".bin" / "tsx"), "src/cli.ts"]
        log = self.folder / "server.log"
        self._server = start_process(command, log, environment, cwd=self._program)
        wait_for(lambda: accepts_connections(self._port), "RetainDB's local program", 120, self._server)

    def stop(self) -> None:
        if self._server is not None:
            stop_process(self._server)
            self._server = None
        if self._data is not None:
            shutil.rmtree(self._data, ignore_errors=True)

    @property
    def port(self) -> int:
        return self._port

    @property
    def processes(self) -> Sequence[subprocess.Popen[bytes]]:
        return [self._server] if self._server is not None else []

    def settings(self, url: str) -> Mapping[str, Any]:
        return {"base_url": url}

    def stored_texts(self) -> Sequence[str]:
        return [memory["content"] for memory in self._memories()]

    def tool_calls(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        return (
            ("retaindb_profile", {}),
            ("retaindb_search", {"query": "Which bicycle do I ride?", "top_k": 3}),
            ("retaindb_context", {"query": "Which bicycle do I ride?"}),
            ("retaindb_remember", {"content": "The bicycle of the user has three gears.", "memory_type": "factual"}),
            ("retaindb_forget", {"memory_id": self._memories()[0]["id"]}),
        )

    def _memories(self) -> list[dict[str, Any]]:
        """What the program has in its file, in its order; its lists show two hundred memories at most."""
        assert self._data is not None
        stored = json.loads((self._data / "local-store.json").read_text("utf-8"))["memories"]
        return [memory for memory in stored if memory["active"] and memory["user_id"] == "default"]


VENDORS = (RetainDBLocal,)
