"""One turn of a conversation in an asyncio program."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from memoranda.agent.model_messages import AnswerStream
from memoranda.api.aio.threads import WorkerThreads
from memoranda.api.turn import Turn

if TYPE_CHECKING:
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

    async def record(self, role: str, content: Any = None, **fields: Any) -> int:
        """Record a step of the turn before the next step starts; returns its id.

        Raises SessionError for an unknown role and for a tool's result without tool_call_id.
        """
        return await self._threads.run(self.sync.record, role, content, **fields)

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

    async def close(self) -> None:
        """Leave the turn, so that the next one can begin; without `done` before, it is interrupted."""
        await self._threads.run(self.sync.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
