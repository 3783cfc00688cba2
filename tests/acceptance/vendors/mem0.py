"""Mem0's library in this process, and its server on PostgreSQL, with the scripted model.

The server is cloned from GitHub, because no package is published. Where GitHub cannot be reached, put the repository
into the folder `source` of this vendor's cache. A library has no server that could go down: its outage is that of the
model and the embedder behind it.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tests.acceptance.vendors.embedded_postgres import PACKAGE, EmbeddedPostgres
from tests.acceptance.vendors.machine import (
    accepts_connections,
    free_port,
    install_python_packages,
    run,
    start_process,
    stop_process,
    wait_for,
)
from tests.acceptance.vendors.real_vendor import RealVendor

SOURCE = "https://github.com/mem0ai/mem0"
COMMIT = "8d5b7865bd0521e75fe9ab1b260eeccc83f8a378"
_LIBRARY = ("mem0ai==2.2.1", "qdrant-client==1.20.0")
_KEY = "memoranda-vendors-key"
# Rows in the order in which they were written, by the history that Mem0 keeps beside both of its stores.
_READ = """
import json, pickle, sqlite3, sys
kind, store, *histories = sys.argv[1:]
if kind == "qdrant":
    rows = sqlite3.connect(f"file:{store}?mode=ro", uri=True).execute("SELECT point FROM points ORDER BY rowid")
    points = [pickle.loads(row[0]) for row in rows]
    found = [(str(point.id), point.payload["data"]) for point in points]
else:
    import psycopg
    rows = psycopg.connect(store).execute("SELECT id::text, payload->>'data' FROM memories").fetchall()
    history = sqlite3.connect(f"file:{histories[0]}?mode=ro", uri=True)
    order = [row[0] for row in history.execute("SELECT memory_id FROM history WHERE event = 'ADD' ORDER BY rowid")]
    place = {memory: number for number, memory in enumerate(order)}
    found = sorted(rows, key=lambda row: place[row[0]])
