"""One HTTP connection whose every step, from connecting to the last byte, ends at a deadline.

A socket's own timeout begins again with every byte, so a server that sends one byte a second would never time out.
Here each receive gets what is left of the deadline.
"""

import http.client
import io
import os
import socket
import ssl
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any

from memoranda.errors import PermanentProviderError, TemporaryProviderError
from memoranda.support.lazy_dataclass import dataclass

_CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class Response:
    """An answer. `truncated` says that it was larger than allowed; `reusable`, that the connection stays open."""

    status: int
    reason: str
    body: bytes
    retry_after: float | None
    truncated: bool
    reusable: bool


class RemoteConnection:
    """A connection that opens at the first exchange. For one thread at a time."""

    def __init__(self, host: str, port: int, *, secure: bool) -> None:
        self.process = os.getpid()
        self._secure = secure
        self._socket: _DeadlineSocket | None = None
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self._http = kind(host, port)

    def exchange(
        self,
        method: str,
        target: str,
        payload: bytes | None,
        headers: Mapping[str, str],
        deadline: float,
        max_bytes: int,
    ) -> Response:
        """Send a request and read the answer, at most `max_bytes` of it, until `deadline` (monotonic seconds).

        Raises TemporaryProviderError without a complete answer: no connection, too late, broken off, not HTTP.
        """
        try:
            if self._socket is None:
                self._socket = _connect(self._http.host, self._http.port, deadline, secure=self._secure)
                self._http.sock = self._socket
            self._socket.deadline = deadline
            self._http.request(method, target, payload, dict(headers))
            return _read(self._http.getresponse(), max_bytes)
        except TimeoutError as error:
            raise TemporaryProviderError("no answer in time") from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise TemporaryProviderError(f"no usable connection ({reason}){_hint(error)}") from error
        except ValueError:
            # The text of the exception may contain a credential.
            problem = "the address, a header or a credential contains characters that HTTP does not allow"
            raise PermanentProviderError(problem) from None

    def close(self) -> None:
        self._http.close()
        if self._socket is not None:
            self._socket.disconnect()


class _DeadlineSocket:
    """As much of a socket as `http.client` uses."""

    def __init__(self, connected: socket.socket, deadline: float) -> None:
        self._socket = connected
        self.deadline = deadline

    def sendall(self, data: bytes) -> None:
        self._socket.settimeout(_seconds_left(self.deadline))
        self._socket.sendall(data)

    def makefile(self, mode: str, *_: Any, **__: Any) -> io.BufferedReader:
        return io.BufferedReader(_Receiver(self))

    def recv_into(self, buffer: Any) -> int:
        self._socket.settimeout(_seconds_left(self.deadline))
        return self._socket.recv_into(buffer)

    def close(self) -> None:
        """Do nothing yet: `http.client` closes the socket before it has read the body; `disconnect` closes it."""

    def disconnect(self) -> None:
        self._socket.close()


class _Receiver(io.RawIOBase):
    """A file object that reads what a `_DeadlineSocket` receives."""

    def __init__(self, connection: _DeadlineSocket) -> None:
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._connection.recv_into(buffer)


def _hint(error: Exception) -> str:
    """What a person can check, for the errors that have a usual cause."""
    if isinstance(error, socket.gaierror):
        return "; check the address and the network"
    if isinstance(error, ConnectionRefusedError):
        return "; nothing listens there, so check whether the service runs"
    if isinstance(error, ssl.SSLCertVerificationError):
        return "; its certificate is not trusted on this machine"
    if isinstance(error, ssl.SSLError):
        return "; check whether the address should begin with http:// or https://"
    return ""


def _connect(host: str, port: int, deadline: float, *, secure: bool) -> _DeadlineSocket:
    """Try each address of a host in turn."""
    failure: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        connected = socket.socket(family, kind, protocol)
        try:
            connected.settimeout(_seconds_left(deadline))
            connected.connect(address)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if secure:
                connected.settimeout(_seconds_left(deadline))
                connected = _tls_context().wrap_socket(connected, server_hostname=host)
            return _DeadlineSocket(connected, deadline)
        except OSError as error:
            connected.close()
            failure = error
    raise failure


@lru_cache(maxsize=1)
def _tls_context() -> ssl.SSLContext:
    return ssl.create_default_context()


def _seconds_left(deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


def _read(response: http.client.HTTPResponse, max_bytes: int) -> Response:
    received: list[bytes] = []
    size = 0
    declared = response.length or 0
    while declared <= max_bytes and size <= max_bytes:
        chunk = response.read(min(_CHUNK, max_bytes + 1 - size))
        if not chunk:
            break
        received.append(chunk)
        size += len(chunk)
    truncated = max(declared, size) > max_bytes
    if not truncated and response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return Response(
        response.status,
        response.reason or "",
        b"" if truncated else b"".join(received),
        _retry_after(response.getheader("Retry-After")),
        truncated,
        reusable=not truncated and not response.will_close,
    )


def _retry_after(header: str | None) -> float | None:
    """The seconds of a `Retry-After` header, which is a number or a date; None when it is neither."""
    text = (header or "").strip()
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        when = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())
