"""The way into the outbox: nobody in a conversation waits for the disk, and nothing is lost for it.

Turns are not put there by the conversation at all: they are marked in the record, and found there (see `turns`).
Everything else is put there at once, behind the turns that came before it. While the file cannot be written, it is put
aside (see `spool`), and taken in by this process or the next, as soon as it can.
"""

import logging
import threading
import uuid
from collections import deque
from collections.abc import Callable

from memoranda.db.position import START, Position
from memoranda.errors import CorruptStoreError, NewerStoreError, StorageError
from memoranda.providers.jobs import NewJob
from memoranda.providers.outbox import Outbox
from memoranda.providers.recorded_turns import FinishedTurn, TurnSource
from memoranda.providers.text import clean_texts

_log = logging.getLogger(__name__)

# How long a conversation waits for the outbox at most; what takes longer is done in the background.
LOCK_TIMEOUT = 0.5
_MOST_LATER = 10_000


class ProviderQueue:
    """What one session tells its provider, on its way into the outbox; `clean` takes recalled text out of it."""

    def __init__(self, outbox: Outbox, clean: Callable[[str], str]) -> None:
        self.outbox = outbox
        self._clean = clean
        self._lock = threading.Lock()
        self._later: deque[NewJob] = deque(maxlen=_MOST_LATER)
        self._source: TurnSource | None = None
        self._start: Position | None = None
        self._recorded = self._found = 0
        self.provider = ""
        self.scope = ""
        self.session_id = ""

    @property
    def flushed(self) -> bool:
        """Whether everything that is known here is in the outbox."""
        here = self._found == self._recorded and not self._later
        return here and not self.outbox.has_spooled(self.provider, self.scope)

    @property
    def unsaved(self) -> int:
        """How much waits here and nowhere else, because not even the disk would take it."""
        return len(self._later)

    def follow(self, source: TurnSource) -> None:
        """Look for completed turns in a record, behind the place where it was last looked; the first time, from now on.

        That place is durable before the first turn is recorded.
        """
        self._source = source
        self._recorded += 1
        if self.outbox.place(self.provider, self.scope) is None:
            self._start = source.head()
            try:
                self.outbox.catch_up(self.provider, self.scope, self._start, lambda place: (place, ()))
            except StorageError:
                self.outbox.spool_position(self.provider, self.scope, self._start)
                raise

    def turn_recorded(self) -> None:
        """There is a completed turn in the record."""
        if self._source is not None:
            self._recorded += 1

    def put(self, new: NewJob) -> bool:
        """Queue something behind everything before it. True when it is durable, False when it has to wait for that."""
        new = NewJob(
            new.kind,
            new.session_id,
            clean_texts(new.args, self._clean),
            clean_texts(new.facts, self._clean),
            new.key or uuid.uuid4().hex,
        )
        if not self._lock.acquire(timeout=LOCK_TIMEOUT):
            return self._spool(new)
        try:
            self._flush()
            self._put(new)
            return True
        except StorageError as error:
            _log.warning("What %s is to be told is put aside: %s", self.provider, error)
            kept = self._spool(new)
            if isinstance(error, CorruptStoreError | NewerStoreError):
                raise
            return kept
        finally:
            self._lock.release()

    def flush(self) -> None:
        """Bring everything into the outbox; raises StorageError when that is not possible now."""
        if not self.flushed:
            with self._lock:
                self._flush()

    def close(self) -> None:
        """Look for nothing more: the record may be closed from now on."""
        with self._lock:
            self._source = None

    def _flush(self) -> None:
        recorded = self._recorded
        if self._found != recorded and self._source is not None:
            self._catch_up(self._source)
            # A turn that was completed meanwhile is looked for again.
            self._found = recorded
        self.outbox.load_spooled(self.provider, self.scope)
        while self._later:
            self._put(self._later[0])
            self._later.popleft()

    def _catch_up(self, source: TurnSource) -> None:
        if self._start is None and self.outbox.place(self.provider, self.scope) is None:
            self._start = source.head()

        def read(place: Position) -> tuple[Position, list[NewJob]]:
            head, turns = source.after(place)
            return head, [self._as_job(turn) for turn in turns]

        self.outbox.catch_up(self.provider, self.scope, self._start or START, read, ours=self.session_id)

    def _as_job(self, turn: FinishedTurn) -> NewJob:
        question, answer = self._clean(turn.question).strip(), self._clean(turn.answer).strip()
        return turn_job(turn.session_id, question, answer, clean_texts(turn.messages, self._clean), turn.key)

    def _spool(self, new: NewJob) -> bool:
        """Keep something that the outbox does not take now; behind what waits here, if anything does."""
        if not self._later:
            try:
                self.outbox.spool(self.provider, self.scope, new)
                return True
            except OSError as error:
                _log.error("What %s is to be told waits in memory: %s", self.provider, error)
        self._later.append(new)
        return False

    def _put(self, new: NewJob) -> None:
        self.outbox.put(self.provider, new.kind, new.session_id, new.args, new.facts, scope=self.scope, key=new.key)


def turn_job(session_id: str, question: str, answer: str, messages: object, key: str) -> NewJob:
    """A turn as it is queued."""
    args = {"user_content": question, "assistant_content": answer}
    facts = {"session_id": session_id} | ({} if messages is None else {"messages": messages})
    return NewJob("turn", session_id, args, facts, key)
