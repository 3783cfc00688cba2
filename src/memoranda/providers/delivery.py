"""Delivering what is in the outbox: one thread that nobody waits for, and that nothing stops but the end.

It sees to it that the provider is started, and sleeps until there is something to do. A delivery runs in a thread below
it, so that a provider that hangs can be noticed and shown; its job stays held for as long as the call runs, and no
other delivery is begun meanwhile.
"""

import logging
import threading
import time
from collections.abc import Callable

from memoranda.errors import StorageError
from memoranda.providers.guarded_call import CallResult, GuardedProvider, PendingCall
from memoranda.providers.jobs import Job
from memoranda.providers.outbox import Outbox
from memoranda.providers.settings import ProviderSettings

_log = logging.getLogger(__name__)

HOOKS = {
    "turn": "sync_turn",
    "memory_write": "on_memory_write",
    "session_end": "on_session_end",
    "session_switch": "on_session_switch",
    "delegation": "on_delegation",
}
# Jobs that another process left behind are found after this long at the latest; sooner while something is waiting.
_LOOK_EVERY = 30.0
_LOOK_AGAIN = 1.0


class Delivery:
    """Delivers to one provider, which `ready` says can be called now (it may take the time to start it).

    `told` is called with every job that was delivered. `settle` brings into the outbox what is not there yet, which
    `settled` says.
    """

    def __init__(
        self,
        outbox: Outbox,
        calling: GuardedProvider,
        settings: ProviderSettings,
        *,
        ready: Callable[[], bool],
        told: Callable[[Job], None] = lambda job: None,
        settle: Callable[[], None] = lambda: None,
        settled: Callable[[], bool] = lambda: True,
        scope: str = "",
    ) -> None:
        self._outbox = outbox
        self._calling = calling
        self._settings = settings
        self._ready = ready
        self._told = told
        self._settle = settle
        self._settled = settled
        self._scope = scope
        self._changed = threading.Condition()
        self._news = False
        self._job: Job | None = None
        self._renewed = 0.0
        self._stopped = False
        self._give_up = 0.0
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """There may be something to do."""
        with self._changed:
            if self._stopped:
                return
            self._news = True
            # Not alive after a fork either: the child gets a thread of its own.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name=f"memoranda-{self._calling.name}-delivery", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def drain(self, timeout: float, *, only_due: bool = False) -> bool:
        """Wait until nothing is waiting, at most so long; `only_due` does not wait for what is to be tried later."""
        deadline = time.monotonic() + timeout
        while True:
            # First, because what is settled in between is seen by the second question.
            settled = self._settled()
            pause = self._outbox.pause(self._calling.name, self._scope)
            if pause is None and settled:
                return True
            if only_due and settled and pause is not None and pause > 0 and self._job is None:
                return False
            self.wake()
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            with self._changed:
                self._changed.wait(min(left, 0.05))

    def stop(self, timeout: float) -> bool:
        """Begin nothing more, wait at most so long for the delivery that is under way, and let others have the rest."""
        timeout = max(timeout, 0.0)
        with self._changed:
            self._give_up = time.monotonic() + timeout
            self._stopped = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout)
        under_way = self._job
        self._outbox.release(under_way)
        return under_way is None

    def _run(self) -> None:
        failures = 0
        while not self._stopped:
            try:
                self._keep()
                pause = self._turn()
                failures = 0
            except StorageError as error:
                if self._stopped:
                    break
                failures += 1
                pause = min(0.1 * 2**failures, _LOOK_EVERY)
                _log.warning("Deliveries to %s wait %.1f s: %s", self._calling.name, pause, error)
            self._sleep(pause)
        self._let_go()

    def _let_go(self) -> None:
        """The end may have come while this thread waited for the file: what it put there since is for others."""
        outbox = self._outbox.reopened()
        try:
            outbox.release(self._job)
        except StorageError as error:
            _log.warning("What waits for %s is let go a little later: %s", self._calling.name, error)
        finally:
            outbox.close()

    def _turn(self) -> float:
        """Deliver what can be delivered; how long to sleep then."""
        self._news = False
        self._settle()
        while not self._stopped:
            if not self._ready():
                return min(self._settings.first_retry_seconds, _LOOK_AGAIN)
            waits = self._outbox.pause(self._calling.name, self._scope)
            if waits is None:
                return _LOOK_EVERY
            if self._stopped:
                break
            job = self._outbox.claim(self._calling.name, self._scope)
            if job is None:
                return min(max(waits, 0.01), _LOOK_AGAIN, self._settings.lease_seconds / 3)
            self._deliver(job)
            self._keep()
        return 0.0

    def _deliver(self, job: Job) -> None:
        hook = HOOKS[job.kind]
        self._job = job
        pending = self._calling.start(hook, job.args, {**job.facts, "idempotency_key": job.key})
        answer = CallResult(error="still busy with an earlier call") if pending is None else self._await(job, pending)
        if answer is None:
            # The end came first; the job stays held until that runs out, because the call may go on.
            if pending is not None:
                pending.afterwards(lambda late: self._came_late(job, late))
            return
        try:
            self._calling.settle(hook, answer)
            if answer.ok:
                self._take_off(job, answer)
                self._told(job)
            elif self._outbox.failed(job, answer.error):
                _log.error(
                    "Memory provider %s could not be given a %s of session %s, and it is parked: %s",
                    self._calling.name,
                    job.kind,
                    job.session_id,
                    answer.error,
                )
        finally:
            self._job = None
            with self._changed:
                self._changed.notify_all()

    def _take_off(self, job: Job, answer: CallResult) -> None:
        try:
            self._outbox.delivered(job)
        except StorageError:
            if not self._stopped:
                raise
            # The end came together with the answer, and has closed the outbox.
            self._came_late(job, answer)

    def _came_late(self, job: Job, answer: CallResult) -> None:
        """A delivery that came through after the end, in a process that goes on, need not be made again."""
        if not answer.ok:
            return
        outbox = self._outbox.reopened()
        try:
            outbox.delivered(job)
        except StorageError as error:
            _log.warning("What was delivered to %s will be delivered again: %s", self._calling.name, error)
        finally:
            outbox.close()

    def _await(self, job: Job, pending: PendingCall) -> CallResult | None:
        """The answer, however long it takes; None when the end comes first."""
        limit = self._settings.deliver_seconds
        complained = False
        while True:
            answer = pending.wait(min(self._settings.lease_seconds / 3, 0.1))
            if answer is not None or (self._stopped and time.monotonic() >= self._give_up):
                return answer
            late = time.monotonic() - pending.began > limit
            error = f"no answer within {limit:g} s" if late else ""
            if late and not complained:
                complained = True
                self._renewed = 0.0
                self._calling.settle(HOOKS[job.kind], CallResult(error=error))
            try:
                self._keep(job, error)
            except StorageError as problem:
                # The call goes on; at worst another process makes it again, with the same key.
                _log.warning("What is delivered to %s could not be held on to: %s", self._calling.name, problem)

    def _keep(self, job: Job | None = None, error: str = "") -> None:
        """Renew what this process holds, now and then."""
        now = time.monotonic()
        if now - self._renewed >= self._settings.lease_seconds / 3:
            self._renewed = now
            self._outbox.renew(job, error)

    def _sleep(self, seconds: float) -> None:
        with self._changed:
            if not self._news and not self._stopped:
                self._changed.wait(seconds)
