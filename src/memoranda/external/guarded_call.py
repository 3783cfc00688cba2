"""Guarded calls of a provider: with the arguments that its signature accepts, in a thread, under a deadline.

Everything that a hook raises, SystemExit and KeyboardInterrupt included, ends here: it is logged and recorded in the
provider's health. A call that misses its deadline continues in its daemon thread; the same hook is not called again
until that call has returned.

A provider gets the arguments and facts that its signature accepts, and nothing else. Hooks that are coroutines run in
one event loop per provider, in its own thread.
"""

import asyncio
import inspect
import logging
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from memoranda.errors import PermanentProviderError, ProviderError, TemporaryProviderError
from memoranda.external.health import HealthTracker
from memoranda.external.provider import MemoryProvider
from memoranda.safety.redaction import Redactor
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.shorten import shorten_end

_log = logging.getLogger(__name__)

_MAX_ERROR_CHARS = 500
_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a method: which it accepts by position, which by name, and whether it accepts any others."""

    positional: tuple[str, ...]
    named: frozenset[str]
    any_positional: bool
    any_named: bool

    def accepts(self, name: str) -> bool:
        """Whether the method accepts a fact of this name."""
        return self.any_named or name in self.named


@dataclass(frozen=True, slots=True)
class BoundArguments:
    """Arguments as a method accepts them, and the names of those that it does not accept."""

    positional: tuple[Any, ...]
    named: dict[str, Any]
    dropped: tuple[str, ...]


def _parameters_of(method: Callable[..., Any]) -> Parameters | None:
    """The parameters of a bound method; None when it has no readable signature."""
    try:
        parameters = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):
        return None
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return Parameters(
        positional=tuple(parameter.name for parameter in parameters if parameter.kind in by_position),
        named=frozenset(parameter.name for parameter in parameters if parameter.kind in by_name),
        any_positional=any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters),
        any_named=any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters),
    )


def _bind_arguments(parameters: Parameters, args: Mapping[str, Any], facts: Mapping[str, Any]) -> BoundArguments:
    """Pass `args` in their order and `facts` by name, as far as the method accepts them.

    A provider may predate `metadata`: it is passed by name; else in the next free position, whatever that parameter is
    called; and its values also go to parameters of the same names, because older hooks accepted `session_id` and others
    one by one.
    """
    positional: list[Any] = []
    named: dict[str, Any] = {}
    dropped: list[str] = []
    for name, value in args.items():
        if len(positional) < len(parameters.positional) or parameters.any_positional:
            positional.append(value)
        elif parameters.accepts(name):
            named[name] = value
        else:
            dropped.append(name)
    filled = set(parameters.positional[: len(positional)])
    free = list(parameters.positional[len(positional) :])
    for name, value in facts.items():
        if name not in filled and (name in parameters.named or (parameters.any_named and name not in free)):
            named[name] = value
    metadata = facts.get("metadata")
    if isinstance(metadata, dict):
        spread = parameters.named & metadata.keys() - filled - named.keys()
        named |= {name: metadata[name] for name in spread}
        free = [name for name in free if name not in named]
        if "metadata" not in named and free and free[0] in parameters.named:
            named[free[0]] = metadata
        elif "metadata" not in named and free:
            positional.append(metadata)
        elif "metadata" not in named:
            dropped.append("metadata")
    return BoundArguments(tuple(positional), named, tuple(dropped))


class EventLoop:
    """The event loop of one provider, started by its first coroutine; clients that belong to a loop keep working."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._running = 0
        self._closed = False

    def run(self, awaitable: Awaitable[Any]) -> Any:
        """Await what a hook returned; blocks the calling thread."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            self._running += 1
            loop = self._loop
        try:
            return asyncio.run_coroutine_threadsafe(_result(awaitable), loop).result()
        finally:
            with self._lock:
                self._running -= 1
                self._stop_when_idle()

    def close(self) -> None:
        """Stop the loop as soon as no call runs in it."""
        with self._lock:
            self._closed = True
            self._stop_when_idle()

    def _stop_when_idle(self) -> None:
        if self._closed and not self._running and self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None


async def _result(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


@dataclass(frozen=True, slots=True)
class CallResult:
    """A value, or an error as text. `overdue`: the call may still be running.

    `permanent` and `retry_after` (seconds) come from the provider's exception and decide when a delivery is retried.
    """

    value: Any = None
    error: str = ""
    overdue: bool = False
    permanent: bool = False
    retry_after: float | None = None

    @property
    def ok(self) -> bool:
        return not self.error


class PendingCall:
    """A call that runs in a daemon thread; `then` is called there with the result.

    `redactor` removes credentials from the text of an error.
    """

    def __init__(
        self,
        call: Callable[[], Any],
        name: str,
        then: Callable[[CallResult], Any] | None = None,
        *,
        redactor: Redactor | None = None,
    ) -> None:
        self.began = time.monotonic()
        self.result: CallResult | None = None
        self._call = call
        self._then = then
        self._redactor = redactor
        self._lock = threading.Lock()
        self._done = threading.Event()
        try:
            threading.Thread(target=self._run, name=name, daemon=True).start()
        except RuntimeError as error:
            self._finish(CallResult(error=describe(error, redactor)))

    @property
    def done(self) -> bool:
        return self._done.is_set()

    def wait(self, seconds: float) -> CallResult | None:
        """The result, or None when `seconds` have passed without one."""
        self._done.wait(max(seconds, 0.0))
        return self.result if self.done else None

    def _run(self) -> None:
        try:
            result = CallResult(self._call())
        except BaseException as error:
            # Even SystemExit and KeyboardInterrupt: a provider must not end the process.
            result = _failure(error, self._redactor)
            _log.debug("A memory provider raised: %s", _redact(traceback.format_exc(), self._redactor))
        self._finish(result)

    def call_when_done(self, then: Callable[[CallResult], Any]) -> None:
        """Call `then` with the result: now if there is one, else in the thread of the call."""
        with self._lock:
            if self.result is None:
                self._then = then
                return
        then(self.result)

    def _finish(self, result: CallResult) -> None:
        with self._lock:
            self.result = result
            then = self._then
        self._done.set()
        if then is not None:
            then(result)


class GuardedProvider:
    def __init__(self, provider: object, name: str, health: HealthTracker, redactor: Redactor | None = None) -> None:
        self.provider = provider
        self.name = name
        self._health = health
        self._redactor = redactor
        self._loop = EventLoop(f"memoranda-{name}-loop")
        self._lock = threading.Lock()
        self._parameters: dict[str, Parameters | None] = {}
        self._overdue: dict[str, list[PendingCall]] = {}
        self._logged_drops: set[tuple[str, str]] = set()

    def call(
        self, hook: str, args: Mapping[str, Any] = _NOTHING, facts: Mapping[str, Any] = _NOTHING, *, within: float
    ) -> CallResult:
        """Call a hook and wait at most `within` seconds; a failure is logged and recorded, never raised."""
        pending = self.start(hook, args, facts)
        if pending is None:
            return CallResult(error="still busy with an earlier call", overdue=True)
        result = pending.wait(within)
        if result is None:
            self._track(hook, pending)
            result = CallResult(error=f"no answer within {within:g} s", overdue=True)
        return self.record(hook, result)

    def start(
        self, hook: str, args: Mapping[str, Any] = _NOTHING, facts: Mapping[str, Any] = _NOTHING
    ) -> PendingCall | None:
        """Begin a call and return at once; None while an overdue call of the same hook is still running."""
        if self.is_busy(hook):
            return None
        return self._start_call(hook, args, facts)

    def call_in_background(
        self, hook: str, args: Mapping[str, Any] = _NOTHING, facts: Mapping[str, Any] = _NOTHING
    ) -> None:
        """Call a hook without waiting; a failure is logged and recorded when it happens."""
        if not self.is_busy(hook):
            self._track(hook, self._start_call(hook, args, facts, lambda result: self.record(hook, result)))

    def record(self, hook: str, result: CallResult) -> CallResult:
        """Record a result in the health of the provider, log a failure, and return the result."""
        if result.ok:
            self._health.record_success(hook)
        else:
            # A reader of the log finds the failure in the health, too.
            self._health.record_failure(hook, result.error)
            _log.warning("Memory provider %s failed in %s: %s", self.name, hook, result.error)
        return result

    def _track(self, hook: str, pending: PendingCall) -> None:
        with self._lock:
            self._overdue.setdefault(hook, []).append(pending)

    def is_busy(self, hook: str) -> bool:
        """Whether an overdue call of this hook is still running."""
        with self._lock:
            running = [pending for pending in self._overdue.get(hook, []) if not pending.done]
            self._overdue[hook] = running
            return bool(running)

    def as_text(self, hook: str, result: CallResult, max_chars: int) -> str:
        """The text of a result, shortened to `max_chars`; any other type is recorded as a failure."""
        if result.value is None:
            return ""
        if not isinstance(result.value, str):
            self.record(hook, CallResult(error=f"answered with {type(result.value).__name__} instead of text"))
            return ""
        return shorten_end(result.value.strip(), max_chars, whole_lines=True)

    def parameters(self, hook: str) -> Parameters | None:
        """The parameters of a hook; None when it has no readable signature."""
        if hook not in self._parameters:
            self._parameters[hook] = _parameters_of(getattr(self.provider, hook))
        return self._parameters[hook]

    def accepts(self, hook: str, name: str) -> bool:
        """Whether a hook accepts a fact of this name."""
        parameters = self.parameters(hook)
        return parameters is None or parameters.accepts(name)

    def close(self) -> None:
        """Stop the event loop of the provider's coroutines."""
        self._loop.close()

    def _start_call(
        self,
        hook: str,
        args: Mapping[str, Any],
        facts: Mapping[str, Any],
        then: Callable[[CallResult], Any] | None = None,
    ) -> PendingCall:
        name = f"memoranda-{self.name}-{hook}"
        return PendingCall(lambda: self._invoke(hook, args, facts), name, then, redactor=self._redactor)

    def _invoke(self, hook: str, args: Mapping[str, Any], facts: Mapping[str, Any]) -> Any:
        bound = _bind_arguments(self.parameters(hook) or _contract_parameters(hook), args, facts)
        for name in bound.dropped:
            if (hook, name) not in self._logged_drops:
                self._logged_drops.add((hook, name))
                _log.info("Memory provider %s accepts no %r in %s; it is left out.", self.name, name, hook)
        result = getattr(self.provider, hook)(*bound.positional, **bound.named)
        return self._loop.run(result) if inspect.isawaitable(result) else result


