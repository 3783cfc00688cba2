"""Mem0's open-source library in this process: imported in the background, and shared by the sessions of the process.

The import takes seconds, so nothing waits for it but calls that need it. The library's local store locks its folder:
all sessions of this process share one `mem0.Memory` per configuration, and another process cannot open it meanwhile.
Importing the library has side effects, which are prevented here: it would report usage to its vendor, write to
`~/.mem0` and change the filters of warnings. A process that ends during the import stops it: Python would abort the
process if it ended while the thread is inside one of the library's C++ extensions.
"""

import atexit
import importlib
import importlib.util
import json
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memoranda.errors import PermanentProviderError, ProviderError, TemporaryProviderError
from memoranda.external.guarded_call import PendingCall
from memoranda.external.loading.plugin_variables import set_default_variable
from memoranda.external.vendors.mem0.client import (
    KEY,
    Addition,
    EarlierAttempt,
    Mem0Memory,
    iso_time,
    read_memories,
    read_memory,
)

_lock = threading.Lock()
_shared: dict[str, "SharedLibrary"] = {}
_loading_threads: set[threading.Thread] = set()
_process_ends = threading.Event()
# One extension may take this long to import on a busy machine.
_EXIT_SECONDS = 30.0
# In every process these warn of packages that are optional to the library; the documentation names them instead.
_LOGGERS_OF_EXTRAS = ("mem0.utils.spacy_models", "mem0.vector_stores.qdrant")

# A cold import takes up to half a minute on a busy machine.
_LOAD_SECONDS = 60.0
_MAX_LISTED = 1_000
_TEMPORARY_STATUSES = frozenset({408, 425, 429})


class StillLoadingError(TemporaryProviderError):
    """The library is not loaded yet."""


class _ImportStopped(BaseException):
    """The process ends. No Exception, so that no package takes it for an optional module that is missing."""


