"""An agent in an asyncio program: it works in a thread, and its text and events arrive in the event loop."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from memoranda.api.aio.session import AsyncSession
from memoranda.api.aio.threads import WorkerThreads

if TYPE_CHECKING:
    from memoranda.agent.events import Event
    from memoranda.agent.loop import Agent
    from memoranda.support.tool import Tool

    AgentAndSession = tuple[Agent, AsyncSession]
    CreateAgent = Callable[[Callable[[str], None], Callable[[Event], None]], AgentAndSession]

_log = logging.getLogger(__name__)


class _TurnStopped(KeyboardInterrupt):
    """Ends the turn of an agent whose caller no longer waits for it, as Ctrl-C ends that of a chat."""


class _Listener:
    """Passes what an agent reports in its thread to the event loop; once `stopped`, it ends the turn instead."""

    def __init__(self, on_event: "Callable[[Event], None] | None") -> None:
        self.stopped = False
        self.pieces: asyncio.Queue[str | None] = asyncio.Queue()
        self._on_event = on_event
        self._loop = asyncio.get_running_loop()

    def text(self, piece: str) -> None:
        self._pass_on(self.pieces.put_nowait, piece)

    def event(self, event: "Event") -> None:
        self._pass_on(self._on_event or (lambda event: None), event)

    def _pass_on(self, receive: Callable[[Any], object], value: Any) -> None:
        if self.stopped or self._loop.is_closed():
            raise _TurnStopped
        self._loop.call_soon_threadsafe(receive, value)


_listener: ContextVar[_Listener] = ContextVar("_listener")


class AsyncAgent:
    """A model that works in one conversation; `sync` is the `Agent` behind it."""

    def __init__(
        self, threads: WorkerThreads, create: "CreateAgent", on_event: "Callable[[Event], None] | None" = None
    ) -> None:
        """`create` creates the agent and its session, with a function for its text and one for its events."""
        self._threads = threads
        self._on_event = on_event
        self.sync, self.session = create(
            lambda piece: _listener.get().text(piece), lambda event: _listener.get().event(event)
        )

    @property
    def tools(self) -> "tuple[Tool, ...]":
        """All tools that the model is offered."""
        return self.sync.tools

    async def turn(self, text: Any, *, wait: float | None = None) -> str:
        """Answer a user message. Raises ModelError when the model cannot, and SessionBusyError like `Agent.turn`.

        A cancellation takes effect at once. The turn itself ends when its model writes the next piece of text or
        returns: what was written until then is recorded as interrupted, and the next turn can begin.
        """
        listener, future = self._start(text, wait)
        try:
            return await asyncio.shield(future)
        finally:
            listener.stopped = True

    async def stream(self, text: Any, *, wait: float | None = None) -> AsyncGenerator[str, None]:
        """Yield the answer to a user message while the model writes it. Raises what `turn` raises.

        Leaving early interrupts the turn; close the iterator then (`contextlib.aclosing`).
        """
        listener, future = self._start(text, wait)
        future.add_done_callback(lambda _: listener.pieces.put_nowait(None))
        try:
            while (piece := await listener.pieces.get()) is not None:
                yield piece
        finally:
            listener.stopped = True
        await future

    def _start(self, text: Any, wait: float | None) -> tuple[_Listener, asyncio.Future[str]]:
        listener = _Listener(self._on_event)
        previous = _listener.set(listener)
        try:
            future = self._threads.start_agent_turn(lambda: self._run_turn(text, wait))
        finally:
            _listener.reset(previous)
        # Asyncio would report the error of a turn whose caller was cancelled as a mistake of the program.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        return listener, future

    def _run_turn(self, text: Any, wait: float | None) -> str:
        try:
            return self.sync.turn(text, wait=wait)
        except _TurnStopped:
            _log.info("A turn of session %s was cancelled, and is recorded as interrupted.", self.session.id)
            return ""
