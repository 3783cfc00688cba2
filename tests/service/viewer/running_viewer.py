"""The viewer of `memoranda view` on a real socket, in a thread of the test."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import httpx

from memoranda.api.memory import Memory
from memoranda.service.viewer.mount import LocalViewer
from tests.service.http.running_service import RunningService, run_service

_FORM_TOKEN = re.compile(r'name="form_token" value="([^"]+)"')


@dataclass(frozen=True)
class RunningViewer:
    """A viewer that answers, and how to log in."""

    running: RunningService
    viewer: LocalViewer

    @property
    def url(self) -> str:
        return self.running.url

    @property
    def memory(self) -> Memory:
        return self.running.service.memory_of(None)

    def login_url(self) -> str:
        """A new link, which works once."""
        return self.url + self.viewer.new_login_path()

    def client(self) -> httpx.Client:
        """A client that is logged in, and that sends forms as a browser would."""
        opened = self.running.client()
        opened.headers["Origin"] = self.url
        opened.get(self.viewer.new_login_path()).raise_for_status()
        return opened


@contextmanager
def run_viewer(home: Path, user: str | None = None) -> Iterator[RunningViewer]:
    """Show a home until the block ends."""
    viewer = LocalViewer(user)
    with run_service(home, mounts=(viewer.mount,), own_routes=()) as running:
        yield RunningViewer(running, viewer)


def form_token(page: str) -> str:
    """The token that the forms of a page send."""
    found = _FORM_TOKEN.search(page)
    assert found is not None
    return unescape(found[1])
