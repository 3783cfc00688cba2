"""A real HTTP service on this machine, in threads, that answers each path as a test says."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Respond = Callable[["Exchange"], None]


class Exchange(BaseHTTPRequestHandler):
    """One request, with what a test needs to answer it in a good or a bad way."""

    protocol_version = "HTTP/1.1"
    # Else every answer on a kept connection waits 40 ms for the client's acknowledgement of the headers.
    disable_nagle_algorithm = True
    server: "Service"

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length)
        self.server.requests.append((self.command, self.path, dict(self.headers), self.body))
        self.server.peers.add(self.client_address[1])
        self.server.respond(self)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def answer(self, status: int = 200, value: Any = None, **headers: str) -> None:
        """A complete answer; header names with _ for -."""
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def raw(self, data: bytes) -> None:
        """Bytes as they are, and the end of the connection."""
        self.wfile.write(data)
        self.close_connection = True

    def reset(self) -> None:
        """The connection is torn, without a word."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.close_connection = True
        self.connection.close()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Service(ThreadingHTTPServer):
    """Remembers every request; `respond` may be changed while it runs."""

    daemon_threads = True

    def __init__(self, respond: Respond) -> None:
        self.respond = respond
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.peers: set[int] = set()
        self.ended = threading.Event()
        super().__init__(("127.0.0.1", 0), Exchange)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_: Any) -> None:
        """A client that left is not worth a traceback."""


@contextmanager
def serving(respond: Respond) -> Iterator[Service]:
    with Service(respond) as service:
        threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield service
        finally:
            service.ended.set()
            service.shutdown()
