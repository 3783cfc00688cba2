"""One viewer for all tests, and one browser for each file: those that change something use homes of their own."""

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.service.viewer.example_home import fill
from tests.service.viewer.example_operation import fill_pages
from tests.service.viewer.running_viewer import RunningViewer, run_viewer

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Read before the tests remove such variables.
_NAMED = os.environ.get("MEMORANDA_TEST_BROWSER")
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningViewer]:
    """A viewer over the example home, for tests that change nothing."""
    with run_viewer(tmp_path_factory.mktemp("viewer") / "home") as running:
        fill(running.memory)
        fill_pages(running.memory)
        yield running


@pytest.fixture
def client(viewer: RunningViewer) -> httpx.Client:
    """A client that is logged in to the shared viewer."""
    return viewer.client()


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """A real browser for the tests of a file; without one they are skipped, unless the environment names one.

    Not for the whole run: while it is open, playwright has a running event loop, and other tests need their own.
    """
    found = next(filter(None, map(shutil.which, (_NAMED,) if _NAMED else _CHROMIUM)), None)
    if found is None:
        assert not _NAMED, f"There is no {_NAMED} on this machine."
        pytest.skip("no chromium on this machine: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Names of other sites lead to this machine, as they could by DNS rebinding.
        rules = "--host-resolver-rules=MAP *.example 127.0.0.1"
        options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", rules]
        launched = playwright.chromium.launch(executable_path=found, args=options)
        yield launched
        launched.close()
