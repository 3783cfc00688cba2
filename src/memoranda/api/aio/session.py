"""A conversation in an asyncio program, and its turns."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable
from typing import TYPE_CHECKING, Any, Self

from memoranda.api.aio.wrappers import InThreads, Opener, Threads, TurnQueues, read_in_thread, run_in_thread
from memoranda.api.session import Session
from memoranda.api.turn import Turn
from memoranda.errors import SessionBusyError

if TYPE_CHECKING:
    from memoranda.agent.session_views import UndoneTurn
    from memoranda.support.tool import Tool
    from memoranda.types import ChatMessage


class AsyncTurn(InThreads[Turn]):
    """One turn: the user's message is durable when it begins, the answer when `done` returns.

    A turn whose task is cancelled, or that is left without `done`, is interrupted: what was recorded stays, and the
    next turn can begin.
    """

    def __init__(self, turn: Turn, threads: Threads) -> None:
        super().__init__(turn, threads)
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

    record = run_in_thread(Turn.record)
    done = run_in_thread(Turn.done)
    close = run_in_thread(Turn.close)

    async def stream(self, chunks: AsyncIterable[str]) -> AsyncGenerator[str, None]:
        """Yield an answer while the model writes it, without recalled memory that it repeats, then record it as `done`.

        When the caller stops reading, is cancelled, or the model fails, what was yielded so far is recorded with a note
        that the answer is not complete, and the turn is interrupted. Close the iterator when you leave it early
        (`contextlib.aclosing`). Raises ModelReplyError when the model wrote nothing.
        """
        pieces: list[str] = []
        answer = self.sync.begin_stream(pieces.append)
        try:
            async for chunk in chunks:
                answer.feed(chunk)
                while pieces:
                    yield pieces.pop(0)
            answer.finish()
            while pieces:
                yield pieces.pop(0)
        except BaseException as error:
            await self._threads.run(self.sync.break_off, failed=isinstance(error, Exception))
            raise
        await self._threads.run(self.sync.done_streaming, answer.written)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncSession(InThreads[Session]):
    """One conversation. `sync` is the `Session` behind it, whose methods `run` calls in a thread."""

    def __init__(self, session: Session, threads: Threads, queues: TurnQueues, turn_wait: float) -> None:
        super().__init__(session, threads)
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

    record = run_in_thread(Session.record)
    record_all = run_in_thread(Session.record_all)
    conversation = read_in_thread(Session.conversation)
    call = run_in_thread(Session.call)
    remember = run_in_thread(Session.remember)
    entries = read_in_thread(Session.entries)
    note_usage = run_in_thread(Session.note_usage)
    compress = run_in_thread(Session.compress)
    end = run_in_thread(Session.end)

    async def undo(self) -> "UndoneTurn | None":
        """Undo the last turn; None when there is none. Raises SessionBusyError while a turn is in progress."""
        return await self._threads.run(self.sync.undo, wait=0)

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
        turn = await self._queues.begin(self.id, lambda: self.sync.turn(text, wait=0), wait)
        self._latest_turn = AsyncTurn(turn, self._threads)
        return self._latest_turn
