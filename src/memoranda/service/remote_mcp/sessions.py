"""The MCP sessions of remote clients: what each of them saw when it connected.

A session is a cache and never an authentication: every request carries its own credentials. The id is signed for its
owner, so that any process of the service, also after a restart, recognises it and continues the session; only the
memory text is then read again. An id that was not given to this owner does not exist.
"""

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from memoranda.integrations.mcp.server import McpServer
from memoranda.support.lazy_dataclass import dataclass

_MAX_SESSIONS = 2_000
_MAX_ENDED = 20_000
_IDLE_SECONDS = 3_600.0
_NONCE_BYTES = 16
_SIGNATURE_CHARS = 32


@dataclass(frozen=True, slots=True)
class SessionOwner:
    """Whose sessions these are: `name` identifies a key and its user, `secret` signs the ids of their sessions."""

    name: str
    secret: bytes

    def sign(self, nonce: str) -> str:
        text = f"mcp-session\0{self.name}\0{nonce}".encode()
        return hmac.new(self.secret, text, hashlib.sha256).hexdigest()[:_SIGNATURE_CHARS]

    def owns(self, session_id: str) -> bool:
        """Whether a session id was given to this owner."""
        nonce, _, signature = session_id.rpartition(".")
        return bool(nonce) and hmac.compare_digest(signature.encode(), self.sign(nonce).encode())


@dataclass(slots=True)
class _CachedServer:
    server: McpServer
    last_used: float


class RemoteSessions:
    """The sessions in the memory of this process; the ones that were not used for longest are dropped first."""

    def __init__(
        self,
        *,
        max_sessions: int = _MAX_SESSIONS,
        idle_seconds: float = _IDLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_sessions = max_sessions
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._servers: OrderedDict[str, _CachedServer] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._servers)

    def start(self, owner: SessionOwner, server: McpServer) -> str:
        """Starts a session that `server` answers; returns its id."""
        nonce = secrets.token_urlsafe(_NONCE_BYTES)
        session_id = f"{nonce}.{owner.sign(nonce)}"
        self._store(session_id, server)
        return session_id

    def find(self, owner: SessionOwner, session_id: str, create: Callable[[], McpServer]) -> McpServer | None:
        """Returns the server of a session; None if it was ended, or is not a session of this owner.

        `create` makes a server for a session that this process does not have.
        """
        if not self.is_open(owner, session_id):
            return None
        with self._lock:
            cached = self._servers.get(session_id)
            if cached is not None:
                cached.last_used = self._clock()
                self._servers.move_to_end(session_id)
                return cached.server
        server = create()
        server.resume()
        self._store(session_id, server)
        return server

    def is_open(self, owner: SessionOwner, session_id: str) -> bool:
        """Whether this is a session of the owner that was not ended."""
        return owner.owns(session_id) and session_id not in self._ended

    def end(self, owner: SessionOwner, session_id: str) -> bool:
        """Ends a session; False if there is none of this owner with that id."""
        if not self.is_open(owner, session_id):
            return False
        with self._lock:
            self._servers.pop(session_id, None)
            self._ended[session_id] = None
            while len(self._ended) > _MAX_ENDED:
                self._ended.popitem(last=False)
        return True

    def _store(self, session_id: str, server: McpServer) -> None:
        now = self._clock()
        with self._lock:
            self._servers[session_id] = _CachedServer(server, now)
            while len(self._servers) > self._max_sessions:
                self._servers.popitem(last=False)
            # The session that was just stored ends this loop.
            while next(iter(self._servers.values())).last_used < now - self._idle_seconds:
                self._servers.popitem(last=False)
