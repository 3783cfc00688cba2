"""What all requests share: the home, its users' memories, open turns, keys, the audit log, limits and counters.

A turn lasts over several requests: the question is recorded by the first, the answer by the last one, and meanwhile no
other turn of the conversation can begin. A turn is a lock and a place to deliver to, never data: when this process ends
or the client stays away for too long, the turn is interrupted, and everything that was recorded stays.
"""

import asyncio
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memoranda.api.memory import Memory
from memoranda.api.session import Session
from memoranda.api.turn import Turn
from memoranda.errors import MemorandaError
from memoranda.home.access.keys import ApiKeys
from memoranda.home.access.request_log import Answers, AuditLog
from memoranda.home.access.service_database import ServiceDatabase
from memoranda.service.http.callers import Authenticator
from memoranda.service.http.metrics import Metrics
from memoranda.service.http.problems import Problem
from memoranda.service.http.rate_limit import RateLimit
from memoranda.service.http.settings import ServerSettings
from memoranda.service.http.workers import Workers
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import JsonObject

# A model may take minutes to answer; a client that died must not block its conversation for hours.
_IDLE_TURN_SECONDS = 900.0
_MAX_SESSIONS = 512
_log = logging.getLogger(__name__)
_POLL_SECONDS = 1.0
_MAX_USERS = 256


class Service:
    """One process of the service over one open home."""

    def __init__(self, memory: Memory, settings: ServerSettings | None = None, *, loopback_only: bool = True) -> None:
        """`loopback_only` says that the service listens on the loopback address, where no key may be needed."""
        self.memory = memory
        self.settings = settings or ServerSettings()
        self.loopback_only = loopback_only
        self.database = ServiceDatabase(memory.home.root, memory.services.record_location)
        self.keys = ApiKeys(self.database)
        self.audit = AuditLog(self.database)
        self.answers = Answers(self.database)
        self.authenticator = Authenticator(self.keys)
        self.metrics = Metrics()
        self.rate_limit = RateLimit(self.settings.rate, self.settings.burst)
        self.conversations = Conversations()
        self.workers = Workers(self.settings, self.metrics)
        self.feed = FeedWatch(self._read_head, self.workers)
        memory.services.follow_others(self.feed.notify)
        self.stopping = threading.Event()
        self._on_stop: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._memories: OrderedDict[tuple[str | None, int], Memory] = OrderedDict()

    def hide_home(self, text: str) -> str:
        """A text without the path of the home: where it is on this machine is the operator's business."""
        return text.replace(str(self.memory.home.root), "<home>")

    def hide_home_in(self, answer: JsonObject) -> JsonObject:
        """The answer of a tool with such texts: its receipt and its error, and not what it quotes."""
        return {name: self.hide_home(value) if isinstance(value, str) else value for name, value in answer.items()}

    def memory_of(self, user: str | None) -> Memory:
        """The home as one user sees it; None is the home's owner."""
        # A user may have moved to another store of the fleet since the last request.
        key = (user, id(self.memory.services.for_user(user)))
        with self._lock:
            found = self._memories.get(key)
            if found is not None:
                self._memories.move_to_end(key)
                return found
        opened = self.memory.for_user(user)
        with self._lock:
            self._memories[key] = opened
            while len(self._memories) > _MAX_USERS:
                self._memories.popitem(last=False)
        return opened

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Call a function when the service is asked to stop, from any thread."""
        self._on_stop.append(callback)

    def _read_head(self) -> object:
        return self.memory.sessions.head()

    def stop(self) -> None:
        """End the requests that wait for something, so that the process can end."""
        self.stopping.set()
        self.feed.notify()
        for callback in self._on_stop:
            callback()

    def close(self) -> None:
        """Close the service's own database; the home belongs to the caller."""
        self.conversations.close()
        self.database.close()


@dataclass(slots=True)
class _OpenTurn:
    turn: Turn
    last_used: float


