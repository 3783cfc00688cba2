"""MCP over streamable HTTP, on the loopback address only, for clients that send the token.

Each request is independent and gets one JSON body: no sessions and no streams, so a restart loses nothing. The token is
created when it is first needed, and stored with the secrets of the home.
"""

import logging
import re
import secrets
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from memoranda.home import config
from memoranda.integrations.mcp.protocol import INTERNAL_ERROR, SERVER_INFO, ProtocolError, encode, failure
from memoranda.integrations.mcp.server import McpServer
from memoranda.integrations.mcp.streamable_http import MAX_BODY_BYTES, PATH, answer_body, is_json
from memoranda.support.home import Home
from memoranda.support.loopback import ADDRESS, check_header_names, check_request

TOKEN_VARIABLE = "MEMORANDA_MCP_TOKEN"
_log = logging.getLogger(__name__)
_IDLE_TIMEOUT = 120
# A client that connects and sends nothing gets less time, because every connection takes a thread.
_FIRST_REQUEST_TIMEOUT = 10
_MAX_CONNECTIONS = 128
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class McpHttpServer(ThreadingHTTPServer):
    """Listens as soon as it exists; `serve_forever` answers requests until `shutdown`."""

    daemon_threads = True
    block_on_close = False
    # With Python's default of 5, clients that connect at once wait for seconds.
    request_queue_size = _MAX_CONNECTIONS

    def __init__(self, server: McpServer, token: str, port: int) -> None:
        self.mcp = server
        self.token = token
        self._connections = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        super().__init__((ADDRESS, port), _McpHandler)

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_address[1]}{PATH}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answers in a thread of the connection; a connection above the limit is refused at once."""
        if self._connections.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        request.settimeout(1)
        try:
            request.sendall(_BUSY)
        except OSError as error:
            _log.debug("%s left before it was refused: %s", client_address, error)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Logs a failed connection; other connections are not affected."""
        _log.debug("A connection from %s failed.", client_address, exc_info=True)


class _McpHandler(BaseHTTPRequestHandler):
    server: McpHttpServer
    protocol_version = "HTTP/1.1"
    server_version = f"memoranda/{SERVER_INFO['version']}"
    connection: socket.socket
    timeout = _FIRST_REQUEST_TIMEOUT
    # Head and body leave in one packet, so that the client does not wait for a second one.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        refusal = self._check_request() or self._check_body()
        if refusal is not None:
            self._refuse(*refusal)
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status, answer = answer_body(self.server.mcp, self.headers, body)
        self._reply(status, b"" if answer is None else encode(answer))

    def do_GET(self) -> None:
        """Refuses: there is no stream to listen to, and no session to end."""
        self._refuse(*(self._check_request() or (405, "Send messages with POST.")))

    do_DELETE = do_PUT = do_PATCH = do_OPTIONS = do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        _log.debug(format, *args)

    def version_string(self) -> str:
        return self.server_version

    def _check_request(self) -> tuple[int, str] | None:
        """Returns the status and the reason to refuse this request; None when it may be answered."""
        refusal = check_header_names(self.headers.keys()) or check_request(
            host=self.headers.get("Host"),
            origin=self.headers.get("Origin"),
            authorization=self.headers.get("Authorization"),
            token=self.server.token,
        )
        if refusal is None and self.path.split("?")[0].rstrip("/") != PATH:
            return 404, f"The server is at {PATH}."
        return refusal

    def _check_body(self) -> tuple[int, str] | None:
        length = self.headers.get("Content-Length", "")
        if not is_json(self.headers.get("Content-Type")):
            return 415, "The body must be application/json."
        if not re.fullmatch(r"[0-9]{1,12}", length):
            return 411, "The request needs a Content-Length header."
        return (413, "The body is too large.") if int(length) > MAX_BODY_BYTES else None

    def _refuse(self, status: int, reason: str) -> None:
        # The body was not read, so what follows on this connection is not a request.
        self.close_connection = True
        self._reply(status, encode(failure(None, ProtocolError(INTERNAL_ERROR, reason))))

    def _reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        if body:
            self.send_header("Content-Type", "application/json")
        if status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        if status == 405:
            self.send_header("Allow", "POST")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()
        self.connection.settimeout(_IDLE_TIMEOUT)


def load_or_create_token(home: Home, *, new: bool = False) -> str:
    """Returns the token from the environment or the secrets of a home; creates one if there is none, or if `new`."""
    token = config.credentials(home).get(TOKEN_VARIABLE, "").strip()
    if token and not new:
        return token
    token = secrets.token_urlsafe(32)
    config.set_secret(home, TOKEN_VARIABLE, token)
    return token
