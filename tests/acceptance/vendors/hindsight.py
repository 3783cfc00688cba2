"""Hindsight's server from PyPI, with the PostgreSQL that it brings along."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

from tests.acceptance.vendors.machine import (
    free_port,
    install_python_packages,
    start_model,
    start_process,
    stop_process,
    wait_for,
)
from tests.acceptance.vendors.real_vendor import CannotRun, RealVendor

PACKAGE = "hindsight-api-slim[embedded-db]==1.1.0"
_BANK = "memoranda-default"
_START_SECONDS = 300.0
_SETTLE_SECONDS = 3_600.0
_STOP_SECONDS = 20.0
_PAGE = 100
# The account that owns no files; Linux has it everywhere.
_UNPRIVILEGED_USER = 65_534
_SYSTEM_PYTHONS = ("/usr/bin/python3", "/usr/local/bin/python3")


class Hindsight(RealVendor):
    """The server as a process of a user who is not root, because PostgreSQL refuses root."""

    name = "hindsight"
    title = "Hindsight, server"

    def __init__(self, cache: Path) -> None:
        super().__init__(cache)
        self._port = free_port()
        self._server: subprocess.Popen[bytes] | None = None
        self._model: subprocess.Popen[bytes] | None = None
        self._user = _UNPRIVILEGED_USER if os.geteuid() == 0 else None

    def install(self) -> None:
        install_python_packages(self.folder / "python", [PACKAGE], self._find_python())

    def start(self) -> None:
        home = self._data
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        if self._user is not None:
            os.chown(home, self._user, -1)
        self._model, model_url = start_model(self.folder)
        command = [self.folder / "python" / "bin" / "hindsight-api", "--host", "127.0.0.1", "--port", str(self._port)]
        self._server = start_process(
            [str(part) for part in command],
            self.folder / "server.log",
            {"HOME": str(home), **_environment(model_url)},
            cwd=home,
            user=self._user,
        )
        wait_for(self._answers, "hindsight-api", _START_SECONDS, self._server)

    def stop(self) -> None:
        for process in self.processes:
            stop_process(process)
        self._server = self._model = None
        self._stop_database()
        shutil.rmtree(self._data, ignore_errors=True)

    def _stop_database(self) -> None:
        """Stop PostgreSQL, which outlives a server that had to be killed; its pid is the first line of its file."""
        for pid_file in self._data.glob(".pg0/instances/*/data/postmaster.pid"):
            pid = int(pid_file.read_text("utf-8").splitlines()[0])
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
            deadline = time.monotonic() + _STOP_SECONDS
            while pid_file.exists() and time.monotonic() < deadline:
                time.sleep(0.1)

    @property
    def _data(self) -> Path:
        """The home of the server's user, with PostgreSQL's data; each run begins with an empty one."""
        return self.folder / "home"

    @property
    def port(self) -> int:
        return self._port

    @property
    def processes(self) -> Sequence[subprocess.Popen[bytes]]:
        return [process for process in (self._server, self._model) if process is not None]

    def settings(self, url: str) -> Mapping[str, Any]:
        return {"mode": "local_external", "api_url": url}

    def tool_calls(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        question = {"query": "What is the zebra in the zoo called?"}
        return (
            ("hindsight_recall", question),
            ("hindsight_reflect", question),
            ("hindsight_retain", {"content": "The giraffe in the zoo is called Anna.", "tags": ["zoo"]}),
        )

    def settle(self) -> None:
        """Wait until the server has extracted facts; it consolidates them later, whenever it has time."""
        deadline = time.monotonic() + _SETTLE_SECONDS
        while any(self._count_operations(status) for status in ("pending", "processing")):
            if time.monotonic() > deadline:
                raise CannotRun(f"the server has not processed what it accepted within {_SETTLE_SECONDS:g} s")
            time.sleep(1)

    def stored_texts(self) -> Sequence[str]:
        """The documents in the order of the times that they carry."""
        documents = sorted(self._documents(), key=lambda document: str(document["retain_params"].get("event_date")))
        return [self._get(f"documents/{quote(str(document['id']))}")["original_text"] for document in documents]

    def _documents(self) -> Iterator[dict[str, Any]]:
        offset = 0
        while page := self._get(f"documents?limit={_PAGE}&offset={offset}").get("items"):
            yield from page
            offset += _PAGE

    def _count_operations(self, status: str) -> int:
        return int(self._get(f"operations?limit=1&type=retain&status={status}").get("total") or 0)

    def _get(self, path: str) -> dict[str, Any]:
        """The server's answer about the bank; an empty one if the bank does not exist."""
        try:
            with urlopen(f"http://127.0.0.1:{self._port}/v1/default/banks/{_BANK}/{path}", timeout=60) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except URLError as error:
            if getattr(error, "code", None) == 404:
                return {}
            raise

    def _answers(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self._port}/health", timeout=2) as answer:
                return bool(json.load(answer)["status"] == "healthy")
        except (OSError, ValueError):
            return False

    def _find_python(self) -> str:
        """A Python that the server's user can run: the one that runs this, if its folder may be read."""
        if self._user is None:
            return sys.executable
        if not _others_may_enter(self.folder):
            raise CannotRun(
                f"PostgreSQL refuses root, and no other user may enter {self.folder}: choose another --cache"
            )
        for python in (str(Path(sys.executable).resolve()), *_SYSTEM_PYTHONS):
            if Path(python).exists() and _others_may_enter(Path(python).resolve()):
                return python
        raise CannotRun("PostgreSQL refuses root, and no Python is readable for another user")


def _others_may_enter(path: Path) -> bool:
    return all(part.stat().st_mode & 0o001 for part in (path, *path.parents))


def _environment(model_url: str) -> dict[str, str]:
    return {
        "HINDSIGHT_API_LLM_PROVIDER": "openai",
        "HINDSIGHT_API_LLM_BASE_URL": model_url,
        "HINDSIGHT_API_LLM_API_KEY": "none",
        "HINDSIGHT_API_LLM_MODEL": "scripted-model",
        "HINDSIGHT_API_EMBEDDINGS_PROVIDER": "openai",
        "HINDSIGHT_API_EMBEDDINGS_OPENAI_BASE_URL": model_url,
        "HINDSIGHT_API_EMBEDDINGS_OPENAI_API_KEY": "none",
        "HINDSIGHT_API_EMBEDDINGS_OPENAI_MODEL": "text-embedding-3-small",
        "HINDSIGHT_API_RERANKER_PROVIDER": "rrf",
    }


VENDORS = (Hindsight,)
