"""MCP over streamable HTTP, on the loopback address only, for clients that send the token.

Each request is independent and gets one JSON body: no sessions and no streams, so a restart loses nothing.
"""

import base64
import logging
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from memoranda.adapters.loopback import ADDRESS, check_header_names, check_request
from memoranda.adapters.mcp.json_rpc import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    ProtocolError,
    RpcRequest,
    decode,
    encode,
    failure,
    read_request,
)
from memoranda.adapters.mcp.protocol_versions import HANDSHAKE, SELF_CONTAINED, SERVER_INFO, request_version
from memoranda.adapters.mcp.server import McpServer

_log = logging.getLogger(__name__)

PATH = "/mcp"
_MAX_BODY_BYTES = 16 * 1024 * 1024
_IDLE_TIMEOUT = 120
# A client that connects and sends nothing gets less time, because every connection takes a thread.
_FIRST_REQUEST_TIMEOUT = 10
_MAX_CONNECTIONS = 128
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
# The encoding that MCP prescribes for names that a header cannot contain.
_BASE64_VALUE = re.compile(r"=\?base64\?(.*)\?=")
# Which parameter of a method the header Mcp-Name repeats.
_NAME_PARAMETER = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


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
        status, answer = self._answer_body(self.rfile.read(int(self.headers["Content-Length"])))
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
        if self.headers.get_content_type() != "application/json":
            return 415, "The body must be application/json."
        if not re.fullmatch(r"[0-9]{1,12}", length):
            return 411, "The request needs a Content-Length header."
        return (413, "The body is too large.") if int(length) > _MAX_BODY_BYTES else None

    def _answer_body(self, body: bytes) -> tuple[int, Any]:
        """Returns the HTTP status and the JSON answer for a body; the answer to a notification is None."""
        try:
            message = decode(body)
        except ProtocolError as error:
            return 400, failure(None, error)
        request = _try_to_read(message)
        try:
            self._compare_headers(request)
        except ProtocolError as error:
            return 400, failure(request.id if request else None, error)
        answer = self.server.mcp.answer(message)
        return (202 if answer is None else _status_of(request, answer)), answer

    def _compare_headers(self, request: RpcRequest | None) -> None:
        """Refuses a request if its headers and its body disagree about the version, method or name.

        Proxies route by the headers, so a difference would let a client bypass them.
        """
        version = request_version(request) if request else ""
        header_version = self.headers.get("MCP-Protocol-Version")
        if header_version is not None and header_version not in (*HANDSHAKE, *SELF_CONTAINED):
            raise ProtocolError(HEADER_MISMATCH, f"MCP-Protocol-Version {header_version[:40]!r} is not supported.")
        if request is None or not version:
            return
        if header_version != version:
            raise ProtocolError(HEADER_MISMATCH, "MCP-Protocol-Version is not the version in the body.")
        if self.headers.get("Mcp-Method") != request.method:
            raise ProtocolError(HEADER_MISMATCH, "Mcp-Method is not the method in the body.")
        name = request.params.get(_NAME_PARAMETER.get(request.method, ""))
        if name is not None and _decode_header(self.headers.get("Mcp-Name", "")) != name:
            raise ProtocolError(HEADER_MISMATCH, "Mcp-Name is not the name in the body.")

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


def _try_to_read(message: Any) -> RpcRequest | None:
    """Returns the request in a message; None for a broken one, which the MCP server answers with an error."""
    try:
        return read_request(message)
    except ProtocolError:
        return None


def _decode_header(value: str) -> str:
    """Returns the text of a header value that may be base64; "" when it cannot be decoded."""
    encoded = _BASE64_VALUE.fullmatch(value)
    if encoded is None:
        return value
    try:
        return base64.b64decode(encoded[1], validate=True).decode()
    except ValueError:
        return ""


def _status_of(request: RpcRequest | None, answer: Any) -> int:
    """Returns the HTTP status of an answer: up to version 2025-11-25 an error has the status 200 as well."""
    code = answer["error"]["code"] if isinstance(answer, dict) and "error" in answer else None
    if code is None or code == INTERNAL_ERROR:
        return 200
    if request is None:
        return 400
    if not request_version(request):
        return 200
    return 404 if code == METHOD_NOT_FOUND else 400