print(json.dumps(found))
"""


class _Mem0(RealVendor):
    """What both ways share: the scripted model, which an outage stops and starts again."""

    name = "mem0"
    infer: ClassVar[bool] = True

    def __init__(self, cache: Path) -> None:
        super().__init__(cache)
        self._environment = self.folder / "environment"
        self._python = self._environment / "bin" / "python"
        self._data: Path | None = None
        self._model: subprocess.Popen[bytes] | None = None
        self._model_port = free_port()

    @property
    def model_url(self) -> str:
        return f"http://127.0.0.1:{self._model_port}/v1"

    def start_model(self) -> None:
        command = [sys.executable, "-m", "memoranda.testing.scripted", "--port", str(self._model_port)]
        self._model = start_process(command, self.folder / "model.log")
        wait_for(lambda: accepts_connections(self._model_port), "the scripted model", 60, self._model)

    def stop_model(self) -> None:
        if self._model is not None:
            stop_process(self._model)
            self._model = None

    def stop(self) -> None:
        self.stop_model()
        if self._data is not None:
            shutil.rmtree(self._data, ignore_errors=True)

    def memories(self) -> list[tuple[str, str]]:
        """Ids and texts, as the store has them, in the order in which they were written."""
        raise NotImplementedError

    def stored_texts(self) -> Sequence[str]:
        return [text for _, text in self.memories()]

    def tool_calls(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        memory = self.memories()[0][0]
        return (
            ("mem0_profile", {}),
            ("mem0_search", {"query": "Which bicycle do I ride?", "top_k": 3}),
            ("mem0_conclude", {"conclusion": "The user rides a bicycle."}),
            ("mem0_add", {"content": "The bicycle has three gears."}),
            ("mem0_update", {"memory_id": memory, "text": "My bicycle is a red Brompton."}),
            ("mem0_delete", {"memory_id": memory}),
        )

    def make_data_folder(self) -> Path:
        self._data = Path(tempfile.mkdtemp(prefix="memoranda-mem0-"))
        return self._data

    def read(self, *arguments: str) -> list[tuple[str, str]]:
        rows = json.loads(run([str(self._python), "-c", _READ, *arguments]))
        return [(memory, text) for memory, text in rows]


class Mem0Library(_Mem0):
    """The library in the process of the provider."""

    title = "Mem0, library"
    folder_name = "mem0-library"

    def install(self) -> None:
        install_python_packages(self._environment, _LIBRARY)

    def start(self) -> None:
        self._store = self.make_data_folder() / "qdrant"
        self.start_model()
        # What the first session pays in the background.
        environment = {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(self._store.parent)}
        run([str(self._python), "-c", "import mem0, qdrant_client"], environment=environment)
        packages = str(next(self._environment.glob("lib/python*/site-packages")))
        if packages not in sys.path:
            sys.path.append(packages)

    def settings(self, url: str) -> Mapping[str, Any]:
        models = {"oss_llm_url": self.model_url, "oss_embedder_url": self.model_url}
        return {"deployment": "oss", "oss_vector_path": str(self._store), "infer": self.infer, **models}

    def variables(self) -> Mapping[str, str]:
        return {"OPENAI_API_KEY": "none"}

    def memories(self) -> list[tuple[str, str]]:
        file = self._store / "collection" / "memoranda" / "storage.sqlite"
        return self.read("qdrant", str(file)) if file.is_file() else []

    def begin_outage(self) -> None:
        self.stop_model()

    def end_outage(self) -> None:
        self.start_model()


class Mem0Server(_Mem0):
    """The server, as a process of this machine."""

    title = "Mem0, server"
    folder_name = "mem0-server"

    def __init__(self, cache: Path) -> None:
        super().__init__(cache)
        self._source = self.folder / "source"
        self._postgres = EmbeddedPostgres(self._environment, "mem0", self.folder / "postgresql.log")
        self._server: subprocess.Popen[bytes] | None = None
        self._port = 0

    def install(self) -> None:
        if not (self._source / "server" / "main.py").is_file():
            run(["git", "clone", "--quiet", "--filter=blob:none", SOURCE, str(self._source)])
            run(["git", "-C", str(self._source), "checkout", "--quiet", COMMIT])
        requirements = ["-r", str(self._source / "server" / "requirements.txt")]
        install_python_packages(self._environment, [*requirements, _LIBRARY[0], "psycopg[binary]", PACKAGE])

    def start(self) -> None:
        data = self.make_data_folder()
        self._postgres.start()
        self.start_model()
        self._port = free_port()
        environment = {
            "POSTGRES_HOST": "127.0.0.1",
            "POSTGRES_PORT": str(self._postgres.port),
            **dict.fromkeys(("POSTGRES_USER", "POSTGRES_PASSWORD", "POSTGRES_DB", "APP_DB_NAME"), "mem0"),
            "HISTORY_DB_PATH": str(data / "history.db"),
            "MEM0_DIR": str(data),
            "MEM0_TELEMETRY": "false",
            "ADMIN_API_KEY": _KEY,
            "JWT_SECRET": _KEY,
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": self.model_url,
        }
        folder, programs = self._source / "server", self._python.parent
        run([str(programs / "alembic"), "upgrade", "head"], cwd=folder, environment=environment)
        command = [str(programs / "uvicorn"), "main:app", "--host", "127.0.0.1", "--port", str(self._port)]
        self._server = start_process(command, self.folder / "server.log", environment, cwd=folder)
        wait_for(lambda: accepts_connections(self._port), "Mem0's server", 120, self._server)

    def stop(self) -> None:
        if self._server is not None:
            stop_process(self._server)
            self._server = None
        self._postgres.stop()
        super().stop()

    @property
    def port(self) -> int:
        return self._port

    @property
    def processes(self) -> Sequence[subprocess.Popen[bytes]]:
        return [self._server] if self._server is not None else []

    def settings(self, url: str) -> Mapping[str, Any]:
        return {"deployment": "server", "host": url, "infer": self.infer}

    def variables(self) -> Mapping[str, str]:
        return {"MEM0_API_KEY": _KEY}

    def memories(self) -> list[tuple[str, str]]:
        assert self._data is not None
        database = f"postgresql://mem0:mem0@127.0.0.1:{self._postgres.port}/mem0"
        return self.read("pgvector", database, str(self._data / "history.db"))


class Mem0LibraryWordForWord(Mem0Library):
    """The library without its model: messages are stored as they are."""

    title = "Mem0, library, word for word"
    infer = False


class Mem0ServerWordForWord(Mem0Server):
    """The server without its model."""

    title = "Mem0, server, word for word"
    infer = False


VENDORS = (Mem0Library, Mem0LibraryWordForWord, Mem0Server, Mem0ServerWordForWord)
