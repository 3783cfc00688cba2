"""The helper of hooks: a process with everything loaded that answers the hooks of one home, and ends by itself.

A hook that found no helper starts one after it has answered. The helper holds nothing open between two answers, so it
is never in the way of other programs, and it can be killed at any time: a hook without a helper does the work itself.
It ends when it was idle for a while, when its program or its home changed, and when the settings turn it off.
"""

import gc
import os
import signal
import socket
import sqlite3
import sys
import time
from contextlib import nullcontext, suppress
from importlib import import_module
from pathlib import Path

from memoranda import __version__
from memoranda.cli.background_tasks import log_resources, maintain_while_open
from memoranda.cli.hooks import helper_protocol
from memoranda.cli.hooks.call import answer_and_log
from memoranda.cli.hooks.helper_files import HelperFiles, remove_stale_files, write_info
from memoranda.cli.hooks.helper_protocol import ANSWER, FAILED, LEAVING
from memoranda.cli.hooks.process import HookOptions
from memoranda.cli.log_file import log_error
from memoranda.errors import LockTimeoutError, MemorandaError
from memoranda.home.config import load, record_location
from memoranda.home.config.environment import locate_home
from memoranda.integrations.hooks.answers import read_payload
from memoranda.integrations.hooks.events import ANSWERED_EVENTS
from memoranda.integrations.hooks.home_config import HomeConfig
from memoranda.integrations.hooks.log import HookCaller, HookLog
from memoranda.integrations.hooks.prompt_evidence import PromptStore
from memoranda.memory.record.scope import Scope
from memoranda.storage.files.file_lock import FileLock
from memoranda.storage.orphaned_wal import record_exists
from memoranda.support.durable_files import make_private_directory
from memoranda.support.home import Home

_Version = tuple[int, int, int, int] | None
_IDLE_SECONDS = 600.0
_SECONDS_BETWEEN_CHECKS = 20.0
# A new process starts clean, whatever this one has gathered.
_MAX_ANSWERS = 2_000
# A hook waits far less. The signal ends the process even in the middle of a query.
_MAX_SECONDS_PER_ANSWER = 10
_CONNECTION_TIMEOUT = 1.0
_LOCK_TIMEOUT = 0.2
# A hook that arrives meanwhile waits for one step.
_INDEX_STEP = 1_000
_PAUSE = 0.05
_REQUEST_FIELDS = 8
# What an answer loads when it needs it.
_MODULES = (
    "memoranda.integrations.hooks.prompt_evidence",
    "memoranda.cli.log_file",
    "memoranda.memory.curated.store",
    "memoranda.search.evidence",
    "memoranda.search.excerpts",
    "memoranda.search.settings",
    "memoranda.safety.fence",
    "memoranda.integrations.memory_text",
)


class LoadedFiles:
    """The files that this process has loaded its modules from, as they were then."""

    def __init__(self) -> None:
        self._versions: dict[str, _Version] = {sys.executable: _version_of(sys.executable)}
        self.have_changed()

    def have_changed(self) -> bool:
        """Whether any of them is another file now; modules that were loaded since the last call are added."""
        changed = any(_version_of(path) != version for path, version in self._versions.items())
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None)
            if path is not None and path not in self._versions:
                self._versions[path] = _version_of(path)
        return changed


def run_helper(home: str | None, profile: str | None) -> None:
    """Answers the hooks of a home until it is time to end; returns at once when another helper does."""
    located = locate_home(home, profile)
    located.refuse_if_foreign()
    if not located.root.is_dir() or not helper_protocol.IS_SUPPORTED:
        return
    files = HelperFiles.of(located)
    make_private_directory(files.directory)
    try:
        with FileLock(files.lock, _LOCK_TIMEOUT):
            HookHelper(located, files).run()
            files.remove()
    except LockTimeoutError:
        return
    except Exception as error:
        log_error(located.root, "the helper of hooks failed; hooks do the work themselves", error)
        raise


