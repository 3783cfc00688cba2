"""MCP over streamable HTTP, on this machine's loopback address only, for whoever knows the token.

Each request stands for itself and is answered with one JSON body: no sessions, no streams, nothing to lose when the
server is started again. A browser must not be talked into asking: foreign `Host` and `Origin` headers are refused.
"""

import base64
import hmac
import logging
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from memoranda.adapters.mcp.eras import HANDSHAKE, SELF_CONTAINED, SERVER_INFO, version_of
from memoranda.adapters.mcp.server import Server
from memoranda.adapters.mcp.wire import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    ProtocolError,
    Request,
    decode,
    encode,
    failure,
    read_request,
)

_log = logging.getLogger(__name__)

ADDRESS = "127.0.0.1"
PATH = "/mcp"
_LARGEST_BODY = 16 * 1024 * 1024
_IDLE_SECONDS = 120
_OWN_HOST = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?")
# Names that a header cannot hold as they are come in this form.
_ENCODED = re.compile(r"=\?base64\?(.*)\?=")
# Which parameter of a method is repeated in the header Mcp-Name.
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_OWN_ORIGIN = re.compile(rf"https?://{_OWN_HOST.pattern}")


class LoopbackServer(ThreadingHTTPServer):
    """Listens from its making on; `serve_forever` answers until `shutdown`."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, server: Server, token: str, port: int) -> None:
        self.mcp = server
        self.token = token.encode()
        super().__init__((ADDRESS, port), _Handler)

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_address[1]}{PATH}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up, or one bad connection, is no matter for anybody else."""
        _log.debug("A connection from %s broke.", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: LoopbackServer
    protocol_version = "HTTP/1.1"
    server_version = f"memoranda/{SERVER_INFO['version']}"
    timeout = _IDLE_SECONDS
    # Head and body leave together; the other side does not wait for the second packet.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        refusal = self._refusal()
        if refusal is not None:
            self._refuse(*refusal)
            return
        status, answer = self._answered(self.rfile.read(int(self.headers["Content-Length"])))
        self._reply(status, b"" if answer is None else encode(answer))

    def do_GET(self) -> None:
        """There is no stream to listen to, and no session to end."""
        refusal = self._refusal(has_body=False)
        self._refuse(*(refusal or (405, "Send messages with POST.")))

    do_DELETE = do_PUT = do_PATCH = do_OPTIONS = do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        _log.debug(format, *args)

    def version_string(self) -> str:
        return self.server_version

    def _refusal(self, *, has_body: bool = True) -> tuple[int, str] | None:
        """Why a request is not even looked at, if it is not."""
        if not _OWN_HOST.fullmatch(self.headers.get("Host", "")):
            return 421, "This server answers on the loopback address only."
        if "Origin" in self.headers and not _OWN_ORIGIN.fullmatch(self.headers["Origin"]):
            return 403, "Pages of other sites may not ask here."
        given = self.headers.get("Authorization", "").encode("utf-8", "replace")
        if not hmac.compare_digest(given, b"Bearer " + self.server.token):
            return 401, "Send the header 'Authorization: Bearer <token>'; 'memoranda mcp --token' prints the token."
        if self.path.split("?")[0].rstrip("/") != PATH:
            return 404, f"The server is at {PATH}."
        return self._refused_body() if has_body else None

    def _refused_body(self) -> tuple[int, str] | None:
        kind = self.headers.get_content_type()
        length = self.headers.get("Content-Length", "")
        if kind != "application/json":
            return 415, "The body must be application/json."
        if not re.fullmatch(r"[0-9]{1,12}", length):
            return 411, "The body must come with its Content-Length."
        return (413, "The body is too large.") if int(length) > _LARGEST_BODY else None

    def _answered(self, body: bytes) -> tuple[int, Any]:
        """The status and the answer for a body."""
        try:
            message = decode(body)
        except ProtocolError as error:
            return 400, failure(None, error)
        request = _request(message)
        try:
            self._check_headers(request)
        except ProtocolError as error:
            return 400, failure(request.id if request else None, error)
        answer = self.server.mcp.answer(message)
        return (202 if answer is None else _status(request, answer)), answer

    def _check_headers(self, request: Request | None) -> None:
        """A request that names its version in its body must name the same in its headers, and what it asks for too."""
        version = version_of(request) if request else ""
        spoken = self.headers.get("MCP-Protocol-Version")
        if spoken is not None and spoken not in (*HANDSHAKE, *SELF_CONTAINED):
            raise ProtocolError(HEADER_MISMATCH, f"MCP-Protocol-Version {spoken[:40]!r} is not spoken here.")
        if request is None or not version:
            return
        if spoken != version:
            raise ProtocolError(HEADER_MISMATCH, "MCP-Protocol-Version is not the version in the body.")
        if self.headers.get("Mcp-Method") != request.method:
            raise ProtocolError(HEADER_MISMATCH, "Mcp-Method is not the method in the body.")
        named = request.params.get(_NAMED_BY.get(request.method, ""))
        if named is not None and _plain(self.headers.get("Mcp-Name", "")) != named:
            raise ProtocolError(HEADER_MISMATCH, "Mcp-Name is not the name in the body.")

    def _refuse(self, status: int, reason: str) -> None:
        # The body was not read, so what comes next on this connection is not a request.
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


def _request(message: Any) -> Request | None:
    """The request in a message, if there is one; what is wrong with it is said by whoever answers it."""
    try:
        return read_request(message)
    except ProtocolError:
        return None


def _plain(value: str) -> str:
    """The text that a header stands for; "" when that cannot be told."""
    encoded = _ENCODED.fullmatch(value)
    if encoded is None:
        return value
    try:
        return base64.b64decode(encoded[1], validate=True).decode()
    except ValueError:
        return ""


def _status(request: Request | None, answer: Any) -> int:
    """Up to 2025-11-25 an error is an answer like any other; later ones have a status of their own."""
    code = answer["error"]["code"] if isinstance(answer, dict) and "error" in answer else None
    if code is None or code == INTERNAL_ERROR:
        return 200
    if request is None:
        return 400
    if not version_of(request):
        return 200
    return 404 if code == METHOD_NOT_FOUND else 400
