"""An opened home in an asyncio program."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self, Unpack, cast

from memoranda.api.aio.agent import AsyncAgent
from memoranda.api.aio.session import AsyncSession
from memoranda.api.aio.threads import WorkerThreads
from memoranda.api.aio.wrappers import InThreads, Opener, TurnQueues, read_in_thread, run_in_thread
from memoranda.api.memory import Memory, open_memory
from memoranda.api.session_parts.options import GatewayFacts

if TYPE_CHECKING:
    from memoranda.agent.compression.trigger import ContextEngine
    from memoranda.agent.events import Event
    from memoranda.agent.review.report import ReviewReport
    from memoranda.api.aio.agent import AgentAndSession
    from memoranda.api.session import Session
    from memoranda.models.model import ChatModel
    from memoranda.search.summaries import Summarize
    from memoranda.support.tool import Tool


class AsyncMemory(InThreads[Memory]):
    """An opened home, for one event loop. `sync` is the `Memory` behind it, whose methods `run` calls in a thread."""

    def __init__(self, memory: Memory) -> None:
        self._worker_threads = WorkerThreads()
        super().__init__(memory, self._worker_threads)
        self._queues = TurnQueues(self._worker_threads)

    def session(
        self,
        *,
        source: str = "library",
        model: str = "",
        user: str | None = None,
        session_id: str | None = None,
        directory: str | Path | None = None,
        instructions: str = "",
        parent: str | None = None,
        context_engine: "ContextEngine | None" = None,
        **facts: Unpack[GatewayFacts],
    ) -> Opener[AsyncSession]:
        """Start a session, or resume one by its id: `async with memory.session() as session`, or `await` it.

        The arguments are those of `Memory.session`. Raises TypeError for an unknown one when it is opened, and
        HomeError after `close`.
        """

        def start() -> AsyncSession:
            session = self.sync.session(
                source=source,
                model=model,
                user=user,
                session_id=session_id,
                directory=directory,
                instructions=instructions,
                parent=parent,
                context_engine=context_engine,
                **facts,
            )
            return self._wrap(session)

        return Opener(lambda: self._threads.run(start))

    async def agent(
        self,
        model: "ChatModel | None" = None,
        *,
        session: AsyncSession | None = None,
        tools: "Sequence[Tool]" = (),
        on_event: "Callable[[Event], None] | None" = None,
        on_review: "Callable[[ReviewReport], None] | None" = None,
    ) -> AsyncAgent:
        """An agent that works in a session: `await agent.turn(text)`, or `async for piece in agent.stream(text)`.

        The arguments are those of `Memory.agent`; the callbacks are called in the event loop. Tools may be made from
        coroutine functions. Raises ModelError without a model, when none is configured.
        """
        loop = asyncio.get_running_loop()

        def report(review: "ReviewReport") -> None:
            if on_review is not None and not loop.is_closed():
                loop.call_soon_threadsafe(on_review, review)

        def create(on_text: Callable[[str], None], on_event: "Callable[[Event], None]") -> "AgentAndSession":
            agent = self.sync.agent(
                model,
                session=session.sync if session else None,
                tools=tools,
                on_text=on_text,
                on_event=on_event,
                on_review=report if on_review else None,
            )
            return agent, session or self._wrap(cast("Session", agent.session))

        return await self._threads.run(lambda: AsyncAgent(self._worker_threads, create, on_event))

    search = read_in_thread(Memory.search)
    call = run_in_thread(Memory.call)
    recent = read_in_thread(Memory.recent)
    status = read_in_thread(Memory.status)
    curate = run_in_thread(Memory.curate)
    entries = read_in_thread(Memory.entries)
    remember = run_in_thread(Memory.remember)
    get = read_in_thread(Memory.get)
    forget = run_in_thread(Memory.forget)

    @property
    def tools(self) -> "tuple[Tool, ...]":
        """The tools outside any session; `call` calls one without blocking the loop."""
        return self.sync.tools

    async def close(self) -> None:
        """Close everything that was opened, after the calls that run; every write was durable when it was answered."""
        await asyncio.to_thread(self._close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _wrap(self, session: "Session") -> AsyncSession:
        return AsyncSession(session, self._threads, self._queues, self.sync.config.turn_wait)

    def _close(self) -> None:
        self._worker_threads.shut_down()
        self.sync.close()


def open_async(
    home: str | Path | None = None,
    *,
    profile: str | None = None,
    user: str | None = None,
    summarize: "Summarize | None" = None,
) -> Opener[AsyncMemory]:
    """Open a home for an asyncio program: `async with memoranda.open_async() as memory`, or `await` it.

    The arguments and errors are those of `memoranda.open`. Use the object in one event loop.
    """

    async def open_it() -> AsyncMemory:
        return AsyncMemory(await asyncio.to_thread(open_memory, home, profile=profile, user=user, summarize=summarize))

    return Opener(open_it)
