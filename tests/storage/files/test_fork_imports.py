"""A fork waits for a thread that loads a module for this package, because the child could never load it."""

import importlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memoranda.storage.files import fork_imports
from tests.forked import forking, in_child
from tests.timing import GIVE_UP

pytestmark = forking


@contextmanager
def _loading(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A thread loads a slow module while the block runs."""
    monkeypatch.syspath_prepend(directory)
    (directory / "slow_module.py").write_text(
        "import threading, time\nthreading.loading.set()\ntime.sleep(0.3)\nVALUE = 1\n"
    )
    loading = threading.Event()
    monkeypatch.setattr(threading, "loading", loading, raising=False)
    thread = threading.Thread(target=lambda: importlib.import_module("slow_module"))
    thread.start()
    assert loading.wait(GIVE_UP)
    try:
        yield
    finally:
        thread.join()
        sys.modules.pop("slow_module", None)


def _use() -> None:
    assert importlib.import_module("slow_module").VALUE == 1


def test_a_child_can_load_a_module_that_a_thread_was_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the tests stand for the package that loads it."""
    monkeypatch.setattr(fork_imports, "_PACKAGE", str(Path(__file__).parent))
    with _loading(tmp_path, monkeypatch):
        assert in_child(_use, longest=10) == 0


def test_a_fork_does_not_wait_for_modules_that_others_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some programs run inside an import as long as they live."""
    with _loading(tmp_path, monkeypatch):
        assert in_child(lambda: None) == 0
        assert not hasattr(sys.modules["slow_module"], "VALUE"), "it is still being loaded"


def test_a_fork_that_waits_too_long_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The fork happens in any case."""
    monkeypatch.setattr(fork_imports, "_PACKAGE", str(Path(__file__).parent))
    monkeypatch.setattr(fork_imports, "_TIMEOUT", 0.01)
    with _loading(tmp_path, monkeypatch):
        assert in_child(lambda: None) == 0
    assert "still loading a module" in caplog.text
