"""The start of a provider: under a deadline, and retried later when it failed."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from memoranda.external.guarded_call import CallResult, GuardedProvider, PendingCall
from memoranda.external.settings import ProviderSettings
from memoranda.storage.files.fork_lock import ForkLock

HOOK = "initialize"


class ProviderStartup:
    """Calls `initialize` until it succeeds; calls `started` once, just before `ready` becomes true."""

    def __init__(self, calls: GuardedProvider, settings: ProviderSettings, started: Callable[[], None]) -> None:
        self._calls = calls
        self._settings = settings
        self._on_started = started
        self._lock = ForkLock()
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
                self._pending = self._calls.start(HOOK, {"session_id": session_id}, facts)
                self._poll(self._settings.start_seconds)
                if self._pending is not None:
                    limit = f"{self._settings.start_seconds:g} s (provider.start_seconds)"
                    self._calls.record(HOOK, CallResult(error=f"no answer within {limit}"))
            else:
                self._poll(0.0)
            return self.ready

    def _poll(self, wait: float) -> None:
        result = self._pending.wait(wait) if self._pending else None
        if result is None:
            return
        self._pending = None
        self._calls.record(HOOK, result)
        if result.ok:
            self._on_started()
            self.ready = True
            return
        pause = self._settings.first_retry_seconds * 2.0 ** min(self._failures, 40)
        self._failures += 1
        self._not_before = time.monotonic() + min(pause, self._settings.max_retry_seconds)
