"""The HTTP client that providers share: JSON in and out, one deadline per call, errors that the outbox understands.

    ProviderError
    ├── TemporaryProviderError   408, 425, 429, 5xx, no connection, no answer in time, an answer of something else at
    │                            the address: not JSON, too large, a 404 that is not JSON, or one without `confirmed`
    └── PermanentProviderError   every other 3xx and 4xx

A hook should not catch them: a delivery that failed permanently is parked at once, and one that failed temporarily
is retried, not before the time that the service asked for (`Retry-After`). `status` of an error is that of the answer,
for a caller to whom 404 or 409 is an answer like any other. Errors and logs show no secret. Requests are
repeated within a call only if that is safe, and go straight to the configured host: redirects are refused, because they
would send the credentials elsewhere, and proxies are not used.

`http.client` is imported at the first request, so a provider that uses this module costs nothing before.
"""

import json
import logging
import os
import random
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from memoranda.errors import PermanentProviderError, ProviderError, TemporaryProviderError
from memoranda.safety.redaction import Redactor
from memoranda.support.shorten import shorten_end
from memoranda.support.tool import JsonObject

if TYPE_CHECKING:
    from memoranda.external.remote_connection import RemoteConnection, Response

_log = logging.getLogger(__name__)

_IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS"})
_TEMPORARY_STATUSES = frozenset({408, 425, 429})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SECRET_HEADER = re.compile("auth|key|token|secret|cookie", re.IGNORECASE)
_MAX_ERROR_CHARS = 300
_JSON = "application/json"
_FIRST_PAUSE = 0.2
_MAX_RETRIES = 2
_NOTHING: Mapping[str, Any] = {}
_Result = TypeVar("_Result")


