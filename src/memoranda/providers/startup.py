"""Starting a provider: under a deadline, and again later when it could not be started."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from memoranda.providers.guarded_call import CallResult, GuardedProvider, PendingCall
from memoranda.providers.settings import ProviderSettings

HOOK = "initialize"


class ProviderStartup:
    """Whether a provider can be called (`ready`); `started` is called once, just before it can."""

    def __init__(self, calling: GuardedProvider, settings: ProviderSettings, started: Callable[[], None]) -> None:
        self._calling = calling
        self._settings = settings
        self._started = started
        self._lock = threading.Lock()
        self._asked: tuple[str, Mapping[str, Any]] | None = None
        self._pending: PendingCall | None = None
        self.ready = False
        self._failures = 0
        self._not_before = 0.0

    def begin(self, session_id: str, facts: Mapping[str, Any]) -> bool:
        """Start the provider for a session; False when it is not there yet, which does not mean never."""
        self._asked = (session_id, facts)
        return self.again()

    def again(self) -> bool:
        """Whether the provider is ready; if it failed to start, and some time has passed, it is started again."""
        with self._lock:
            if self.ready or self._asked is None:
                return self.ready
            if self._pending is None:
                if time.monotonic() < self._not_before:
                    return False
                session_id, facts = self._asked
                self._pending = self._calling.start(HOOK, {"session_id": session_id}, facts)
                self._look(self._settings.start_seconds)
                if self._pending is not None:
                    self._calling.settle(HOOK, CallResult(error=f"no answer within {self._settings.start_seconds:g} s"))
            else:
                self._look(0.0)
            return self.ready

    def _look(self, wait: float) -> None:
        answer = self._pending.wait(wait) if self._pending else None
        if answer is None:
            return
        self._pending = None
        self._calling.settle(HOOK, answer)
        if answer.ok:
            self._started()
            self.ready = True
            return
        pause = self._settings.first_retry_seconds * 2.0 ** min(self._failures, 40)
        self._failures += 1
        self._not_before = time.monotonic() + min(pause, self._settings.longest_retry_seconds)
