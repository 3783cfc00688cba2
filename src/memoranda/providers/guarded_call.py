"""Calling a provider that somebody else wrote: with the arguments it takes, in a thread of its own, under a deadline.

What it takes is seen from the signature of each method, once. Whatever it raises, exits and interrupts included, ends
here: logged with the provider, the phase and the error, and noted in its health. A call that is overdue goes on in its
thread, which does not keep the process alive; the same hook is not called again until it has returned.
"""

import inspect
import logging
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from memoranda.errors import PermanentProviderError, ProviderError, TemporaryProviderError
from memoranda.providers.arguments import Parameters, parameters_of
from memoranda.providers.event_loop import EventLoop
from memoranda.providers.health import HealthTracker
from memoranda.providers.hermes import bind_hermes_arguments
from memoranda.providers.provider import MemoryProvider
from memoranda.safety.redaction import Redactor
from memoranda.support.shorten import shorten_end

_log = logging.getLogger(__name__)

_LONGEST_ERROR = 500
_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class CallResult:
    """What came of a call: a value, or an error in words. `overdue` says that it may still be running."""

    value: Any = None
    error: str = ""
    overdue: bool = False
    permanent: bool = False
    retry_after: float | None = None

    @property
    def ok(self) -> bool:
        return not self.error


class PendingCall:
    """A call that runs in a daemon thread; `then` is called there with the answer, if anybody cares.

    `redactor` takes credentials out of what is said about an error.
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
        self.answer: CallResult | None = None
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
        """The answer, or None when it has not come in time."""
        self._done.wait(max(seconds, 0.0))
        return self.answer if self.done else None

    def _run(self) -> None:
        try:
            answer = CallResult(self._call())
        except BaseException as error:
            # Even SystemExit and KeyboardInterrupt: a provider has no say over the process.
            answer = _failure(error, self._redactor)
            _log.debug("A memory provider raised: %s", _redacted(traceback.format_exc(), self._redactor))
        self._finish(answer)

    def afterwards(self, then: Callable[[CallResult], Any]) -> None:
        """Have the answer looked at when it comes after all."""
        with self._lock:
            if self.answer is None:
                self._then = then
                return
        then(self.answer)

    def _finish(self, answer: CallResult) -> None:
        with self._lock:
            self.answer = answer
            then = self._then
        self._done.set()
        if then is not None:
            then(answer)


class GuardedProvider:
    """All calls of one provider go through here."""

    def __init__(self, provider: object, name: str, health: HealthTracker, redactor: Redactor | None = None) -> None:
        self.provider = provider
        self.name = name
        self._health = health
        self._redactor = redactor
        self._loop = EventLoop(f"memoranda-{name}-loop")
        self._lock = threading.Lock()
        self._parameters: dict[str, Parameters | None] = {}
        self._overdue: dict[str, list[PendingCall]] = {}
        self._said: set[tuple[str, str]] = set()

    def call(
        self, hook: str, args: Mapping[str, Any] = _NOTHING, facts: Mapping[str, Any] = _NOTHING, *, within: float
    ) -> CallResult:
        """Call and wait at most `within` seconds; a failure is logged and noted, never raised."""
        pending = self.start(hook, args, facts)
        if pending is None:
            return CallResult(error="still busy with an earlier call", overdue=True)
        answer = pending.wait(within)
        if answer is None:
            self._track(hook, pending)
            answer = CallResult(error=f"no answer within {within:g} s", overdue=True)
        return self.record(hook, answer)

    def start(
        self, hook: str, args: Mapping[str, Any] = _NOTHING, facts: Mapping[str, Any] = _NOTHING
    ) -> PendingCall | None:
        """Begin a call and come back at once; None while an overdue call of the same hook is still running."""
        if self.is_busy(hook):
            return None
        return self._pending(hook, args, facts)

    def call_in_background(
        self, hook: str, args: Mapping[str, Any] = _NOTHING, facts: Mapping[str, Any] = _NOTHING
    ) -> None:
        """Call without waiting at all; a failure is logged and noted when it happens."""
        if not self.is_busy(hook):
            self._track(hook, self._pending(hook, args, facts, lambda answer: self.record(hook, answer)))

    def record(self, hook: str, answer: CallResult) -> CallResult:
        """Note how a call went."""
        if answer.ok:
            self._health.record_success(hook)
        else:
            _log.warning("Memory provider %s failed in %s: %s", self.name, hook, answer.error)
            self._health.record_failure(hook, answer.error)
        return answer

    def _track(self, hook: str, pending: PendingCall) -> None:
        """Remember a call that has not come back in time."""
        with self._lock:
            self._overdue.setdefault(hook, []).append(pending)

    def is_busy(self, hook: str) -> bool:
        """Whether an overdue call of this hook is still running."""
        with self._lock:
            running = [pending for pending in self._overdue.get(hook, []) if not pending.done]
            self._overdue[hook] = running
            return bool(running)

    def as_text(self, hook: str, answer: CallResult, most: int) -> str:
        """An answer as text of a bounded size; anything but text is a failure of the provider."""
        if answer.value is None:
            return ""
        if not isinstance(answer.value, str):
            self.record(hook, CallResult(error=f"answered with {type(answer.value).__name__} instead of text"))
            return ""
        return shorten_end(answer.value.strip(), most, whole_lines=True)

    def parameters(self, hook: str) -> Parameters | None:
        """What a hook takes; None when that cannot be seen."""
        if hook not in self._parameters:
            self._parameters[hook] = parameters_of(getattr(self.provider, hook))
        return self._parameters[hook]

    def takes(self, hook: str, name: str) -> bool:
        """Whether a hook can be told a fact of this name."""
        parameters = self.parameters(hook)
        return parameters is None or parameters.takes(name)

    def close(self) -> None:
        """Nothing more is called."""
        self._loop.close()

    def _pending(
        self,
        hook: str,
        args: Mapping[str, Any],
        facts: Mapping[str, Any],
        then: Callable[[CallResult], Any] | None = None,
    ) -> PendingCall:
        name = f"memoranda-{self.name}-{hook}"
        return PendingCall(lambda: self._invoke(hook, args, facts), name, then, redactor=self._redactor)

    def _invoke(self, hook: str, args: Mapping[str, Any], facts: Mapping[str, Any]) -> Any:
        bound = bind_hermes_arguments(self.parameters(hook) or _contract_parameters(hook), args, facts)
        for name in bound.dropped:
            if (hook, name) not in self._said:
                self._said.add((hook, name))
                _log.info("Memory provider %s takes no %r in %s, and is not told it.", self.name, name, hook)
        result = getattr(self.provider, hook)(*bound.positional, **bound.named)
        return self._loop.run(result) if inspect.isawaitable(result) else result


def _contract_parameters(hook: str) -> Parameters:
    """What the contract says that a hook takes, for a method that does not show it; without the facts to come."""
    parameters = parameters_of(getattr(MemoryProvider, hook))
    assert parameters is not None
    return Parameters(parameters.positional[1:], parameters.named - {"self"}, any_positional=False, any_named=False)


def _failure(error: BaseException, redactor: Redactor | None) -> CallResult:
    retry_after = error.retry_after if isinstance(error, TemporaryProviderError) else None
    permanent = isinstance(error, PermanentProviderError)
    return CallResult(error=describe(error, redactor), permanent=permanent, retry_after=retry_after)


def describe(error: BaseException, redactor: Redactor | None = None) -> str:
    """An exception in one line without credentials, even one that cannot say what it is."""
    # Our own errors are sentences for people; of any other, the name of its class says most.
    is_ours = isinstance(error, ProviderError) and type(error).__str__ is Exception.__str__
    line = " ".join(((is_ours and str(error)) or traceback.format_exception_only(error)[-1]).split())
    return shorten_end(_redacted(line, redactor), _LONGEST_ERROR)


def _redacted(text: str, redactor: Redactor | None) -> str:
    return (redactor or Redactor()).text(text)[0]
