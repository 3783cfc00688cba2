"""The conversations and turns that clients have open in this process.

A turn lasts over several requests: the question is recorded by the first, the answer by the last one, and meanwhile no
other turn of the conversation can begin. A turn is a lock and a place to deliver to, never data: when this process ends
or the client stays away for too long, the turn is interrupted, and everything that was recorded stays.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memoranda.api.memory import Memory
from memoranda.api.session import Session
from memoranda.api.turn import Turn

# A model may take minutes to answer; a client that died must not block its conversation for hours.
_IDLE_TURN_SECONDS = 900.0
_MAX_SESSIONS = 512


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
