"""The service on a real socket, in a thread of the test."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

import memoranda
from memoranda.home.access.keys import SCOPES
from memoranda.service.http.app import create_app
from memoranda.service.http.mount import Mount
from memoranda.service.http.route import Route
from memoranda.service.http.routes import ROUTES
from memoranda.service.http.server import Server, bind
from memoranda.service.http.service import Service
from memoranda.service.http.settings import ServerSettings
from tests.timing import GIVE_UP, wait_until


@dataclass(frozen=True)
class RunningService:
    """A service that answers, and how to reach it."""

    service: Service
    server: Server
    address: tuple[str, int]
    clients: list[httpx.Client] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{self.address[0]}:{self.address[1]}"

    def key(self, *scopes: str, tenant: str = "default", user: str | None = None) -> str:
        """A new API key; with all scopes unless some are named."""
        _, token = self.service.keys.create(scopes or SCOPES, tenant=tenant, user=user)
        return token

    def client(self, key: str | None = None, **options: Any) -> httpx.Client:
        """A client that sends a key with every request; it is closed with the service."""
        headers = ({"Authorization": f"Bearer {key}"} if key else {}) | options.pop("headers", {})
        # Without `verify`, each client would load the certificates of the machine, which takes longer than the request.
        opened = httpx.Client(
            base_url=self.url, headers=headers, timeout=GIVE_UP, trust_env=False, verify=False, **options
        )
        self.clients.append(opened)
        return opened


@contextmanager
def run_service(
    home: Path,
    settings: ServerSettings | None = None,
    mounts: tuple[Mount, ...] = (),
    port: int = 0,
    *,
    own_routes: Sequence[Route] = ROUTES,
) -> Iterator[RunningService]:
    """Serve a home on the loopback address, on a free port unless one is given, until the block ends."""
    with memoranda.open(home) as memory, bind("127.0.0.1", port) as listener:
        service = Service(memory, settings or ServerSettings(rate=0))
        server = Server(create_app(service, mounts, own_routes=own_routes), service)
        thread = threading.Thread(target=server.serve_forever, args=(listener,), daemon=True)
        thread.start()
        wait_until(lambda: server.started or not thread.is_alive(), every=0.002)
        assert server.started
        running = RunningService(service, server, listener.getsockname()[:2])
        try:
            yield running
        finally:
            for client in running.clients:
                client.close()
            server.stop()
            thread.join(GIVE_UP)
            assert not thread.is_alive()
            service.close()