class HookHelper:
    """A helper that holds the lock of its home."""

    def __init__(self, home: Home, files: HelperFiles) -> None:
        self._home = home
        self._files = files
        self._config = HomeConfig(home)
        self._identity = helper_protocol.identity_of(str(home.root))
        self._answers = 0
        self._last_use = time.monotonic()
        self._leaving = False
        self._index_is_behind = True

    def run(self) -> None:
        """Opens the socket, loads everything, and answers."""
        if not self._config.wants_helper():
            return
        self._files.socket.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            previous = os.umask(0o177)
            try:
                listener.bind(helper_protocol.socket_address(str(self._home.root), self._files.name))
            finally:
                os.umask(previous)
            # Until it listens, hooks are refused at once instead of waiting for what is loaded here.
            self._prepare()
            listener.listen()
            config = self._config.load()
            with (
                suppress(SystemExit),
                log_resources(self._home.root, "hook-helper"),
                nullcontext() if config is None else maintain_while_open(self._home, config.retention),
            ):
                self._serve(listener)

    def _prepare(self) -> None:
        for name in _MODULES:
            import_module(name)
        remove_stale_files(self._files)
        # A directory that the host works in can be removed and unmounted.
        os.chdir(os.sep)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        self._program = LoadedFiles()
        self._socket_status = os.stat(self._files.socket)
        write_info(self._files, __version__, str(Path(helper_protocol.__file__).parents[2]))
        # What is loaded stays; the collector need not look at it again.
        gc.collect()
        gc.freeze()

    def _serve(self, listener: socket.socket) -> None:
        while not self._leaving:
            listener.settimeout(_PAUSE if self._index_is_behind else _SECONDS_BETWEEN_CHECKS)
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                if self._index_is_behind:
                    self._index_some()
                idle = time.monotonic() - self._last_use > _IDLE_SECONDS
                self._leaving = idle or not self._is_current()
                continue
            with connection:
                self._serve_connection(connection)

    def _index_some(self) -> None:
        """Indexes a part of what is missing, such as everything after an upgrade; hooks only read the index."""
        self._index_is_behind = False
        signal.alarm(_MAX_SECONDS_PER_ANSWER)
        try:
            loaded = load(self._home)
            location = record_location(self._home, loaded)
            # The index of a single user is complete after a search.
            if record_exists(location) and not loaded.recall.user_index_mb:
                with PromptStore(location, Scope.everyone(), index_directory=self._home.root) as store:
                    progress = store.index.catch_up(limit=_INDEX_STEP)
                self._index_is_behind = progress.problem is None and not progress.complete
        except (MemorandaError, OSError, sqlite3.Error) as error:
            log_error(self._home.root, "the helper could not update the index", error)
        finally:
            signal.alarm(0)

    def _serve_connection(self, connection: socket.socket) -> None:
        signal.alarm(_MAX_SECONDS_PER_ANSWER)
        try:
            connection.settimeout(_CONNECTION_TIMEOUT)
            if not helper_protocol.peer_is_same_user(connection):
                return
            fields = helper_protocol.receive(connection, time.monotonic() + _CONNECTION_TIMEOUT)
            if fields is None or len(fields) != _REQUEST_FIELDS or fields[0] != self._identity:
                return
            connection.settimeout(_CONNECTION_TIMEOUT)
            helper_protocol.send(connection, [self._identity, *self._reply(fields[1:])])
        except OSError:
            # The hook has ended or is stopped; it does not miss an answer that it no longer waits for.
            return
        finally:
            signal.alarm(0)

    def _reply(self, fields: list[bytes]) -> tuple[bytes, bytes]:
        self._last_use = time.monotonic()
        self._answers += 1
        self._index_is_behind = True
        if not self._is_current():
            self._leaving = True
            return LEAVING, b""
        self._leaving = self._answers >= _MAX_ANSWERS
        *words, raw_payload = fields
        host, event, user, started_at, process, cpu = (word.decode("utf-8", "surrogateescape") for word in words)
        options = HookOptions(host, event)
        options.user = user or None
        payload = read_payload(raw_payload, event, host)
        if payload.problem or payload.event not in ANSWERED_EVENTS:
            return FAILED, b""
        log = HookLog(self._home.root, float(started_at), HookCaller(int(process), float(cpu)))
        try:
            self._home.refuse_if_foreign()
            text = answer_and_log(self._config, options, payload, log)
        except (MemorandaError, OSError, sqlite3.Error):
            # The hook finds the same error, or none, and logs it.
            return FAILED, b""
        return ANSWER, text.encode("utf-8", "replace")

    def _is_current(self) -> bool:
        """Whether program, home and settings are still those that this helper began with."""
        try:
            unchanged = os.path.samestat(os.stat(self._files.socket), self._socket_status)
            return unchanged and not self._program.have_changed() and self._config.wants_helper()
        except (MemorandaError, OSError):
            return False


def _version_of(path: str) -> _Version:
    try:
        status = os.stat(path)
    except OSError:
        return None
    # An installer may give each version of a file the same time and size; the time of the entry is always new.
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
