"""Mem0's library in this process: loaded late, in the background, once, and without its side effects."""

import logging
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import PermanentProviderError, ProviderError, TemporaryProviderError
from memoranda.external.loading.setup import ConfigField
from memoranda.external.vendors.mem0.library import SharedLibrary, library_is_installed
from memoranda.external.vendors.mem0.settings import FIELDS, library_config
from memoranda.external.vendors.mem0.vendor import Mem0Provider
from tests.external.vendors.mem0.conftest import Start
from tests.external.vendors.mem0.library_double import LibraryDouble
from tests.timing import GIVE_UP, HANG

pytestmark = pytest.mark.slow


def values(**others: Any) -> dict[str, Any]:
    """The settings of the library, as setup would resolve them."""
    found: dict[str, Any] = {"deployment": "oss"}
    for field in FIELDS:
        found.setdefault(field.key, others.get(field.key, field.default_for(found)))
    return found


def test_nothing_of_it_is_imported_before_it_is_configured() -> None:
    """Discovering providers, constructing this one and asking whether it is available import no package of Mem0."""
    code = """
import sys
from pathlib import Path
import memoranda
from memoranda.external.loading.discovery import discover
assert "mem0" in discover(Path("."))
assert not [name for name in sys.modules if "vendors.mem0" in name]
from memoranda.external.vendors.mem0.vendor import Mem0Provider
Mem0Provider(Path("."), {"deployment": "oss"}).is_available()
heavy = {"mem0", "qdrant_client", "openai", "http.client"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_it_is_unavailable_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error names the extra that installs it."""
    monkeypatch.setitem(sys.modules, "mem0", None)
    provider = Mem0Provider(tmp_path, {"deployment": "oss"})
    assert not library_is_installed() and not provider.is_available()
    with pytest.raises(ProviderError, match=r"pip install 'memoranda\[mem0\]'"):
        provider.initialize("s1", hermes_home=str(tmp_path))


def test_a_session_does_not_wait_for_the_import(library: LibraryDouble, start: Start) -> None:
    """It has its tools at once, and recall that comes too early finds nothing, in time and without an error."""
    gate = threading.Event()
    original = library.library.Memory.from_config

    def slow(config: Any) -> Any:
        gate.wait(HANG)
        return original(config)

    library.library.Memory.from_config = slow
    began = time.monotonic()
    provider = start(library)
    assert len(provider.get_tool_schemas()) == 6
    assert provider.prefetch("cat", session_id="s1", seconds=0.05) == ""
    assert time.monotonic() - began < GIVE_UP
    gate.set()
    provider.sync_turn("My cat is called Minka.", "Noted.", session_id="s1", idempotency_key="k1")
    assert "Minka" in provider.prefetch("My cat is called", session_id="s1")


_UNTIL_THE_END = f"from memoranda.external.vendors.mem0 import library\nlibrary._process_ends.wait({GIVE_UP})\n"