class CircuitBreaker:
    """Closed at first. Opens after `max_failures` in a row; after `open_seconds` one call may probe the service.

    A probe that succeeds closes it, one that fails opens it again. Thread-safe.
    """

    def __init__(
        self, max_failures: int = 3, open_seconds: float = 30.0, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_failures = max_failures
        self._open_seconds = open_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._last_error = ""
        self._open_until = 0.0
        self._probing = False

    def run(self, call: Callable[[], _Result], service: str) -> _Result:
        """The result of a call, whose outcome is counted; raises TemporaryProviderError while none is allowed."""
        with self._lock:
            seconds = max(0.0, self._open_until - self._clock())
            if self._open_until and (self._probing or seconds):
                raise TemporaryProviderError(
                    f"{service} keeps failing, and is asked again in {seconds:.0f} seconds: {self._last_error}", seconds
                )
            self._probing = bool(self._open_until)
        try:
            result = call()
        except BaseException as error:
            self._count_failure(error)
            raise
        with self._lock:
            self._failures, self._open_until, self._probing = 0, 0.0, False
        return result

    def _count_failure(self, error: BaseException) -> None:
        """Count a failure; a service that says how long to wait opens the breaker for that long at once."""
        retry_after = error.retry_after if isinstance(error, TemporaryProviderError) else None
        with self._lock:
            self._failures += 1
            self._last_error = str(error)
            if self._probing or self._failures >= self._max_failures or retry_after:
                self._open_until = self._clock() + max(self._open_seconds, retry_after or 0.0)
            self._probing = False


class _Address(NamedTuple):
    secure: bool
    host: str
    port: int
    base_path: str


class RemoteClient:
    """Calls one service for one provider. Thread-safe; close it in `shutdown`.

    `provider` is named in errors. `secrets` are values that no error may show, besides those of authentication headers.
    `timeout` is the deadline of a whole call, repetitions included; `max_bytes` limits an answer. Plain HTTP is only
    accepted for this machine, unless `allow_http` says that the network is trusted.
    """

    def __init__(
        self,
        provider: str,
        base_url: str,
        *,
        headers: Mapping[str, str] = _NOTHING,
        secrets: Collection[str] = (),
        timeout: float = 10.0,
        max_bytes: int = 5_000_000,
        allow_http: bool = False,
        recall_breaker: CircuitBreaker | None = None,
    ) -> None:
        self._provider = provider
        self._address = _parse_address(provider, base_url, allow_http)
        self._headers = {"Accept": _JSON, "User-Agent": "memoranda", **headers}
        self._secrets = {*secrets, *_header_secrets(headers)}
        self._redactor = Redactor(self._secrets)
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._breaker = recall_breaker or CircuitBreaker()
        self._lock = threading.Lock()
        self._idle: RemoteConnection | None = None
        self._closed = False

    def get(self, path: str, **options: Any) -> Any:
        return self.request("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Any:
        return self.request("POST", path, body, **options)

    def recall(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Send a request of `prefetch`, which only reads, behind the circuit breaker.

        A service that is down therefore costs a few deadlines and not one per turn.
        """
        return self._breaker.run(
            lambda: self.request(method, path, body, retry_safe=True, **options), self._address.host
        )

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] = _NOTHING,
        headers: Mapping[str, str] = _NOTHING,
        idempotency_key: str = "",
        retry_safe: bool = False,
        timeout: float | None = None,
    ) -> Any:
        """Send a request and return the JSON of the answer, None for an empty one. Raises a subclass of ProviderError.

        A body of bytes is sent as it is, with the caller's `Content-Type`. Another `Accept` than JSON returns bytes.
        `path` continues the base URL. `idempotency_key` is sent as `Idempotency-Key`. A request is repeated, within the
        deadline, if its method is idempotent, it has a key, or `retry_safe` says that it may arrive twice.
        """
        deadline = time.monotonic() + (self._timeout if timeout is None else timeout)
        if not self._secrets.issuperset(more := _header_secrets(headers)):
            self._secrets = {*self._secrets, *more}
            self._redactor = Redactor(self._secrets)
        sent = {**self._headers, **headers} | ({"Idempotency-Key": idempotency_key} if idempotency_key else {})
        payload = body if isinstance(body, bytes) else None
        if body is not None and payload is None:
            payload = _as_json(body)
            sent["Content-Type"] = _JSON
        target = self._target(path, query)
        may_repeat = method in _IDEMPOTENT or bool(idempotency_key) or retry_safe
        attempt = 0
        while True:
            try:
                return self._send_once(method, target, payload, sent, deadline, reuse=may_repeat)
            except TemporaryProviderError as error:
                pause = self._pause(error, attempt, deadline) if may_repeat and not self._closed else None
                if pause is None:
                    raise
                _log.info("%s: %s Repeated in %.1f s.", self._provider, error, pause)
            time.sleep(pause)
            attempt += 1

    def close(self) -> None:
        """Close the idle connection; requests fail from now on."""
        with self._lock:
            self._closed = True
            connection, self._idle = self._idle, None
        if connection is not None:
            connection.close()

    def _pause(self, error: TemporaryProviderError, attempt: int, deadline: float) -> float | None:
        """How long to wait before another attempt; None when there is no time or no attempt left.

        Something else that answers at the address, perhaps with megabytes, is not asked again at once.
        """
        if error.status is not None and error.status not in _TEMPORARY_STATUSES and error.status < 500:
            return None
        backoff: float = _FIRST_PAUSE * 2**attempt * random.uniform(0.5, 1.0)
        pause = backoff if error.retry_after is None else max(backoff, error.retry_after)
        return pause if attempt < _MAX_RETRIES and time.monotonic() + pause < deadline else None

    def _target(self, path: str, query: Mapping[str, Any]) -> str:
        target = self._address.base_path + "/" + quote(path.lstrip("/"), safe="/:@!$&'()*+,;=~%")
        return f"{target}?{urlencode(query, doseq=True)}" if query else target

    def _send_once(
        self,
        method: str,
        target: str,
        payload: bytes | None,
        headers: Mapping[str, str],
        deadline: float,
        *,
        reuse: bool,
    ) -> Any:
        what = self._redacted(f"{method} {target.partition('?')[0]} at {self._address.host}")
        connection = self._take_connection(reuse)
        try:
            response = connection.exchange(method, target, payload, headers, deadline, self._max_bytes)
        except (TemporaryProviderError, PermanentProviderError) as error:
            connection.close()
            reason = shorten_end(self._redacted(str(error)), _MAX_ERROR_CHARS)
            raise type(error)(f"{what}: {reason}.") from error
        except BaseException:
            connection.close()
            raise
        if response.reusable:
            self._keep_connection(connection)
        else:
            connection.close()
        return self._decode(what, response, as_bytes=headers["Accept"] != _JSON)

    def _decode(self, what: str, response: "Response", *, as_bytes: bool) -> Any:
        if not 200 <= response.status < 300:
            raise self._status_error(what, response, as_bytes=as_bytes)
        if response.truncated:
            raise TemporaryProviderError(
                f"{what}: the answer is larger than {self._max_bytes:,} bytes.", status=response.status
            )
        if as_bytes:
            return response.body
        if not response.body.strip():
            return None
        try:
            return json.loads(response.body)
        except (ValueError, RecursionError) as error:
            excerpt = self._excerpt(response.body)
            raise TemporaryProviderError(
                f"{what}: the answer is not JSON: {excerpt}", status=response.status
            ) from error

    def _status_error(self, what: str, response: "Response", *, as_bytes: bool) -> ProviderError:
        message = f"{what}: {response.status} {self._redacted(response.reason)}".rstrip()
        if response.body.strip():
            message += f" ({self._excerpt(response.body)})"
        is_foreign = response.status == 404 and not as_bytes and not _is_json_or_empty(response.body)
        if response.status in _TEMPORARY_STATUSES or response.status >= 500 or is_foreign:
            return TemporaryProviderError(f"{message}.", response.retry_after, response.status)
        return PermanentProviderError(f"{message}. {_advice(response.status, self._provider)}", response.status)

    def _excerpt(self, body: bytes) -> str:
        """The beginning of an answer, on one line and without secrets."""
        text = " ".join(body[: 20 * _MAX_ERROR_CHARS].decode("utf-8", "replace").split())
        # Redacted before it is cut: half a secret would not be recognised.
        return shorten_end(self._redacted(text), _MAX_ERROR_CHARS)

    def _redacted(self, text: str) -> str:
        return self._redactor.text(text)[0]

    def _take_connection(self, reuse: bool) -> "RemoteConnection":
        """An idle connection, or a new one.

        A request that must not be repeated gets a new one: the server may have closed an idle connection, and it would
        be unknown whether it read the request.
        """
        # Here, because TLS and the parser of headers take 50 ms to import.
        from memoranda.external.remote_connection import RemoteConnection

        with self._lock:
            if self._closed:
                raise TemporaryProviderError(f"The connection to {self._address.host} has been closed.")
            # A connection that was opened before a fork belongs to the parent process.
            if reuse and self._idle is not None and self._idle.process == os.getpid():
                connection, self._idle = self._idle, None
                return connection
        return RemoteConnection(self._address.host, self._address.port, secure=self._address.secure)

    def _keep_connection(self, connection: "RemoteConnection") -> None:
        with self._lock:
            if self._idle is None and not self._closed:
                self._idle = connection
                return
        connection.close()


def _parse_address(provider: str, base_url: str, allow_http: bool) -> _Address:
    try:
        parts = urlsplit(base_url.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ProviderError(f"The address of {provider} is not a URL. {_advice(404, provider)}") from None
    if parts.scheme not in ("http", "https") or not host or parts.username or parts.query or parts.fragment:
        raise ProviderError(
            f"The address of {provider} must look like https://host/path, without credentials. {_advice(404, provider)}"
        )
    secure = parts.scheme == "https"
    if not secure and not allow_http and host not in _LOOPBACK:
        raise ProviderError(f"The address of {provider} must begin with https://, unless it is on this machine.")
    return _Address(secure, host, port or (443 if secure else 80), parts.path.rstrip("/"))


def _as_json(body: Any) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError) as error:
        raise PermanentProviderError(f"The request cannot be written as JSON: {error}.") from error


def _is_json_or_empty(body: bytes) -> bool:
    try:
        json.loads(body.strip() or b"null")
    except (ValueError, RecursionError):
        return False
    return True


def _header_secrets(headers: Mapping[str, str]) -> list[str]:
    """The values of authentication headers, with and without the scheme before them."""
    values = [value for name, value in headers.items() if _SECRET_HEADER.search(name)]
    return [*values, *(value.rpartition(" ")[2] for value in values)]


def _advice(status: int, provider: str) -> str:
    """What a person can do about an error that repeating does not solve."""
    setup = f"'memoranda provider setup {provider}'"
    if 300 <= status < 400:
        return f"The service is elsewhere; {setup} sets another address."
    if status in (401, 403):
        return f"The credentials were refused; {setup} sets others."
    if status == 402:
        return "The account has no credit left, or its plan does not include this."
    if status in (404, 410):
        return f"If the address is wrong, {setup} sets another one."
    if status == 413:
        return "It is too large for the service."
    return "The service refuses this request, and repeating it would not help."


def unless_refused(call: Callable[[], Any], default: Any, *statuses: int) -> Any:
    """The result of a call; `default` if the service refuses it with one of the statuses, 404 if none is named."""
    try:
        return call()
    except PermanentProviderError as error:
        if error.status not in (statuses or (404,)):
            raise
        return default


def as_object(answer: Any, vendor: str) -> JsonObject:
    """An answer that must be an object; raises TemporaryProviderError: something else answers at the address."""
    if not isinstance(answer, dict):
        raise TemporaryProviderError(f"{vendor} answered with {type(answer).__name__} instead of an object.")
    return answer


def confirmed(answer: Any, vendor: str, *names: str) -> Any:
    """The first of these fields in the answer to a write; raises TemporaryProviderError if it has none of them.

    They are what only the service that stored something can know, such as an id: a proxy, or another service at the
    address, answers 200 to everything, often with `{}` or `"success": true`.
    """
    found = answer if isinstance(answer, dict) and answer.get("success") is not False else {}
    value = next((found[name] for name in names if found.get(name) not in (None, "")), None)
    if value is None:
        raise TemporaryProviderError(f"{vendor} did not confirm that it stored anything: {answer!r:.200}")
    return value


def as_objects(answer: Any, vendor: str) -> list[JsonObject]:
    """An answer that must be a list of objects; raises TemporaryProviderError."""
    if not isinstance(answer, list) or not all(isinstance(row, dict) for row in answer):
        raise TemporaryProviderError(f"{vendor} answered with {type(answer).__name__} instead of a list of objects.")
    return answer
