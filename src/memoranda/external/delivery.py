"""The queue of one provider for one session, and the thread that delivers its jobs to the provider's hooks.

A conversation writes only to the record: its turns are marked there, and every other notification is a row of it. The
thread reads them into the outbox (see `record_feed`), so that an outbox that is locked or damaged delays no turn.

The thread starts the provider if needed, and sleeps until there is a job. A delivery runs in a thread of its own, so
that a provider that hangs is noticed and shown; its job stays leased for as long as the call runs, and no other
delivery begins meanwhile.
"""

import logging
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import replace

from memoranda.errors import HomeError, StorageError
from memoranda.external.active_provider import ActiveProvider
from memoranda.external.guarded_call import CallResult, PendingCall
from memoranda.external.outbox.jobs import Job, NewJob
from memoranda.external.outbox.outbox import Outbox
from memoranda.external.outbox.recorded_turns import PRIMARY
from memoranda.external.settings import ProviderSettings
from memoranda.support.json_texts import map_texts

_log = logging.getLogger(__name__)

HOOKS = {
    "turn": "sync_turn",
    "memory_write": "on_memory_write",
    "session_end": "on_session_end",
    "session_switch": "on_session_switch",
    "delegation": "on_delegation",
    "forget": "forget",
}
# Jobs that another process left behind are found after this long at the latest; sooner while a job is waiting.
_POLL_SECONDS = 30.0
_BUSY_POLL_SECONDS = 1.0


class ProviderQueue:
    """Records notifications for one provider, scope and session; `clean` removes recalled text from them."""

    def __init__(self, outbox: Outbox, clean: Callable[[str], str]) -> None:
        self.outbox = outbox
        self._clean = clean
        self._lock = threading.Lock()
        # Not read yet: what was recorded before this session.
        self._recorded, self._read = 1, 0
        self.provider = ""
        self.scope = ""
        self.session_id = ""
        self.together = 1
        """How many turns the provider gets in one delivery, where there are so many."""
        self.context = PRIMARY
        """The `agent_context` of the session. A job has that of its own session, because any other may deliver it."""

    @property
    def flushed(self) -> bool:
        """Whether every notification so far is in the outbox, or held until there are more turns."""
        return self._read == self._recorded

    def turn_recorded(self) -> None:
        """Note that the record has another completed turn."""
        self._recorded += 1

    def put(self, job: NewJob) -> None:
        """Record a notification; it is durable when this returns. Raises StorageError when that is not possible."""
        facts = {"agent_context": self.context, **job.facts}
        clean = replace(job, args=map_texts(job.args, self._clean), facts=map_texts(facts, self._clean))
        self.outbox.record(self.provider, self.scope, replace(clean, key=job.key or uuid.uuid4().hex))
        self._recorded += 1

    def flush(self, *, hold: bool = False) -> None:
        """Read everything into the outbox, of all processes; raises StorageError when it cannot be written now.

        With `hold`, turns stay in the record until there are enough for a delivery.
        """
        with self._lock:
            recorded = self._recorded
            self.outbox.catch_up(self.provider, self.scope, ours=self.session_id, together=self.together, hold=hold)
            # What was recorded meanwhile is found by the next flush.
            self._read = recorded

    def clean_turn(self, job: Job) -> Job:
        """A turn as the provider gets it: without recalled text, which a record of another program may contain."""
        if job.kind != "turn":
            return job
        args = {name: self._clean(str(text)).strip() for name, text in job.args.items()}
        return replace(job, args=args, facts=map_texts(job.facts, self._clean))


def turn_job(session_id: str, question: str, answer: str, messages: object, key: str) -> NewJob:
    args = {"user_content": question, "assistant_content": answer}
    facts = {"session_id": session_id} | ({} if messages is None else {"messages": messages})
    return NewJob("turn", session_id, args, facts, key)


