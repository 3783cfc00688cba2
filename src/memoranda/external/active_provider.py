"""A provider that a manager has accepted, with the parts that call it: recall, tools and startup.

Recall asks the provider once before a turn and waits until a deadline. A recall that arrives too late is kept for the
next turn of the session that asked, which uses it unless a newer one arrives in time. When the session is switched or
rewound it is dropped, even if it is still running. While a call is overdue the provider is not asked again, so a
provider that hangs costs one deadline, not one per turn.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from memoranda.external.guarded_call import CallResult, GuardedProvider, PendingCall
from memoranda.external.health import HealthTracker
from memoranda.external.provider import MemoryProvider, own_members
from memoranda.external.settings import ProviderSettings, turns_per_delivery
from memoranda.external.tools import ProviderTools
from memoranda.safety.redaction import Redactor
from memoranda.support.lazy_dataclass import dataclass

_log = logging.getLogger(__name__)

_RECALL_HOOK = "prefetch"

_START_HOOK = "initialize"


class ActiveProvider:
    """One provider behind guarded calls. It can be called once `startup.ready` is true."""

    def __init__(
        self,
        provider: MemoryProvider,
        calls: GuardedProvider,
        implemented: frozenset[str],
        settings: ProviderSettings,
        health: HealthTracker,
        tools: ProviderTools,
    ) -> None:
        self.provider = provider
        self.calls = calls
        self.tools = tools
        self.recall = Recall(calls, settings, health)
        self.startup = ProviderStartup(calls, settings, self._read_static_parts)
        self.prompt_block = ""
        self.turns_per_delivery = 1
        self._implemented = implemented
        self._settings = settings

    @property
    def name(self) -> str:
        return self.calls.name

    @property
    def ready(self) -> bool:
        return self.startup.ready

    def implements(self, hook: str) -> bool:
        """Whether the provider has its own version of a hook; the contract's default is not worth a call."""
        return hook in self._implemented

    def ask_text(self, hook: str, args: Mapping[str, Any], facts: Mapping[str, Any], max_chars: int) -> str:
        """Call a hook that returns text; empty when it fails or is late."""
        result = self.calls.call(hook, args, facts, within=self._settings.call_seconds)
        return self.calls.as_text(hook, result, max_chars) if result.ok else ""

    def begin_turn(self, turn_number: int, message: str, facts: Mapping[str, Any]) -> None:
        """Notify the provider that a turn begins, within half of the turn's deadline; the other half is for recall."""
        within = min(self._settings.call_seconds, self.recall.settings.recall_seconds / 2)
        self.calls.call("on_turn_start", {"turn_number": turn_number, "message": message}, facts, within=within)

    def _read_static_parts(self) -> None:
        """Read limits, tools and prompt block, once, when the provider has started."""
        if self.implements("limits"):
            result = self.calls.call("limits", within=self._settings.call_seconds)
            if result.ok and isinstance(result.value, Mapping):
                self.recall.settings = self.tools.settings = self._settings.narrowed(result.value)
                self.turns_per_delivery = turns_per_delivery(result.value)
        self.tools.refresh()
        if self.implements("system_prompt_block"):
            self.prompt_block = self.ask_text("system_prompt_block", {}, {}, self._settings.prompt_chars)


def accept_provider(
    provider: MemoryProvider,
    name: str,
    settings: ProviderSettings,
    health: HealthTracker,
    *,
    clean: Callable[[str], str],
    redactor: Redactor | None,
) -> ActiveProvider | None:
    """Make a provider active; None, with a warning in the log, when its name is unusable or it is not available.

    `name` replaces the provider's own name where it is configured under another one.
    """
    description = PendingCall(lambda: (provider.name, own_members(provider)), "memoranda-provider-name")
    result = description.wait(settings.call_seconds)
    own_name, implemented = result.value if result and result.ok else (None, frozenset())
    if not isinstance(own_name, str) or not own_name.strip() or own_name == "builtin":
        _log.warning("A memory provider cannot be called %r; %s is refused.", own_name, type(provider).__name__)
        return None
    calls = GuardedProvider(provider, name or own_name, health, redactor)
    available = calls.call("is_available", within=settings.call_seconds)
    if not available.ok or available.value is not True:
        reason = available.error
        if not reason and "explain_unavailable" in implemented:
            reason = str(calls.call("explain_unavailable", within=settings.call_seconds).value or "")
        _log.warning("Memory provider %s is not available: %s", calls.name, reason or "is_available() returned False.")
        return None
    tools = ProviderTools(calls, settings, clean)
    return ActiveProvider(provider, calls, implemented, settings, health, tools)


@dataclass(frozen=True, slots=True)
class _RunningRecall:
    """A running call and its session; `era` is the number of session switches before it."""

    pending: PendingCall
    session_id: str
    era: int