def test_a_process_that_ends_stops_the_import_and_waits_for_it(tmp_path: Path) -> None:
    """A thread inside a C++ extension would abort the process; the module that is being imported is the last one."""
    package = tmp_path / "mem0"
    package.mkdir()
    report = "print({!r}, flush=True)\n"
    try_next = "try:\n    import mem0.second\nexcept Exception:\n    pass\n" + report.format("continued")
    (package / "__init__.py").write_text(report.format("began") + _UNTIL_THE_END + report.format("loaded") + try_next)
    (package / "second.py").write_text(report.format("second"))
    code = f"""
import sys, time
sys.path.insert(0, {str(tmp_path)!r})
from memoranda.home.config import secrets
from memoranda.external.vendors.mem0.library import SharedLibrary
SharedLibrary.acquire({{"history_db_path": {str(tmp_path / "history.db")!r}}})
while "mem0" not in sys.modules:
    time.sleep(0.01)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=GIVE_UP)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["began", "loaded"], "")


def test_it_neither_reports_usage_nor_writes_to_the_home_directory(
    tmp_path: Path, start: Start, library: LibraryDouble
) -> None:
    """Both variables are set before the import, unless the user has set them."""
    del sys.modules["mem0"]
    provider = start(library)
    provider.test_connection()
    seen = sys.modules["mem0"].VARIABLES_AT_IMPORT
    assert seen == {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(tmp_path / "mem0")}


def test_it_does_not_warn_of_its_optional_packages(
    start: Start, library: LibraryDouble, caplog: pytest.LogCaptureFixture
) -> None:
    """Every command would show these warnings; others of the same modules are shown."""
    start(library).prefetch("My cat is called", session_id="s1")
    log = logging.getLogger("mem0.utils.spacy_models")
    log.warning("Failed to load spaCy full model: spaCy is not installed. Install it with: pip install mem0ai[nlp]")
    log.warning("The model is broken.")
    assert [record.getMessage() for record in caplog.records if record.name == log.name] == ["The model is broken."]


@pytest.mark.parametrize(
    "error",
    [
        "shapes (0,256) and (1536,) not aligned: 256 (dim 1) != 1536 (dim 0)",
        "Wrong input: Vector dimension error: expected dim: 256, got 1536 for vector ''",
    ],
)
def test_vectors_of_another_length_are_explained(start: Start, library: LibraryDouble, error: str) -> None:
    """What the local store raises names neither the embedder nor the setting."""
    provider = start(library)
    library.library.fault = ValueError(error)
    with pytest.raises(PermanentProviderError, match="not as long as oss_embedder_dims says"):
        provider.test_connection()


def test_sessions_of_one_process_share_it(start: Start, library: LibraryDouble) -> None:
    """Its folder can only be opened once; the last session closes it."""
    first, second = start(library), start(library, session_id="s2")
    first.sync_turn("My cat is called Minka.", "Noted.", session_id="s1", idempotency_key="k1")
    first.shutdown()
    assert "Minka" in second.prefetch("My cat is called", session_id="s2")
    second.shutdown()
    assert "Minka" in start(library).prefetch("My cat is called", session_id="s3")


def test_a_folder_of_another_process_is_tried_again(start: Start, library: LibraryDouble, tmp_path: Path) -> None:
    """Turns wait until it is free, and the error says how to avoid that."""
    folder = str(tmp_path / "mem0" / "qdrant")
    library.library._open_folders.add(folder)
    provider = start(library)
    with pytest.raises(TemporaryProviderError, match="Another process"):
        provider.sync_turn("My cat is called Minka.", "Noted.", session_id="s1", idempotency_key="k1")
    library.library._open_folders.discard(folder)
    provider.sync_turn("My cat is called Minka.", "Noted.", session_id="s1", idempotency_key="k1", attempt=2)
    assert [memory["memory"] for memory in library.library.stored[folder]] == ["My cat is called Minka."]


def test_memories_of_another_embedder_are_refused_and_kept(start: Start, library: LibraryDouble) -> None:
    """Vectors of another length would make the store useless; deleting it is not our choice."""
    library.library.Memory.dimensions = 768
    provider = start(library)
    with pytest.raises(TemporaryProviderError, match="768"):
        provider.test_connection()
    assert library.library._open_folders == set()


def test_requests_go_to_the_configured_address_once(start: Start, library: LibraryDouble) -> None:
    """No variable of the environment redirects them, and only the outbox repeats."""
    provider = start(library, oss_llm_url="http://127.0.0.1:9/v1", oss_llm_key="k-1")
    provider.test_connection()
    options = library.library.opened[-1].llm.client.options
    assert (options["base_url"], options["max_retries"], options["api_key"]) == ("http://127.0.0.1:9/v1", 0, "k-1")


def test_one_thread_at_a_time_uses_the_local_store(library: LibraryDouble, tmp_path: Path) -> None:
    """It is not made for several, and recall runs beside deliveries."""
    busy: list[int] = []
    worst: list[int] = []

    def scroll() -> None:
        busy.append(1)
        worst.append(len(busy))
        time.sleep(0.002)
        busy.pop()

    library.library.Memory.from_config = lambda config: _with_scroll(library.library.Memory(config), scroll)
    shared = SharedLibrary.acquire(library_config(values(), tmp_path))
    store = shared.memory(5).vector_store.client._client
    threads = [threading.Thread(target=lambda: [store.scroll() for _ in range(5)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shared.release()
    assert max(worst) == 1 and len(worst) == 20


def _with_scroll(memory: Any, scroll: Any) -> Any:
    memory.vector_store.client._client.scroll = scroll
    return memory


def test_the_configuration_names_everything() -> None:
    """An Ollama on this machine, a Qdrant server, PostgreSQL; an unknown embedder needs its length."""
    home = Path("/home/ana/.memoranda")
    config = library_config(values(oss_llm="ollama", oss_embedder="ollama"), home)
    assert config["llm"]["config"]["openai_base_url"] == "http://localhost:11434/v1"
    assert config["vector_store"]["config"]["embedding_model_dims"] == 768
    assert config["vector_store"]["config"]["path"] == str(home / "mem0" / "qdrant")
    qdrant = library_config(values(oss_vector="qdrant", oss_vector_url="http://q:7000"), home)["vector_store"]["config"]
    assert (qdrant["host"], qdrant["port"], qdrant["https"]) == ("q", 7000, False)
    postgres = library_config(values(oss_vector="pgvector", oss_vector_url="postgresql://u:p@h/d"), home)
    assert postgres["vector_store"]["config"]["connection_string"] == "postgresql://u:p@h/d"
    with pytest.raises(PermanentProviderError, match="oss_embedder_dims"):
        library_config(values(oss_embedder_model="my-embedder"), home)
    with pytest.raises(PermanentProviderError, match="oss_vector_url"):
        library_config(values(oss_vector="qdrant"), home)


def test_a_store_outside_the_home_belongs_in_a_backup(tmp_path: Path) -> None:
    """Only that of the library; a relative folder is in the home, and in the backup anyway."""
    home, elsewhere = tmp_path / "home", str(tmp_path / "elsewhere")
    settings = {"deployment": "oss", "oss_vector_path": elsewhere}
    assert Mem0Provider(home, settings).backup_paths() == [elsewhere]
    assert Mem0Provider(home, settings | {"oss_vector_path": "store"}).backup_paths() == []
    assert Mem0Provider(home, {"deployment": "oss"}).backup_paths() == []
    assert Mem0Provider(home, settings | {"deployment": "server"}).backup_paths() == []
    assert library_config(values(oss_vector_path="store"), home)["vector_store"]["config"]["path"] == str(
        home / "store"
    )


def test_no_field_is_asked_for_in_vain() -> None:
    """Every field has a description, and every secret a variable."""
    assert all(isinstance(field, ConfigField) and field.description for field in FIELDS)
    assert [field.key for field in FIELDS if field.secret and not field.env_var] == []