class Delivery:
    """Delivers the jobs of one queue to its provider, one at a time."""

    def __init__(self, queue: ProviderQueue, provider: ActiveProvider, settings: ProviderSettings) -> None:
        self._queue = queue
        self._outbox = queue.outbox
        self._provider = provider
        self._calls = provider.calls
        self._settings = settings
        self._changed = threading.Condition()
        self._woken = False
        self._job: Job | None = None
        self._attempted: set[int] = set()
        self._renewed = 0.0
        self._stopped = False
        self._stop_deadline = 0.0
        self._thread: threading.Thread | None = None
        self.closing = False
        """Set at shutdown: the provider need not be switched back to our session any more."""

    def wake(self) -> None:
        """Look for jobs now; starts the thread if it is not running."""
        with self._changed:
            if self._stopped:
                return
            self._woken = True
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name=f"memoranda-{self._calls.name}-delivery", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def drain(self, timeout: float, *, only_due: bool = False) -> bool:
        """Wait until the queue is empty; True when it is. `only_due` does not wait for jobs that are retried later."""
        deadline = time.monotonic() + timeout
        # Turns may be held, or left by a process that ended before one of them was queued.
        self._queue.flush()
        while True:
            # Before the pause: a job that enters the outbox in between is seen there.
            settled = self._queue.flushed
            pause = self._outbox.seconds_until_due(self._calls.name, self._queue.scope)
            if pause is None and settled:
                return True
            if only_due and settled and pause is not None and pause > 0 and self._job is None:
                return False
            self.wake()
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            with self._changed:
                self._changed.wait(min(remaining, 0.05))

    def stop(self, timeout: float) -> bool:
        """Begin no other delivery, wait for the one that is running, and release the other jobs to other processes."""
        timeout = max(timeout, 0.0)
        with self._changed:
            self._stop_deadline = time.monotonic() + timeout
            self._stopped = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout)
        running = self._job
        self._outbox.release(running)
        return running is None

    def _run(self) -> None:
        failures = 0
        while not self._stopped:
            try:
                self._renew_leases()
                pause = self._deliver_due()
                failures = 0
            except (StorageError, HomeError) as error:
                # A home that was closed while this thread read the record is HomeError.
                if self._stopped:
                    break
                failures += 1
                pause = min(0.1 * 2**failures, _POLL_SECONDS)
                _log.warning("Deliveries to %s wait %.1f s: %s", self._calls.name, pause, error)
            self._sleep(pause)
        self._release_after_stop()

    def _release_after_stop(self) -> None:
        """Release jobs that this thread leased while `stop` ran and the file was locked."""
        outbox = self._outbox.reopen()
        try:
            outbox.release(self._job)
        except StorageError as error:
            _log.warning("The jobs for %s are released when their leases expire: %s", self._calls.name, error)
        finally:
            outbox.close()

    def _deliver_due(self) -> float:
        """Deliver every job that is due; returns how many seconds to sleep."""
        self._woken = False
        self._queue.together = self._provider.turns_per_delivery
        self._queue.flush(hold=not self.closing)
        self._outbox.resume_parked(self._calls.name, self._queue.scope)
        while not self._stopped:
            if not self._provider.startup.ensure_started():
                return min(self._settings.first_retry_seconds, _BUSY_POLL_SECONDS)
            pause = self._outbox.seconds_until_due(self._calls.name, self._queue.scope)
            if pause is None:
                parked = self._outbox.resume_parked(self._calls.name, self._queue.scope)
                return _POLL_SECONDS if parked is None else min(max(parked, 0.01), _POLL_SECONDS)
            if self._stopped:
                break
            job = self._outbox.claim(self._calls.name, self._queue.scope)
            if job is None:
                return min(max(pause, 0.01), _BUSY_POLL_SECONDS, self._settings.lease_seconds / 3)
            self._deliver(self._queue.clean_turn(job))
            self._renew_leases()
        return 0.0

    def _deliver(self, job: Job) -> None:
        hook = HOOKS[job.kind]
        self._job = job
        facts = {"idempotency_key": job.key, "attempt": self._attempt_number(job), "timestamp": job.created}
        pending = self._calls.start(hook, job.args, {**job.facts, **facts})
        result = (
            CallResult(error="still busy with an earlier call") if pending is None else self._wait_for(job, pending)
        )
        if result is None:
            # `stop` came first. The lease stays until it expires, because the call may still be running.
            if pending is not None:
                pending.call_when_done(lambda late: self._remove_late(job, late))
            return
        try:
            self._calls.record(hook, result)
            if result.ok:
                self._remove(job, result)
                self._restore_session(job)
            elif self._outbox.failed(job, result.error, permanent=result.permanent, retry_after=result.retry_after):
                _log.error(
                    "A %s of session %s could not be delivered to the memory provider %s and is parked: %s",
                    job.kind,
                    job.session_id,
                    self._calls.name,
                    result.error,
                )
        finally:
            self._job = None
            with self._changed:
                self._changed.notify_all()

    def _attempt_number(self, job: Job) -> int:
        """1 for the first delivery of a job; more if the provider may have received it before.

        A process that ended may have delivered a job without removing it, and so may this one if the file was locked.
        """
        seen = job.orphan or job.id in self._attempted
        self._attempted.add(job.id)
        return max(job.attempts, int(seen)) + 1

    def _restore_session(self, job: Job) -> None:
        """Switch the provider back to our session after a switch that an ended process had left in the outbox."""
        current = self._queue.session_id
        if job.kind == "session_switch" and job.orphan and job.args["new_session_id"] != current and not self.closing:
            self._queue.put(NewJob("session_switch", current, {"new_session_id": current}, {"reason": "resume"}))

    def _remove(self, job: Job, result: CallResult) -> None:
        try:
            self._outbox.delivered(job)
            self._attempted.discard(job.id)
        except StorageError:
            if not self._stopped:
                raise
            # `stop` came together with the result, and has closed the outbox.
            self._remove_late(job, result)

    def _remove_late(self, job: Job, result: CallResult) -> None:
        """Remove a job whose delivery succeeded after `stop`, in a process that continues, so it is not repeated."""
        if not result.ok:
            return
        outbox = self._outbox.reopen()
        try:
            outbox.delivered(job)
        except StorageError as error:
            _log.warning("A job that %s has received will be delivered again: %s", self._calls.name, error)
        finally:
            outbox.close()

    def _wait_for(self, job: Job, pending: PendingCall) -> CallResult | None:
        """The result, however long it takes; None when the deadline of `stop` passes first."""
        limit = self._settings.deliver_seconds
        recorded = False
        while True:
            result = pending.wait(min(self._settings.lease_seconds / 3, 0.1))
            if result is not None or (self._stopped and time.monotonic() >= self._stop_deadline):
                return result
            late = time.monotonic() - pending.began > limit
            error = f"no answer within {limit:g} s" if late else ""
            if late and not recorded:
                recorded = True
                self._renewed = 0.0
                self._calls.record(HOOKS[job.kind], CallResult(error=error))
            try:
                self._renew_leases(job, error)
            except StorageError as problem:
                # The call continues; at worst another process repeats it, with the same key.
                _log.warning("The lease of a job for %s could not be renewed: %s", self._calls.name, problem)

    def _renew_leases(self, job: Job | None = None, error: str = "") -> None:
        """Renew the leases of this process when a third of their time has passed."""
        now = time.monotonic()
        if now - self._renewed >= self._settings.lease_seconds / 3:
            self._renewed = now
            self._outbox.renew(job, error)

    def _sleep(self, seconds: float) -> None:
        with self._changed:
            if not self._woken and not self._stopped:
                self._changed.wait(seconds)