class Conversations:
    """The sessions and turns of one process, by user and id."""

    def __init__(
        self,
        *,
        max_sessions: int = _MAX_SESSIONS,
        idle_seconds: float = _IDLE_TURN_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_sessions = max_sessions
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: OrderedDict[tuple[str | None, str], Session] = OrderedDict()
        self._turns: dict[tuple[str | None, int], _OpenTurn] = {}

    def session(self, memory: Memory, session_id: str, **options: str) -> Session:
        """The session with this id, resumed or started; `options` are those of `Memory.session` for a new one."""
        key = (memory.user, session_id)
        row = memory.sessions.get_session(session_id)
        if row is None or row["ended_at"] is not None:
            # It was deleted or ended, perhaps by another process: a cached session would not reopen it.
            self._forget(key)
        with self._lock:
            if key in self._sessions:
                self._sessions.move_to_end(key)
                return self._sessions[key]
        opened = memory.session(session_id=session_id, **({"source": "http"} | options))  # type: ignore[arg-type]
        with self._lock:
            session = self._sessions.setdefault(key, opened)
            surplus = [self._sessions.popitem(last=False)[1] for _ in range(len(self._sessions) - self._max_sessions)]
        for old in surplus:
            # The conversation is not over; only what this process holds for it is released.
            old.external.close()
        return session

    def end(self, memory: Memory, session_id: str, reason: str) -> None:
        """End a session; its external memory is notified if this process has it open."""
        with self._lock:
            session = self._sessions.pop((memory.user, session_id), None)
        if session is not None:
            session.end(reason)
        memory.sessions.end_session(session_id, reason)

    def begin(self, memory: Memory, session: Session, content: Any, external_id: str | None = None) -> Turn:
        """Record a question and begin its turn; raises SessionBusy at once while another turn is in progress."""
        self._leave_idle_turns()
        turn = session.turn(content, wait=0, external_id=external_id)
        with self._lock:
            self._turns[(memory.user, turn.message_id)] = _OpenTurn(turn, self._clock())
        return turn

    def find(self, memory: Memory, message_id: int) -> Turn | None:
        """The open turn that began with a message; None if it is over, or began in another process."""
        with self._lock:
            found = self._turns.get((memory.user, message_id))
            if found is None:
                return None
            found.last_used = self._clock()
            return found.turn

    def leave(self, memory: Memory, message_id: int) -> None:
        """Leave a turn; without an answer it is interrupted."""
        with self._lock:
            found = self._turns.pop((memory.user, message_id), None)
        if found is not None:
            found.turn.close()

    def finish(
        self, memory: Memory, session: Session, message_id: int, answer: Sequence[Mapping[str, Any]]
    ) -> list[int]:
        """Record the answer of a turn, also when it began in another process or was left meanwhile."""
        turn = self.find(memory, message_id)
        if turn is not None:
            ids = turn.done(answer)
            self.leave(memory, message_id)
            return ids
        last = len(answer) - 1
        mark = session.external.mark
        return session.record_all(
            [{**message, **mark(message_id, done=index == last)} for index, message in enumerate(answer)]
        )

    def close(self) -> None:
        """Leave all turns, so that other processes can begin them."""
        with self._lock:
            turns, self._turns = list(self._turns.values()), {}
        for open_turn in turns:
            open_turn.turn.close()

    def _forget(self, key: tuple[str | None, str]) -> None:
        with self._lock:
            session = self._sessions.pop(key, None)
        if session is not None:
            session.external.close()

    def _leave_idle_turns(self) -> None:
        limit = self._clock() - self._idle_seconds
        with self._lock:
            idle = [key for key, open_turn in self._turns.items() if open_turn.last_used < limit]
            turns = [self._turns.pop(key).turn for key in idle]
        for turn in turns:
            turn.close()


class FeedWatch:
    """Lets any number of clients wait, while one task looks at the head of the feed once a second for all of them."""

    def __init__(self, read_head: Callable[[], Any], workers: Workers) -> None:
        self._read_head = read_head
        self._workers = workers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed: asyncio.Event | None = None
        self._poller: asyncio.Task[None] | None = None
        self.waiting = 0
        self.streams = 0
        """How many clients follow the feed as a stream; only the event loop changes it."""

    def next_change(self) -> asyncio.Event:
        """The event of the next change. Taken before the feed is read, so that no change in between is missed."""
        self._loop = asyncio.get_running_loop()
        if self._changed is None:
            self._changed = asyncio.Event()
        return self._changed

    async def wait(self, change: asyncio.Event, seconds: float) -> None:
        """Wait for an event of `next_change`, for a limited time."""
        self.waiting += 1
        if self._poller is None:
            self._poller = asyncio.create_task(self._poll())
        try:
            async with asyncio.timeout(seconds):
                await change.wait()
        except TimeoutError:
            return
        finally:
            self.waiting -= 1

    def notify(self) -> None:
        """Wake all that wait; from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    async def _poll(self) -> None:
        """Look for changes of other processes as long as a client waits."""
        last = None
        while self.waiting:
            try:
                head = await self._workers.run(self._read_head)
            except (Problem, MemorandaError):
                # The clients see the error when they read the feed.
                head = None
            if head != last:
                last = head
                self._wake()
            await asyncio.sleep(_POLL_SECONDS)
        self._poller = None