def _contract_parameters(hook: str) -> Parameters:
    """The parameters of a hook in the contract, for a method without a readable signature."""
    parameters = _parameters_of(getattr(MemoryProvider, hook))
    assert parameters is not None
    return Parameters(parameters.positional[1:], parameters.named - {"self"}, any_positional=False, any_named=False)


def _failure(error: BaseException, redactor: Redactor | None) -> CallResult:
    seconds = error.retry_after if isinstance(error, TemporaryProviderError) else None
    # A provider may raise a subclass whose attribute is anything.
    usable = isinstance(seconds, int | float) and 0 <= seconds < float("inf")
    permanent = isinstance(error, PermanentProviderError) and not error.concerns_service
    return CallResult(error=describe(error, redactor), permanent=permanent, retry_after=seconds if usable else None)


def describe(error: BaseException, redactor: Redactor | None = None) -> str:
    """One line that describes an exception, without credentials; works for exceptions whose `str` fails."""
    # Our own errors are sentences for people; for any other, the name of its class matters most.
    is_ours = isinstance(error, ProviderError) and type(error).__str__ is Exception.__str__
    line = " ".join(((is_ours and str(error).strip()) or traceback.format_exception_only(error)[-1]).split())
    return shorten_end(_redact(line, redactor), _MAX_ERROR_CHARS)


def _redact(text: str, redactor: Redactor | None) -> str:
    return (redactor or Redactor()).text(text)[0]
