"""Recall before a turn: asks the provider once and waits until a deadline.

A recall that arrives too late is kept for the next turn of the session that asked, which uses it unless a newer one
arrives in time. When the session is switched or rewound it is dropped, even if it is still running. While a call is
overdue the provider is not asked again, so a provider that hangs costs one deadline, not one per turn.
"""

import time
from dataclasses import dataclass

from memoranda.external.guarded_call import CallResult, GuardedProvider, PendingCall
from memoranda.external.health import HealthTracker
from memoranda.external.settings import ProviderSettings
from memoranda.storage.files.fork_lock import ForkLock

HOOK = "prefetch"


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
        self._lock = ForkLock()
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
        pending = self._calls.start(HOOK, {"query": query}, facts)
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
            self._late[running.session_id] = self._calls.as_text(HOOK, result, self.settings.recall_chars)

    def _record(self, result: CallResult | None, pending: PendingCall) -> str:
        if result is None:
            self.reason = f"no answer within {self.settings.recall_seconds:g} s"
            self._calls.record(HOOK, CallResult(error=self.reason))
            return ""
        if not self._calls.record(HOOK, result).ok:
            # The error itself is in the provider's health: it may quote what the provider was sent.
            self.reason = "it failed"
            return ""
        text = self._calls.as_text(HOOK, result, self.settings.recall_chars)
        self._health.record_recall(len(text), time.monotonic() - pending.began)
        return text
