"""The queue of one provider for one session: it puts notifications into the outbox.

A conversation does not queue its turns: they are marked in the record and found there (see `recorded_turns`). Every
other notification is put into the outbox at once, after the turns that happened before it. While the outbox cannot be
written, it goes to the spool, and from there into the outbox as soon as this process or another one can write it.
"""

import logging
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from memoranda.errors import CorruptStoreError, NewerStoreError, StorageError
from memoranda.external.outbox.jobs import NewJob
from memoranda.external.outbox.outbox import Outbox
from memoranda.external.outbox.recorded_turns import PRIMARY, FinishedTurn, TurnSource
from memoranda.storage.files.fork_lock import ForkLock
from memoranda.storage.position import START, Position
from memoranda.support.json_texts import map_texts

_log = logging.getLogger(__name__)

# Seconds for which a conversation waits for the outbox; what takes longer happens in the background.
LOCK_TIMEOUT = 0.5
_MAX_UNSAVED = 10_000


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
