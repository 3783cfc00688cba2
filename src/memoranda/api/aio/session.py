"""A conversation in an asyncio program, and its turns."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from memoranda.agent.model_messages import AnswerStream
from memoranda.api.aio.threads import Opener, WorkerThreads, in_thread, read_in_thread
from memoranda.api.session import Session
from memoranda.api.turn import Turn
from memoranda.errors import SessionBusyError

if TYPE_CHECKING:
    from memoranda.agent.session_views import UndoneTurn
    from memoranda.support.tool import Tool
    from memoranda.types import ChatMessage


class AsyncTurn:
    """One turn: the user's message is durable when it begins, the answer when `done` returns.

    A turn whose task is cancelled, or that is left without `done`, is interrupted: what was recorded stays, and the
    next turn can begin.
    """

    def __init__(self, turn: Turn, threads: WorkerThreads) -> None:
        self.sync = turn
        self._threads = threads
        # The task that began the turn: it would wait for its own end if it began another one.
        self._task: asyncio.Task[Any] | None = asyncio.current_task()

    @property
    def message_id(self) -> int:
        """The id of the user's message."""
        return self.sync.message_id

    @property
    def interrupted(self) -> bool:
        """True until `done` has recorded the answer."""
        return self.sync.interrupted

    @property
    def is_open_in_this_task(self) -> bool:
        """Whether this task began the turn and has not left it."""
        return self.sync.is_open and self._task is asyncio.current_task()

    async def messages(self) -> "list[ChatMessage]":
        """The conversation so far in the form that chat APIs accept, with recalled memory in a copy of the question."""
        return await self._threads.read(lambda: self.sync.messages)

    record = in_thread(Turn.record)

    async def done(self, reply: str | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> list[int]:
        """Record the answer: text, a message, or several messages in one commit. Raises SessionError the second time.

        A cancellation during this call takes effect when the answer is recorded.
        """
        return await self._threads.run(self.sync.done, reply)

    async def stream(self, chunks: AsyncIterable[str]) -> AsyncGenerator[str, None]:
        """Yield an answer while the model writes it, without recalled memory that it repeats, then record it as `done`.

        When the caller stops reading, is cancelled, or the model fails, what was yielded so far is recorded with a note
        that the answer is not complete, and the turn is interrupted. Close the iterator when you leave it early
        (`contextlib.aclosing`). Raises ModelReplyError when the model wrote nothing.
        """
        pieces: list[str] = []
        answer = AnswerStream(pieces.append)
        try:
            async for chunk in chunks:
                answer.feed(chunk)
                while pieces:
                    yield pieces.pop(0)
            answer.finish()
            while pieces:
                yield pieces.pop(0)
        except BaseException:
            await self._threads.run(self.sync.keep_partial_answer, answer.shown)
            raise
        await self._threads.run(self.sync.done_streaming, answer.written)

    close = in_thread(Turn.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


_P = ParamSpec("_P")
_R = TypeVar("_R")
_FIRST_PAUSE, _MAX_PAUSE = 0.001, 0.05


class TurnQueues:
    """Puts the tasks that wait for a turn of one session in the order in which they asked."""

    def __init__(self) -> None:
        self._queues: dict[str, tuple[asyncio.Lock, int]] = {}

    def join(self, session_id: str) -> asyncio.Lock:
        """Return the lock of a session; `leave` must follow."""
        lock, count = self._queues.get(session_id, (asyncio.Lock(), 0))
        self._queues[session_id] = (lock, count + 1)
        return lock

    def leave(self, session_id: str) -> None:
        lock, count = self._queues.pop(session_id)
        if count > 1:
            self._queues[session_id] = (lock, count - 1)


class AsyncSession:
    """One conversation. `sync` is the `Session` behind it, whose methods `run` calls in a thread."""

    def __init__(self, session: Session, threads: WorkerThreads, queues: TurnQueues, turn_wait: float) -> None:
        self.sync = session
        self._threads = threads
        self._queues = queues
        self._turn_wait = turn_wait
        self._latest_turn: AsyncTurn | None = None

    @property
    def id(self) -> str:
        """The id of the session, which is another one after compression."""
        return self.sync.id

    @property
    def model(self) -> str:
        """The name of the model that answers, as far as it is known."""
        return self.sync.model

    @property
    def prompt(self) -> str:
        """The system prompt, byte-identical until the conversation is compressed."""
        return self.sync.prompt

    @property
    def tools(self) -> "tuple[Tool, ...]":
        """What the model may call; `call` calls one without blocking the loop."""
        return self.sync.tools

    def turn(self, text: Any, *, wait: float | None = None) -> Opener[AsyncTurn]:
        """Begin a turn: `async with session.turn(text) as turn`, or `turn = await session.turn(text)`.

        The user's message is durable when it has begun. While another turn of the conversation is in progress, in this
        or another process, this waits for up to `wait` seconds (the setting sessions.turn_wait) and blocks neither the
        loop nor a thread; then it raises SessionBusyError. Raises SessionError for an empty message.
        """
        return Opener(lambda: self._begin_turn(text, self._turn_wait if wait is None else wait))

    record = in_thread(Session.record)
    record_all = in_thread(Session.record_all)
    conversation = read_in_thread(Session.conversation)
    call = in_thread(Session.call)
    remember = in_thread(Session.remember)
    entries = read_in_thread(Session.entries)
    note_usage = in_thread(Session.note_usage)
    compress = in_thread(Session.compress)

    async def undo(self) -> "UndoneTurn | None":
        """Undo the last turn; None when there is none. Raises SessionBusyError while a turn is in progress."""
        return await self._threads.run(self.sync.undo, wait=0)

    async def run(self, function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Run any other method of `sync` in a thread: `await session.run(session.sync.rename, "Locks")`."""
        return await self._threads.run(function, *args, **kwargs)

    end = in_thread(Session.end)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end()

    async def _begin_turn(self, text: Any, wait: float) -> AsyncTurn:
        if self._latest_turn is not None and self._latest_turn.is_open_in_this_task:
            raise SessionBusyError(
                f"A turn of session {self.id!r} is open in this task. Finish it with done(), or leave it with close() "
                "or the end of its 'async with' block, before the next one begins. Nothing was recorded."
            )
        session_id, deadline = self.id, asyncio.get_running_loop().time() + wait
        queue = self._queues.join(session_id)
        try:
            try:
                async with asyncio.timeout_at(deadline):
                    await queue.acquire()
            except TimeoutError:
                raise _busy(session_id, wait) from None
            try:
                turn = await self._poll_for_turn(text, wait, deadline)
            finally:
                queue.release()
        finally:
            self._queues.leave(session_id)
        self._latest_turn = AsyncTurn(turn, self._threads)
        return self._latest_turn

    async def _poll_for_turn(self, text: Any, wait: float, deadline: float) -> Turn:
        """Try to begin the turn until the conversation is free. A waiting thread would be missing for the others."""
        loop, pause = asyncio.get_running_loop(), _FIRST_PAUSE
        begun: list[Turn] = []
        while not begun:
            try:
                # A cancellation discards the result, but not the turn that has begun meanwhile.
                await self._threads.run(lambda: begun.append(self.sync.turn(text, wait=0)))
            except SessionBusyError:
                remaining = deadline - loop.time()
                if remaining <= 0:
                    raise _busy(self.id, wait) from None
                await asyncio.sleep(min(remaining, pause))
                pause = min(pause * 2, _MAX_PAUSE)
            except asyncio.CancelledError:
                for turn in begun:
                    await self._threads.run(turn.close)
                raise
        return begun[0]


def _busy(session_id: str, wait: float) -> SessionBusyError:
    return SessionBusyError(
        f"Another turn of session {session_id!r} is in progress and did not end within {wait:g} s. Nothing of this one "
        "was recorded. Send the message again when that turn has ended."
    )
