"""A service with MCP and OAuth on a port that it knows beforehand, and a person with a browser."""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2

from memoranda.service.remote_mcp.mount import remote_mcp_mount
from tests.service.http.running_service import RunningService, run_service
from tests.timing import GIVE_UP


@contextmanager
def run_remote_service(home: Path, *, with_oauth: bool = True) -> Iterator[RunningService]:
    """Serve a home with MCP; every request needs a key."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    public_url = f"http://127.0.0.1:{port}" if with_oauth else ""
    with run_service(home, mounts=(remote_mcp_mount(public_url),), port=port) as running:
        running.key("admin")
        yield running


@dataclass
class Person:
    """Someone who opens the consent page of a service and submits its form."""

    browser: httpx2.Client

    def open_page(self, url: str) -> httpx2.Response:
        return self.browser.get(url)

    def submit(self, page: httpx2.Response, **changed: str | None) -> httpx2.Response:
        """Submit the form of a page with some fields changed; None leaves one out."""
        fields = read_hidden_fields(page.text) | {"decision": "allow"} | changed
        form = {name: value for name, value in fields.items() if value is not None}
        return self.browser.post("/oauth/authorize", data=form)


@contextmanager
def browsing(running: RunningService, **headers: str) -> Iterator[Person]:
    with httpx2.Client(base_url=running.url, headers=headers, timeout=GIVE_UP, trust_env=False) as browser:
        yield Person(browser)


def read_hidden_fields(page: str) -> dict[str, str]:
    found = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', page)
    return {unescape(name): unescape(value) for name, value in found}


def read_query(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query))


def ask(
    running: RunningService, message: Any, *, key: str = "", method: str = "POST", **headers: str
) -> httpx2.Response:
    """One request to /mcp; headers by name with underscores."""
    sent = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    sent |= {"Authorization": f"Bearer {key}"} if key else {}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    with httpx2.Client(timeout=GIVE_UP, trust_env=False) as client:
        return client.request(method, f"{running.url}/mcp", json=message, headers=sent)


def rpc(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


INITIALIZE = rpc("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "1"})
