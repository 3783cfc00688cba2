"""Recalling before a turn: asked once, waited for until a deadline, and never longer.

A recall that comes too late is kept for the next turn of the session that asked, which uses it unless a newer one
answers in time. When the session is switched or taken back it is dropped, even if it is still on its way. While a call
is overdue the provider is not asked again, so that a hanging provider costs one deadline, not one per turn.
"""

import threading
import time
from dataclasses import dataclass

from memoranda.providers.guarded_call import CallResult, GuardedProvider, PendingCall
from memoranda.providers.health import HealthTracker
from memoranda.providers.settings import ProviderSettings

HOOK = "prefetch"


@dataclass(frozen=True, slots=True)
class _Asked:
    """A call on its way, and for whom; `era` counts the switches before it."""

    pending: PendingCall
    session_id: str
    era: int


class Recall:
    """What a provider remembers, for one conversation at a time."""

    def __init__(self, calling: GuardedProvider, settings: ProviderSettings, health: HealthTracker) -> None:
        self._calling = calling
        self.settings = settings
        self._health = health
        self._lock = threading.Lock()
        self._era = 0
        self._turns: dict[str, int] = {}
        self._overdue: _Asked | None = None
        self._late: dict[str, str] = {}

    def before_turn(self, query: str, session_id: str, within: float | None = None) -> str:
        """What is remembered about a query, within the budget and the deadline; empty when nothing is.

        `within` is what is left of the turn's deadline.
        """
        within = self.settings.recall_seconds if within is None else min(within, self.settings.recall_seconds)
        if self.settings.mode == "tools" or not query.strip() or not self._is_due(session_id):
            return ""
        with self._lock:
            self._collect()
            if self._overdue is not None:
                return self._late.pop(session_id, "")
            era = self._era
        pending = self._calling.start(HOOK, {"query": query}, {"session_id": session_id})
        if pending is None:
            return ""
        answer = pending.wait(within)
        with self._lock:
            late = self._late.pop(session_id, "")
            if answer is None:
                self._overdue = _Asked(pending, session_id, era)
            if era != self._era:
                return ""
        return self._noted(answer, pending) or late

    def drop(self) -> None:
        """Forget everything that was recalled or is on its way: it belongs to another session, or to undone turns."""
        with self._lock:
            self._era += 1
            self._late.clear()
            self._turns.clear()

    def warm_up(self, query: str, session_id: str) -> None:
        """Let the provider get ready for the next turn; nobody waits for it."""
        if self.settings.mode != "tools" and query.strip():
            self._calling.call_in_background("queue_prefetch", {"query": query}, {"session_id": session_id})

    def _is_due(self, session_id: str) -> bool:
        with self._lock:
            turn = self._turns.get(session_id, 0)
            self._turns[session_id] = turn + 1
        return turn % self.settings.every_n_turns == 0

    def _collect(self) -> None:
        """Take what came late, for the session that asked for it."""
        asked = self._overdue
        if asked is None or not asked.pending.done:
            return
        self._overdue = None
        answer = asked.pending.answer
        if asked.era == self._era and answer is not None and answer.ok:
            self._late[asked.session_id] = self._calling.as_text(HOOK, answer, self.settings.recall_chars)

    def _noted(self, answer: CallResult | None, pending: PendingCall) -> str:
        if answer is None:
            self._calling.record(HOOK, CallResult(error=f"no answer within {self.settings.recall_seconds:g} s"))
            return ""
        if not self._calling.record(HOOK, answer).ok:
            return ""
        text = self._calling.as_text(HOOK, answer, self.settings.recall_chars)
        self._health.record_recall(len(text), time.monotonic() - pending.began)
        return text