class Recall:
    """Asks a provider what it remembers, for one conversation at a time."""

    def __init__(self, calls: GuardedProvider, settings: ProviderSettings, health: HealthTracker) -> None:
        self._calls = calls
        self.settings = settings
        self._health = health
        self._lock = threading.Lock()
        self._era = 0
        self._turns: dict[str, int] = {}
        self._overdue: _RunningRecall | None = None
        self._late: dict[str, str] = {}
        self.reason = ""
        """Why the latest recall gave nothing; empty if it gave something."""

    def before_turn(self, query: str, session_id: str, within: float | None = None) -> str:
        """What the provider remembers about a query, within the size limit and the deadline; empty for nothing.

        `within` is the time left of the turn's deadline.
        """
        within = self.settings.recall_seconds if within is None else min(within, self.settings.recall_seconds)
        self.reason = self._reason_to_skip(query, session_id)
        if self.reason:
            return ""
        text = self._ask(query, session_id, within)
        self.reason = "" if text else self.reason or "it recalled nothing"
        return text

    def _reason_to_skip(self, query: str, session_id: str) -> str:
        if self.settings.mode == "tools":
            return "it is asked by the model, with its tools"
        if not query.strip():
            return "the prompt has no text"
        every = self.settings.every_n_turns
        return "" if self._is_due(session_id) else f"it is asked every {every} turns"

    def _ask(self, query: str, session_id: str, within: float) -> str:
        with self._lock:
            self._collect_late()
            if self._overdue is not None:
                self.reason = "it has not answered an earlier prompt yet"
                return self._late.pop(session_id, "")
            era = self._era
        facts = {"session_id": session_id, "seconds": within, "max_chars": self.settings.recall_chars}
        pending = self._calls.start(_RECALL_HOOK, {"query": query}, facts)
        if pending is None:
            self.reason = "it has not answered an earlier prompt yet"
            return ""
        result = pending.wait(within)
        with self._lock:
            late = self._late.pop(session_id, "")
            if result is None:
                self._overdue = _RunningRecall(pending, session_id, era)
            if era != self._era:
                self.reason = "the session changed meanwhile"
                return ""
        return self._record(result, pending) or late

    def drop(self) -> None:
        """Drop everything that was recalled or is still running: it belongs to another session, or to rewound turns."""
        with self._lock:
            self._era += 1
            self._late.clear()
            self._turns.clear()

    def warm_up(self, query: str, session_id: str) -> None:
        """Call `queue_prefetch` for the next turn, without waiting."""
        if self.settings.mode != "tools" and query.strip():
            self._calls.call_in_background("queue_prefetch", {"query": query}, {"session_id": session_id})

    def _is_due(self, session_id: str) -> bool:
        with self._lock:
            turn = self._turns.get(session_id, 0)
            self._turns[session_id] = turn + 1
        return turn % self.settings.every_n_turns == 0

    def _collect_late(self) -> None:
        """Keep the result of a call that was overdue, for the session that asked."""
        running = self._overdue
        if running is None or not running.pending.done:
            return
        self._overdue = None
        result = running.pending.result
        if running.era == self._era and result is not None and result.ok:
            self._late[running.session_id] = self._calls.as_text(_RECALL_HOOK, result, self.settings.recall_chars)

    def _record(self, result: CallResult | None, pending: PendingCall) -> str:
        if result is None:
            self.reason = f"no answer within {self.settings.recall_seconds:g} s"
            self._calls.record(_RECALL_HOOK, CallResult(error=self.reason))
            return ""
        if not self._calls.record(_RECALL_HOOK, result).ok:
            # The error itself is in the provider's health: it may quote what the provider was sent.
            self.reason = "it failed"
            return ""
        text = self._calls.as_text(_RECALL_HOOK, result, self.settings.recall_chars)
        self._health.record_recall(len(text), time.monotonic() - pending.began)
        return text


class ProviderStartup:
    """Calls `initialize` until it succeeds; calls `started` once, just before `ready` becomes true."""

    def __init__(self, calls: GuardedProvider, settings: ProviderSettings, started: Callable[[], None]) -> None:
        self._calls = calls
        self._settings = settings
        self._on_started = started
        self._lock = threading.Lock()
        self._request: tuple[str, Mapping[str, Any]] | None = None
        self._pending: PendingCall | None = None
        self.ready = False
        self._failures = 0
        self._not_before = 0.0

    def begin(self, session_id: str, facts: Mapping[str, Any]) -> bool:
        """Start the provider for a session; False when it is not ready yet, which a later call may change."""
        self._request = (session_id, facts)
        return self.ensure_started()

    def ensure_started(self) -> bool:
        """Whether the provider is ready; a start that failed is retried after a pause that grows."""
        with self._lock:
            if self.ready or self._request is None:
                return self.ready
            if self._pending is None:
                if time.monotonic() < self._not_before:
                    return False
                session_id, facts = self._request
                self._pending = self._calls.start(_START_HOOK, {"session_id": session_id}, facts)
                self._poll(self._settings.start_seconds)
                if self._pending is not None:
                    limit = f"{self._settings.start_seconds:g} s (provider.start_seconds)"
                    self._calls.record(_START_HOOK, CallResult(error=f"no answer within {limit}"))
            else:
                self._poll(0.0)
            return self.ready

    def _poll(self, wait: float) -> None:
        result = self._pending.wait(wait) if self._pending else None
        if result is None:
            return
        self._pending = None
        self._calls.record(_START_HOOK, result)
        if result.ok:
            self._on_started()
            self.ready = True
            return
        pause = self._settings.first_retry_seconds * 2.0 ** min(self._failures, 40)
        self._failures += 1
        self._not_before = time.monotonic() + min(pause, self._settings.max_retry_seconds)
