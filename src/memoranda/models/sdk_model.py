"""The base of the clients that use a vendor's SDK: opens the SDK client, sends requests, explains errors.

The SDKs are optional and take a second or two to import, so the first call imports them. The clients ask for plain JSON
instead of the SDK's typed objects: services that are merely compatible send unknown fields and omit required ones.

A model may call a tool that does not exist or write invalid JSON, and a service refuses every later request that
repeats the call. So the clients repair names and arguments before they send a call back. The repair changes only the
request, never the record.
"""

import importlib
import json
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memoranda.errors import ModelError
from memoranda.models.model import Message, OnText, Reply
from memoranda.models.model_call import (
    CallFailure,
    FailedAttemptError,
    ModelCall,
    connection_failure,
    failure_from_status,
    retry_after,
    unreadable_reply,
)
from memoranda.models.settings import ModelSettings
from memoranda.models.tokens import context_window
from memoranda.support.tool import JsonObject, Tool

_CONNECT_SECONDS = 10.0
_GRACE_SECONDS = 1.0


class SdkModel(ABC):
    """A chat model behind a vendor's SDK; a subclass builds the request and reads the response."""

    package = ""

    def __init__(self, settings: ModelSettings, api_key: str) -> None:
        self._settings = settings
        self._api_key = api_key
        self._client: Any = None
        self._client_lock = threading.Lock()

    @property
    def name(self) -> str:
        return self._settings.name

    @property
    def provider(self) -> str:
        return self._settings.provider or self.package

    @property
    def window(self) -> int:
        return self._settings.window or context_window(self.name)

    @property
    def label(self) -> str:
        """The name of the model and its service, for error messages."""
        return f"{self.name} ({self.provider})"

    def reply(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        on_text: OnText | None = None,
        max_tokens: int | None = None,
        deadline: float | None = None,
    ) -> Reply:
        body = self._body(system, messages, tools, max_tokens or self._settings.max_tokens)
        seconds = self._settings.deadline_seconds if deadline is None else deadline

        def attempt(stream: OnText, seconds_left: float) -> Reply:
            try:
                return self._ask(body, None if on_text is None else stream, seconds_left)
            except ModelError:
                raise
            except Exception as error:
                failure = self._explain(error)
                if failure is None:
                    raise
                raise FailedAttemptError(failure) from error

        return ModelCall(self.label, attempt, deadline=seconds, tries=self._settings.tries).reply(on_text)

    def close(self) -> None:
        """Closes the connections."""
        with self._client_lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    @abstractmethod
    def _body(self, system: str, messages: Sequence[Message], tools: Sequence[Tool], max_tokens: int) -> JsonObject:
        """Builds the request as JSON."""

    @abstractmethod
    def _ask(self, body: JsonObject, on_text: OnText | None, seconds_left: float) -> Reply:
        """Sends the request once and reads the response; raises what the SDK raises."""

    @abstractmethod
    def _make_client(self, sdk: Any) -> Any:
        """Creates the SDK's client object."""

    def _post(self, path: str, body: JsonObject, seconds_left: float) -> Any:
        """Sends a request and returns the whole response as JSON."""
        return self._sdk_client().post(path, cast_to=object, body=body, options=self._options(seconds_left))

    def _stream(self, path: str, body: JsonObject, seconds_left: float) -> Iterator[Any]:
        """Sends a request and yields the events of the response as JSON; always releases the connection."""
        client = self._sdk_client()
        kind = importlib.import_module(self.package).Stream[object]
        sent = {**body, "stream": True}
        with client.post(
            path, cast_to=object, body=sent, options=self._options(seconds_left), stream=True, stream_cls=kind
        ) as stream:
            yield from stream

    def _options(self, seconds_left: float) -> JsonObject:
        httpx = importlib.import_module("httpx2")
        # A little longer than the caller waits, so that the caller reports the deadline, not the socket.
        timeout = seconds_left + _GRACE_SECONDS
        return {"timeout": httpx.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS))}

    def _sdk_client(self) -> Any:
        with self._client_lock:
            if self._client is None:
                self._client = self._make_client(import_sdk(self.package))
            return self._client

    def _explain(self, error: Exception) -> CallFailure | None:
        """The failure that an exception means; None if only a defect in Memoranda explains it."""
        if isinstance(error, FailedAttemptError):
            return error.failure
        sdk, httpx = importlib.import_module(self.package), importlib.import_module("httpx2")
        if isinstance(error, sdk.APIResponseValidationError):
            return unreadable_reply(self.label, error)
        if isinstance(error, sdk.APIStatusError):
            code, message = _read_error(error.body, str(error))
            # An error in the middle of a stream has the status with which the stream started.
            status = error.status_code if error.status_code >= 400 else 0
            return failure_from_status(
                self.label, status, self._without_key(message), code=code, after=retry_after(error.response.headers)
            )
        if isinstance(error, sdk.APIConnectionError | httpx.TransportError):
            return connection_failure(self.label, self._without_key(str(error.__cause__ or error)))
        if isinstance(error, sdk.APIError):
            code, message = _read_error(error.body, str(error))
            return failure_from_status(self.label, 0, self._without_key(message), code=code)
        if isinstance(error, ValueError | TypeError | KeyError | AttributeError | IndexError | httpx.HTTPError):
            return unreadable_reply(self.label, self._without_key(f"{type(error).__name__}: {error}"))
        return None

    def _without_key(self, text: str) -> str:
        return text.replace(self._api_key, "[key]") if len(self._api_key) > 4 else text


def import_sdk(package: str) -> Any:
    """Imports the SDK; raises an error that says how to install it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise missing_package(package) from error


def missing_package(package: str) -> ModelError:
    return ModelError(f"The package {package!r} is not installed. Install it with: pip install 'memoranda[{package}]'")


def _read_error(body: object, default: str) -> tuple[str, str]:
    """The code and the message in the body of an error; its form differs between services."""
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    if isinstance(inner, str):
        return "", inner
    if not isinstance(inner, Mapping):
        return "", default
    codes = [str(inner[key]) for key in ("code", "type") if inner.get(key)]
    return " ".join(codes[:1]), str(inner.get("message") or default) + (f" [{codes[1]}]" if len(codes) > 1 else "")


_MAX_NAME_CHARS = 64
_INVALID_IN_NAME = re.compile(r"[^A-Za-z0-9_-]+")


def repair_name(name: Any) -> str:
    """The tool name without the characters that services refuse."""
    return _INVALID_IN_NAME.sub("_", str(name or ""))[:_MAX_NAME_CHARS] or "unnamed"


def repair_arguments(arguments: Any) -> JsonObject:
    """The arguments as an object; arguments that are not JSON become the text of one field."""
    try:
        value = json.loads(arguments) if isinstance(arguments, str) and arguments.strip() else arguments or {}
    except (ValueError, RecursionError):
        value = None
    return dict(value) if isinstance(value, Mapping) else {"unreadable_arguments": str(arguments)}


def repair_call(call: Mapping[str, Any]) -> JsonObject:
    """The call in OpenAI's form; valid arguments stay byte-identical."""
    function = call.get("function") or {}
    original = function.get("arguments")
    valid = isinstance(original, str) and "unreadable_arguments" not in repair_arguments(original) and original.strip()
    arguments = original if valid else json.dumps(repair_arguments(original), ensure_ascii=False)
    return {**call, "function": {"name": repair_name(function.get("name")), "arguments": arguments}}
