"""The queue of one provider for one session, and the thread that delivers its jobs to the provider's hooks.

A conversation does not queue its turns: they are marked in the record and found there (see `recorded_turns`). Every
other notification is put into the outbox at once, after the turns that happened before it. While the outbox cannot be
written, it goes to the spool, and from there into the outbox as soon as this process or another one can write it.

The thread starts the provider if needed, and sleeps until there is a job. A delivery runs in a thread of its own, so
that a provider that hangs is noticed and shown; its job stays leased for as long as the call runs, and no other
delivery begins meanwhile.
"""

import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from memoranda.errors import CorruptStoreError, NewerStoreError, StorageError
from memoranda.external.active_provider import ActiveProvider
from memoranda.external.guarded_call import CallResult, PendingCall
from memoranda.external.outbox.jobs import Job, NewJob
from memoranda.external.outbox.outbox import Outbox
from memoranda.external.outbox.recorded_turns import PRIMARY, FinishedTurn, TurnSource
from memoranda.external.settings import ProviderSettings
from memoranda.storage.files.fork_lock import ForkLock, fork_condition
from memoranda.storage.position import START, Position
from memoranda.support.json_texts import map_texts

_log = logging.getLogger(__name__)

# Seconds for which a conversation waits for the outbox; what takes longer happens in the background.
LOCK_TIMEOUT = 0.5
_MAX_UNSAVED = 10_000

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
    """Puts jobs into the outbox for one provider, scope and session; `clean` removes recalled text from them."""

    def __init__(self, outbox: Outbox, clean: Callable[[str], str]) -> None:
        self.outbox = outbox
        self._clean = clean
        self._lock = ForkLock()
        self._unsaved: deque[NewJob] = deque(maxlen=_MAX_UNSAVED)
        self._source: TurnSource | None = None
        self._start: Position | None = None
        self._recorded = self._found = 0
        self.provider = ""
        self.scope = ""
        self.session_id = ""
        self.context = PRIMARY
        """The `agent_context` of the session. A job has that of its own session, because any other may deliver it."""

    @property
    def flushed(self) -> bool:
        """Whether every notification so far is in the outbox."""
        all_queued = self._found == self._recorded and not self._unsaved
        return all_queued and not self.outbox.has_spooled(self.provider, self.scope)

    @property
    def unsaved(self) -> int:
        """The number of jobs that are only in memory, because neither outbox nor spool could be written."""
        return len(self._unsaved)

    def follow(self, source: TurnSource) -> None:
        """Queue turns that are completed in a record from now on, or since the position of an earlier session.

        That position is durable before the first turn is recorded.
        """
        self._source = source
        self._recorded += 1
        if self.outbox.position(self.provider, self.scope) is None:
            self._start = source.head()
            try:
                self.outbox.catch_up(self.provider, self.scope, self._start, lambda position: (position, ()))
            except StorageError:
                self.outbox.spool_position(self.provider, self.scope, self._start)
                raise

    def turn_recorded(self) -> None:
        """Note that the record has another completed turn."""
        if self._source is not None:
            self._recorded += 1

    def put(self, job: NewJob) -> bool:
        """Queue a job after everything before it. True when it is durable, False when it is only in memory."""
        job = NewJob(
            job.kind,
            job.session_id,
            map_texts(job.args, self._clean),
            map_texts({"agent_context": self.context, **job.facts}, self._clean),
            job.key or uuid.uuid4().hex,
        )
        if not self._lock.acquire(timeout=LOCK_TIMEOUT):
            return self._spool(job)
        try:
            self._flush()
            self._put(job)
            return True
        except StorageError as error:
            _log.warning("A notification for %s is spooled: the outbox cannot be written. %s", self.provider, error)
            durable = self._spool(job)
            if isinstance(error, CorruptStoreError | NewerStoreError):
                raise
            return durable
        finally:
            self._lock.release()

    def flush(self) -> None:
        """Put everything into the outbox; raises StorageError when it cannot be written now."""
        if not self.flushed:
            with self._lock:
                self._flush()

    def close(self) -> None:
        """Stop following the record, which may be closed from now on."""
        with self._lock:
            self._source = None

    def _flush(self) -> None:
        recorded = self._recorded
        if self._found != recorded and self._source is not None:
            self._catch_up(self._source)
            # A turn that was completed meanwhile is found by the next flush.
            self._found = recorded
        self.outbox.load_spooled(self.provider, self.scope)
        while self._unsaved:
            self._put(self._unsaved[0])
            self._unsaved.popleft()

    def _catch_up(self, source: TurnSource) -> None:
        if self._start is None and self.outbox.position(self.provider, self.scope) is None:
            self._start = source.head()

        def read(position: Position) -> tuple[Position, list[NewJob]]:
            head, turns = source.after(position)
            return head, [self._as_job(turn) for turn in turns]

        self.outbox.catch_up(self.provider, self.scope, self._start or START, read, ours=self.session_id)

    def _as_job(self, turn: FinishedTurn) -> NewJob:
        question, answer = self._clean(turn.question).strip(), self._clean(turn.answer).strip()
        job = turn_job(turn.session_id, question, answer, map_texts(turn.messages, self._clean), turn.key)
        return replace(job, facts={"agent_context": turn.context, **job.facts})

    def _spool(self, job: NewJob) -> bool:
        """Spool a job that the outbox cannot store now; keep it in memory after others that could not be spooled."""
        if not self._unsaved:
            try:
                self.outbox.spool(self.provider, self.scope, job)
                return True
            except OSError as error:
                _log.error("A notification for %s is only in memory: %s", self.provider, error)
        self._unsaved.append(job)
        return False

    def _put(self, job: NewJob) -> None:
        self.outbox.put(self.provider, job.kind, job.session_id, job.args, job.facts, scope=self.scope, key=job.key)


def turn_job(session_id: str, question: str, answer: str, messages: object, key: str) -> NewJob:
    """The job that delivers a turn."""
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
        self._changed = fork_condition()
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
            # Not alive after a fork either: the child gets a thread of its own.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name=f"memoranda-{self._calls.name}-delivery", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def drain(self, timeout: float, *, only_due: bool = False) -> bool:
        """Wait until the queue is empty; True when it is. `only_due` does not wait for jobs that are retried later."""
        deadline = time.monotonic() + timeout
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
            except StorageError as error:
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
        self._queue.flush()
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
            self._deliver(job)
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
