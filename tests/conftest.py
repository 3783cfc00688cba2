"""Fixtures that every test may use: a throw-away home and a store on it, cut off from the real environment."""

import atexit
import os
import re
import signal
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from shutil import disk_usage, rmtree
from typing import Any

import pytest
from hypothesis import settings

from memoranda.memory.curated.settings import CuratedSettings
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.tool import MemoryTool
from memoranda.storage.sqlite import exclusive_file
from memoranda.support.origin import Origin
from tests.examples import examples, use_all_examples
from tests.storage.postgres.servers import (
    mark_server_tests_slow,
    oldest_postgres_server,
    ordinary_wait,
    own_postgres_server,
    postgres_server,
    postgres_url,
    server_url,
    short_settling,
)

__all__ = [
    "oldest_postgres_server",
    "ordinary_wait",
    "own_postgres_server",
    "postgres_server",
    "postgres_url",
    "server_url",
    "short_settling",
]

# What a session offers to a model by itself.
OWN_TOOLS = ["memory", "session_search", "skills_list", "skill_view", "skill_manage"]
_HOMES = ("HOME", "USERPROFILE")
_MEMORY = "/dev/shm"
_ENOUGH_BYTES = 1 << 30
_HOLD_AFTER_REPLACING = exclusive_file._HOLD_AFTER_REPLACING
_SLOW_FILE = re.compile(r"^pytestmark = \[?pytest\.mark\.slow\b", re.MULTILINE)
_numbers = count()


Strikes = Callable[[int], int]
"""How often a test strikes, by its full number."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="Let every property try all of its examples.")
    parser.addoption("--torture", action="store_true", help="Run the tests that strike, each with its full number.")


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples properties try, and let Ctrl-C interrupt tests however the shell was started."""
    # Tests sync thousands of times: their files lie in memory, if there is enough of it.
    if "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK) and disk_usage(_MEMORY).free > _ENOUGH_BYTES:
        os.environ["TMPDIR"] = tempfile.tempdir = _MEMORY
    # The second in which a repair waits for other processes; `other_processes_open` restores it.
    exclusive_file._HOLD_AFTER_REPLACING = 0.0
    full = config.getoption("--full")
    if full:
        use_all_examples()
    # Every example syncs files to the disk, so a deadline per example would measure the disk. Random examples look for
    # new faults in `make torture`; elsewhere they are the same each time, so that a run says what the code says.
    settings.register_profile("memoranda", deadline=None, max_examples=examples(40), derandomize=not full)
    settings.load_profile("memoranda")
    # A background job of a non-interactive shell ignores SIGINT, and so would every process that a test starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """In the everyday run, do not load a file of which all tests are slow: loading all files takes longer than it."""
    if config.getoption("markexpr") != "not slow" or collection_path.suffix != ".py":
        return None
    return True if _SLOW_FILE.search(collection_path.read_text("utf-8")) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs a server, and leave out what only `make torture` runs; its first run, what does not strike."""
    mark_server_tests_slow(items)
    kept = items[:]
    if config.getoption("--torture"):
        kept = [item for item in kept if "strikes" in getattr(item, "fixturenames", ())]
    if not config.getoption("--full"):
        kept = [item for item in kept if item.get_closest_marker("torture") is None]
    left_out = set(items).difference(kept)
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = kept


@pytest.fixture(scope="session")
def strikes(pytestconfig: pytest.Config) -> Strikes:
    """The number of times that a test strikes: all of its full number in `make torture`, otherwise an eighth."""
    share = 1 if pytestconfig.getoption("--torture") else 8
    return lambda full: max(1, full // share)


@cache
def _disk_directory() -> Path:
    """A directory for tests about the disk itself; deleted when the process ends."""
    directory = tempfile.mkdtemp(prefix="memoranda-test-", dir="/var/tmp" if os.path.isdir("/var/tmp") else None)
    atexit.register(rmtree, directory, ignore_errors=True)
    return Path(directory)


@pytest.fixture(autouse=True)
def _own_directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Cut a test off from the settings of its user; the path of its directory, which most tests do not need.

    So it is not made here. One fixture does all that every test needs: each takes a quarter of a millisecond.
    """
    on_disk = request.node.get_closest_marker("disk") is not None
    base = _disk_directory() if on_disk else tmp_path_factory.getbasetemp()
    name = re.sub(r"\W", "_", request.node.name)[:30]
    path = base / f"{name}{next(_numbers)}"
    before = {name: value for name, value in os.environ.items() if name in _HOMES or name.startswith("MEMORANDA_")}
    for name in before:
        del os.environ[name]
    os.environ.update(dict.fromkeys(_HOMES, f"{path}/user"))
    yield path
    for name in _HOMES:
        os.environ.pop(name, None)
    os.environ.update(before)
    # It may lie in memory. What a test that failed left behind is kept.
    if path.exists() and (request.session.testsfailed == 0 or on_disk):
        rmtree(path, ignore_errors=True)


@pytest.fixture
def tmp_path(_own_directory: Path) -> Path:
    """An empty directory, as pytest's own: that one lists the directories of all earlier tests to find a number."""
    _own_directory.mkdir(mode=0o700)
    return _own_directory


@pytest.fixture
def other_processes_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a repair wait for other processes that are about to open the store, as it does outside of tests."""
    monkeypatch.setattr(exclusive_file, "_HOLD_AFTER_REPLACING", _HOLD_AFTER_REPLACING)


@pytest.fixture(scope="session")
def model_sdks() -> None:
    """Import the vendors' SDKs, which takes a second: not in a test whose time is measured."""
    import anthropic
    import openai

    assert anthropic and openai


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "home" / "memories"


@pytest.fixture
def store(directory: Path) -> MemoryStore:
    loaded = MemoryStore(directory)
    loaded.load_from_disk()
    return loaded


@pytest.fixture
def tool(store: MemoryStore) -> MemoryTool:
    return MemoryTool(store, Origin("agent", "s1"))


@pytest.fixture
def call(tool: MemoryTool) -> Callable[..., dict[str, Any]]:
    """Call the memory tool with keyword arguments, each call in a turn of its own."""

    def call_tool(**arguments: Any) -> dict[str, Any]:
        tool.begin_turn()
        return tool.call({"target": "memory", **arguments})

    return call_tool


@pytest.fixture
def write(directory: Path) -> Callable[..., Path]:
    """Write MEMORY.md as another program would."""

    def write_file(content: str | bytes, name: str = "MEMORY.md") -> Path:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = directory / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(0o600)
        return path

    return write_file


def small_store(directory: Path, limit: int) -> MemoryStore:
    """A store whose two files may hold `limit` characters each."""
    made = MemoryStore(directory, CuratedSettings(memory_char_limit=limit, user_char_limit=limit))
    made.load_from_disk()
    return made


def tree(directory: Path) -> dict[str, bytes]:
    """Every file below a directory with its bytes, lock files left out."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def unprivileged() -> Iterator[Path]:
    """A private directory, entered as a user whom file permissions bind (root ignores them)."""
    with tempfile.TemporaryDirectory(prefix="memoranda-test-") as name:
        if os.geteuid() != 0:
            yield Path(name)
            return
        os.chown(name, 65534, 65534)
        os.seteuid(65534)
        try:
            yield Path(name)
        finally:
            os.seteuid(0)