class _ImportStopper:
    """A finder that finds nothing; once the process ends, it stops the thread that imports at its next module."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if _process_ends.is_set() and threading.get_ident() == self._thread:
            raise _ImportStopped(name)


class SharedLibrary:
    """One `mem0.Memory` of this process. `acquire` and `release` count its users; the last one closes it."""

    def __init__(self, config: Mapping[str, Any], key: str) -> None:
        self._config = config
        self._key = key
        self._users = 0
        self._loading: PendingCall | None = None
        self._closed = False

    @classmethod
    def acquire(cls, config: Mapping[str, Any]) -> "SharedLibrary":
        """The library with this configuration; begins to load it without waiting."""
        key = json.dumps(config, sort_keys=True, default=str)
        with _lock:
            library = _shared.setdefault(key, cls(config, key))
            library._users += 1
            library._load()
        return library

    def release(self) -> None:
        """Close the library after its last user, as soon as it is loaded."""
        with _lock:
            self._users -= 1
            if self._users > 0 or self._closed:
                return
            self._closed = True
            del _shared[self._key]
            if self._loading is not None:
                self._loading.call_when_done(lambda result: _close(result.value) if result.ok else None)

    def memory(self, timeout: float) -> Any:
        """The `mem0.Memory`; raises TemporaryProviderError if it is not loaded in time or cannot be loaded.

        A load that failed is tried again by the next call: another process may have released the folder.
        """
        with _lock:
            if self._closed:
                raise TemporaryProviderError("Mem0 was shut down.")
            loading = self._load()
        result = loading.wait(timeout)
        if result is None:
            raise StillLoadingError("Mem0 is still being loaded.")
        if not result.ok:
            with _lock:
                if self._loading is loading:
                    self._loading = None
            raise TemporaryProviderError(result.error)
        return result.value

    def _load(self) -> PendingCall:
        if self._loading is None:
            self._loading = PendingCall(lambda: _open_while_process_lasts(self._config), "memoranda-mem0-load")
        return self._loading


def library_is_installed() -> bool:
    """Whether the packages of the extra `mem0` are installed; imports neither."""
    return all(importlib.util.find_spec(package) is not None for package in ("mem0", "qdrant_client"))


@atexit.register
def _stop_loading() -> None:
    """Stop the imports that are running, and wait until they have stopped."""
    _process_ends.set()
    for thread in tuple(_loading_threads):
        thread.join(_EXIT_SECONDS)


def _open_while_process_lasts(config: Mapping[str, Any]) -> Any:
    thread, stopper = threading.current_thread(), _ImportStopper()
    _loading_threads.add(thread)
    sys.meta_path.insert(0, stopper)
    try:
        return _open(config)
    finally:
        sys.meta_path.remove(stopper)
        _loading_threads.discard(thread)


def _open(config: Mapping[str, Any]) -> Any:
    kind = _import_memory(Path(config["history_db_path"]).parent)
    try:
        # Mem0 changes the dictionary that it gets.
        memory = kind.from_config(json.loads(json.dumps(config)))
    except RuntimeError as error:
        if "already accessed" in str(error):
            raise ProviderError(
                "Another process has Mem0's store open; it can have one at a time. Turns wait until it is free. "
                "A Qdrant server or Mem0's own server can be used by several processes."
            ) from error
        raise
    try:
        _check_dimensions(memory, config)
    except ProviderError:
        _close(memory)
        raise
    _limit_requests(memory.llm, config["llm"]["config"])
    _limit_requests(memory.embedding_model, config["embedder"]["config"])
    _serialize_calls(memory)
    return memory


def _import_memory(directory: Path) -> Any:
    # Both are read when the package is imported.
    set_default_variable("MEM0_TELEMETRY", "False")
    set_default_variable("MEM0_DIR", str(directory))
    for name in _LOGGERS_OF_EXTRAS:
        logging.getLogger(name).addFilter(lambda record: "not installed" not in record.getMessage())
    try:
        with warnings.catch_warnings():
            return importlib.import_module("mem0").Memory
    except ImportError as error:
        raise ProviderError(
            f"Mem0's library is not installed ({error}). Install it with: pip install 'memoranda[mem0]'"
        ) from error


def _check_dimensions(memory: Any, config: Mapping[str, Any]) -> None:
    """Refuse a store whose vectors have another size; nothing in it is changed."""
    store = config["vector_store"]
    if store["provider"] != "qdrant":
        return
    wanted = store["config"]["embedding_model_dims"]
    vectors = memory.vector_store.client.get_collection(store["config"]["collection_name"]).config.params.vectors
    if vectors.size != wanted:
        raise ProviderError(
            f"The memories in {store['config'].get('path') or 'the store'} have vectors of {vectors.size} numbers, the "
            f"embedder is set to {wanted}. Set the embedder that wrote them, or another folder."
        )


def _limit_requests(part: Any, config: Mapping[str, Any]) -> None:
    """Send requests of a model to the configured address only, once, and not for ten minutes.

    Repetitions are the outbox's task. Mem0 would prefer OpenRouter whenever the environment has a key for it.
    """
    part.client = part.client.with_options(
        api_key=config["api_key"], base_url=config["openai_base_url"], max_retries=0, timeout=60.0
    )


def _serialize_calls(memory: Any) -> None:
    """Let one thread at a time use a local store, which is not made for several; calls of models stay parallel."""
    local = getattr(getattr(memory.vector_store, "client", None), "_client", None)
    if not getattr(memory.vector_store, "is_local", False) or local is None:
        return
    lock = threading.RLock()

    def locked(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            with lock:
                return call(*arguments, **options)

        return run

    for name in dir(local):
        if not name.startswith("_") and callable(method := getattr(local, name)):
            setattr(local, name, locked(method))


def _close(memory: Any) -> None:
    memory.close()
    if (client := getattr(memory.vector_store, "client", None)) is not None:
        client.close()


class LibraryClient:
    """Uses one shared library, with errors that the outbox understands; `agent_id` marks what Memoranda wrote."""

    remains = ""

    def __init__(self, library: SharedLibrary, agent_id: str) -> None:
        self._library = library
        self._agent_id = agent_id

    def test(self) -> str:
        found = self._call(lambda memory: memory.search("test", filters={"user_id": "memoranda-test"}, top_k=1))
        read_memories(found)
        return "Mem0 is loaded in this process, and its embedder answered."

    def add(self, addition: Addition) -> list[str]:
        metadata = {**addition.metadata, "created_at": iso_time(addition.time)}
        answer = self._call(
            lambda memory: memory.add(
                [dict(message) for message in addition.messages],
                user_id=addition.user_id,
                agent_id=self._agent_id,
                metadata=metadata,
                infer=addition.infer,
            )
        )
        ids = [memory.id for memory in read_memories(answer)]
        if addition.infer and not ids:
            # Mem0 reports an embedder that failed half-way like a turn without facts. A search needs the embedder too.
            self._search(addition.query, addition.user_id, 1, 0.0, _LOAD_SECONDS)
        return ids

    def find_attempt(self, addition: Addition) -> EarlierAttempt:
        return EarlierAttempt(self.find_by_metadata(addition.user_id, KEY, addition.key, addition.query))

    def find_by_metadata(self, user_id: str, name: str, value: str, query: str) -> list[Mem0Memory]:
        return self._list({"user_id": user_id, name: value}, 50)

    def search(
        self, query: str, user_id: str, limit: int, *, min_score: float, rerank: bool, timeout: float
    ) -> list[Mem0Memory]:
        return self._search(query, user_id, limit, min_score, timeout)

    def memories(self, user_id: str, limit: int) -> list[Mem0Memory]:
        return self._list({"user_id": user_id}, limit)

    def sent_memories(self, user_id: str) -> Iterator[Mem0Memory]:
        seen: set[str] = set()
        limit = _MAX_LISTED
        while True:
            found = self._list({"user_id": user_id, "agent_id": self._agent_id}, limit)
            new = [memory for memory in found if memory.id not in seen]
            seen |= {memory.id for memory in new}
            yield from (memory for memory in new if KEY in memory.metadata)
            if len(found) < limit:
                return
            limit += _MAX_LISTED

    def get(self, memory_id: str) -> Mem0Memory | None:
        answer = self._call(lambda memory: memory.get(memory_id))
        return None if answer is None else read_memory(answer)

    def update(self, memory_id: str, text: str) -> None:
        self._call(lambda memory: memory.update(memory_id, text=text))

    def delete(self, memory_id: str) -> bool:
        if self.get(memory_id) is None:
            return False
        self._call(lambda memory: memory.delete(memory_id))
        return True

    def erase_history(self, user_id: str, memory_ids: Sequence[str]) -> None:
        scope = f"agent_id={_escaped(self._agent_id)}&user_id={_escaped(user_id)}"

        def erase(memory: Any) -> None:
            with memory.db._lock, memory.db.connection as connection:
                connection.executemany("DELETE FROM history WHERE memory_id = ?", [(id_,) for id_ in memory_ids])
                connection.execute("DELETE FROM messages WHERE session_scope = ?", (scope,))

        self._call(erase)

    def close(self) -> None:
        self._library.release()

    def _search(self, query: str, user_id: str, limit: int, min_score: float, timeout: float) -> list[Mem0Memory]:
        options = {"filters": {"user_id": user_id}, "top_k": limit, "threshold": min_score}
        return read_memories(self._call(lambda memory: memory.search(query.strip() or "memory", **options), timeout))

    def _list(self, filters: Mapping[str, str], limit: int) -> list[Mem0Memory]:
        return read_memories(self._call(lambda memory: memory.get_all(filters=dict(filters), top_k=limit)))

    def _call(self, call: Callable[[Any], Any], timeout: float = _LOAD_SECONDS) -> Any:
        memory = self._library.memory(timeout)
        try:
            return call(memory)
        except Exception as error:
            raise _provider_error(error) from error


def _escaped(value: str) -> str:
    """A value as Mem0 writes it into the scope of a message."""
    return value.replace("%", "%25").replace("&", "%26").replace("=", "%3D")


def _provider_error(error: BaseException) -> ProviderError:
    """An error of Mem0, or of the model or store behind it, as one that the outbox understands."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(getattr(cause, "status_code", None), int):
        cause = cause.__cause__
    text = f"Mem0: {type(error).__name__}: {error}"
    if cause is None:
        # Mem0 checks arguments itself; whatever else fails (no connection, a locked file) may work later.
        if isinstance(error, ValueError) and ("not aligned" in str(error) or "dimension error" in str(error)):
            text += ". The embedder's vectors are not as long as oss_embedder_dims says. Set it to their length."
        refused = type(error) is ValueError or type(error).__name__ == "ValidationError"
        return PermanentProviderError(text) if refused else TemporaryProviderError(text)
    status: int = cause.status_code  # type: ignore[attr-defined]
    if status in _TEMPORARY_STATUSES or status >= 500:
        return TemporaryProviderError(text, _retry_after(cause), status=status)
    advice = "Its model or embedder refuses this; 'memoranda provider setup mem0' sets another key, address or model."
    return PermanentProviderError(f"{text}. {advice}", status=status)


def _retry_after(error: BaseException) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None)
    value = headers.get("retry-after", "") if isinstance(headers, Mapping) else ""
    return float(value) if value.isdecimal() else None
