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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from memoranda.errors import ProviderError, TemporaryProviderError
from memoranda.external.guarded_call import PendingCall
from memoranda.external.loading.plugin_variables import set_default_variable

_lock = threading.Lock()
_shared: dict[str, "SharedLibrary"] = {}
_loading_threads: set[threading.Thread] = set()
_process_ends = threading.Event()
# One extension may take this long to import on a busy machine.
_EXIT_SECONDS = 30.0
# In every process these warn of packages that are optional to the library; the documentation names them instead.
_LOGGERS_OF_EXTRAS = ("mem0.utils.spacy_models", "mem0.vector_stores.qdrant")


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
        logging.getLogger(name).addFilter(_is_not_about_an_extra)
    try:
        with warnings.catch_warnings():
            return importlib.import_module("mem0").Memory
    except ImportError as error:
        raise ProviderError(
            f"Mem0's library is not installed ({error}). Install it with: pip install 'memoranda[mem0]'"
        ) from error


def _is_not_about_an_extra(record: logging.LogRecord) -> bool:
    return "not installed" not in record.getMessage()


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
