"""A small local server in place of a model vendor: it gives every request the same answer, and stores the requests."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

REPLY = "Noted."


class ModelServer(ThreadingHTTPServer):
    """Stores the bodies of requests in the order in which they arrived; a subclass speaks the API of one vendor."""

    daemon_threads = True
    path = ""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{self.path}"

    def answer(self, path: str, body: dict[str, Any]) -> tuple[str, str]:
        """Returns the content type and the text of an answer, and stores the request."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ModelServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
        self._send(*self.server.answer(self.path, body))

    def do_GET(self) -> None:
        """Answers requests for the list of models with none, because the program knows its own."""
        self._send("application/json", '{"models": []}')

    def log_message(self, format: str, *args: Any) -> None:
        """Prints nothing."""

    def _send(self, content_type: str, text: str) -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
