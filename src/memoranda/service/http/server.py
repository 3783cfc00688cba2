"""Runs the service: uvicorn with limits on headers and time, and an end that waits for requests but not for streams."""

import socket
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from memoranda.errors import AccessError
from memoranda.service.http.protocol import LimitedProtocol
from memoranda.service.http.service import Service

LOOPBACK = ("127.0.0.1", "::1", "localhost")
_KEEP_ALIVE_SECONDS = 75
_BACKLOG = 512


def refuse_open_address(host: str, service: Service) -> None:
    """Raise AccessError if the service would answer other machines without any key."""
    if host not in LOOPBACK and not service.keys.exist():
        raise AccessError(
            f"Without an API key the service answers only on this machine, not on {host}. Create a key first: "
            "'memoranda server key create --scope read --scope append'."
        )


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens on an address; port 0 chooses a free one. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=_BACKLOG)


class Server(uvicorn.Server):
    """The server of one service; when it is asked to stop, it notifies the service, so that streams end at once."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._service = service
        settings = service.settings
        limits = {"header_seconds": settings.header_seconds, "max_header_bytes": settings.max_header_bytes}
        super().__init__(
            uvicorn.Config(
                app,
                # uvloop where it is installed; it has no version for Windows.
                loop="auto",
                http=type("LimitedProtocol", (LimitedProtocol,), limits),
                ws="none",
                lifespan="off",
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=int(settings.shutdown_seconds),
            )
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._service.stop()
        super().handle_exit(sig, frame)

    def stop(self) -> None:
        """Ask the server to end, from any thread: running requests are answered first, for a limited time."""
        self._service.stop()
        self.should_exit = True

    def serve_forever(self, listener: socket.socket) -> None:
        """Serve until SIGINT, SIGTERM or `stop`."""
        self.run(sockets=[listener])
