"""The interface of the library over HTTP for asyncio: the synchronous client in threads.

A call that is cancelled may still take effect at the service.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from typing import Any, ParamSpec, Self, TypeVar

from memoranda.api.aio.wrappers import (
    InThreads,
    Opener,
    Threads,
    TurnQueues,
    iterate_in_threads,
    read_in_thread,
    run_in_thread,
)
from memoranda.api.client.curated import RemoteCuratedMemory
from memoranda.api.client.items import RemoteItems
from memoranda.api.client.memory import RemoteMemory, connect
from memoranda.api.client.session import BUSY_PAUSE, TURN_WAIT, RemoteSession, RemoteTurn
from memoranda.api.client.session_store import RemoteSessionStore
from memoranda.errors import SessionError
from memoranda.support.tool import Tool
from memoranda.types import ChatMessage

_P = ParamSpec("_P")
_R = TypeVar("_R")


class AsyncRemoteCuratedMemory(InThreads[RemoteCuratedMemory]):
    """The methods of `RemoteCuratedMemory` for asyncio."""

    view = read_in_thread(RemoteCuratedMemory.view)
    replace = run_in_thread(RemoteCuratedMemory.replace)
    remove = run_in_thread(RemoteCuratedMemory.remove)
    confirm = run_in_thread(RemoteCuratedMemory.confirm)
    move = run_in_thread(RemoteCuratedMemory.move)
    log = read_in_thread(RemoteCuratedMemory.log)
    diff = read_in_thread(RemoteCuratedMemory.diff)
    proposals = read_in_thread(RemoteCuratedMemory.proposals)
    approve = run_in_thread(RemoteCuratedMemory.approve)
    reject = run_in_thread(RemoteCuratedMemory.reject)
    undo = run_in_thread(RemoteCuratedMemory.undo)


class AsyncRemoteItems(InThreads[RemoteItems]):
    """The methods of `RemoteItems` for asyncio."""

    put = run_in_thread(RemoteItems.put)
    get = read_in_thread(RemoteItems.get)
    delete = run_in_thread(RemoteItems.delete)
    write = run_in_thread(RemoteItems.write)
    search = read_in_thread(RemoteItems.search)
    list_namespaces = read_in_thread(RemoteItems.list_namespaces)
    history = read_in_thread(RemoteItems.history)
    restore = run_in_thread(RemoteItems.restore)


class AsyncRemoteSessionStore(InThreads[RemoteSessionStore]):
    """The methods of `RemoteSessionStore` for asyncio."""

    create_session = run_in_thread(RemoteSessionStore.create_session)
    get_session = read_in_thread(RemoteSessionStore.get_session)
    list_sessions_rich = read_in_thread(RemoteSessionStore.list_sessions_rich)
    get_messages = read_in_thread(RemoteSessionStore.get_messages)
    append_messages = run_in_thread(RemoteSessionStore.append_messages)
    iter_export = iterate_in_threads(RemoteSessionStore.iter_export)
    export_all = read_in_thread(RemoteSessionStore.export_all)
    import_sessions = run_in_thread(RemoteSessionStore.import_sessions)
    statistics = read_in_thread(RemoteSessionStore.statistics)
    end_session = run_in_thread(RemoteSessionStore.end_session)
    delete_session = run_in_thread(RemoteSessionStore.delete_session)


class AsyncRemoteTurn(InThreads[RemoteTurn]):
    """One turn: the user's message is durable when it begins, the answer when `done` returns.

    A turn that is left without `done` is interrupted: what was recorded stays.
    """

    record = run_in_thread(RemoteTurn.record)
    done = run_in_thread(RemoteTurn.done)
    close = run_in_thread(RemoteTurn.close)

    @property
    def message_id(self) -> int:
        """The id of the user's message."""
        return self.sync.message_id

    @property
    def interrupted(self) -> bool:
        """True until `done` has recorded the answer."""
        return self.sync.interrupted

    async def messages(self) -> list[ChatMessage]:
        """The conversation so far in the form that chat APIs accept, with recalled memory in a copy of the question."""
        return await self._threads.read(lambda: self.sync.messages)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncRemoteSession(InThreads[RemoteSession]):
    """One conversation at a service: `await` it or enter it, then it has a prompt and tools."""

    def __init__(self, session: RemoteSession, threads: Threads, queues: TurnQueues) -> None:
        super().__init__(session, threads)
        self._queues = queues

    open = run_in_thread(RemoteSession.open)
    record = run_in_thread(RemoteSession.record)
    record_all = run_in_thread(RemoteSession.record_all)
    conversation = read_in_thread(RemoteSession.conversation)
    call = run_in_thread(RemoteSession.call)
    remember = run_in_thread(RemoteSession.remember)
    entries = read_in_thread(RemoteSession.entries)
    undo = run_in_thread(RemoteSession.undo)
    end = run_in_thread(RemoteSession.end)

    @property
    def id(self) -> str:
        """The id of the session, which is another one after compression."""
        return self.sync.id

    @property
    def source(self) -> str:
        """The program that holds the conversation."""
        return self.sync.source

    @property
    def is_open(self) -> bool:
        """Whether the prompt and the tools are known."""
        return self.sync.is_open

    @property
    def prompt(self) -> str:
        """The system prompt, byte-identical until the conversation is compressed."""
        self._require_open()
        return self.sync.prompt

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What the model may call, as far as the key allows it; `call` calls one without blocking the loop."""
        self._require_open()
        return self.sync.tools

    def turn(self, text: Any, *, wait: float = TURN_WAIT) -> Opener[AsyncRemoteTurn]:
        """Begin a turn: `async with session.turn(text) as turn`, or `await` it.

        The user's message is durable then. While another turn of the conversation is in progress, this waits for up to
        `wait` seconds, then raises SessionBusyError. Raises SessionError for an empty message.
        """
        return Opener(lambda: self._begin_turn(text, wait))

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end()

    async def _begin_turn(self, text: Any, wait: float) -> AsyncRemoteTurn:
        was_open = self.is_open
        turn = await self._queues.begin(self.id, lambda: self.sync.turn(text, wait=0), wait)
        if was_open and not self.is_open:
            # The conversation was compressed meanwhile, so its prompt is another one.
            await self.open()
        return AsyncRemoteTurn(turn, self._threads)

    def _require_open(self) -> None:
        if not self.is_open:
            raise SessionError("The session is not open yet: use 'async with memory.session()', or await it.")


class AsyncRemoteMemory(InThreads[RemoteMemory]):
    """The memory of one user at a service, for one event loop. `sync` is the `RemoteMemory` behind it."""

    def __init__(self, memory: RemoteMemory, threads: Threads) -> None:
        super().__init__(memory, threads)
        self._queues = TurnQueues(threads, BUSY_PAUSE, BUSY_PAUSE)

    search = read_in_thread(RemoteMemory.search)
    recall = read_in_thread(RemoteMemory.recall)
    recent = read_in_thread(RemoteMemory.recent)
    entries = read_in_thread(RemoteMemory.entries)
    remember = run_in_thread(RemoteMemory.remember)
    get = read_in_thread(RemoteMemory.get)
    curate = run_in_thread(RemoteMemory.curate)
    status = read_in_thread(RemoteMemory.status)
    forget = run_in_thread(RemoteMemory.forget)
    feed = read_in_thread(RemoteMemory.feed)
    follow = iterate_in_threads(RemoteMemory.follow)
    export = iterate_in_threads(RemoteMemory.export)
    import_exported = run_in_thread(RemoteMemory.import_exported)
    ready = read_in_thread(RemoteMemory.ready)
    close = run_in_thread(RemoteMemory.close)

    @property
    def user(self) -> str | None:
        """The user whose memory this is; None for that of the key."""
        return self.sync.user

    @property
    def curated(self) -> AsyncRemoteCuratedMemory:
        """The entries one by one, their log, and undo."""
        return AsyncRemoteCuratedMemory(self.sync.curated, self._threads)

    @property
    def items(self) -> AsyncRemoteItems:
        """The items of this user: values under a namespace and a key, with a history, found by their words."""
        return AsyncRemoteItems(self.sync.items, self._threads)

    @property
    def sessions(self) -> AsyncRemoteSessionStore:
        """The conversations of this user."""
        return AsyncRemoteSessionStore(self.sync.sessions, self._threads)

    def for_user(self, user: str | None) -> "AsyncRemoteMemory":
        """The memory of another user of the service, over the same connections; the key must allow it."""
        return AsyncRemoteMemory(self.sync.for_user(user), self._threads)

    def session(
        self, *, source: str = "library", model: str = "", session_id: str | None = None, instructions: str = ""
    ) -> AsyncRemoteSession:
        """Start a session, or resume one by its id: `async with memory.session() as session`, or `await` it."""
        session = self.sync.session(source=source, model=model, session_id=session_id, instructions=instructions)
        return AsyncRemoteSession(session, self._threads, self._queues)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class RequestThreads:
    """Runs each call in a thread of its own, while it waits for a service.

    A cancellation takes effect at once, also while the service does not answer: the thread ends unheard, and does not
    keep the program from ending. The connections of the client limit how many requests there are at once.
    """

    async def run(self, function: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return await _start(partial(function, *args, **kwargs))

    read = run

    async def open(self, function: Callable[[], _R], close: Callable[[_R], object]) -> _R:
        """Run a call that opens something; after a cancellation, it is closed as soon as it is open."""
        future = _start(function)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            future.add_done_callback(lambda done: done.exception() or _start(partial(close, done.result())))
            raise


def _start(call: Callable[[], _R]) -> "asyncio.Future[_R]":
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_R] = loop.create_future()

    def work() -> None:
        try:
            settle: Callable[[], None] = partial(future.set_result, call())
        except BaseException as error:
            settle = partial(future.set_exception, error)
        # The loop may have ended before the service answered.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if future.done() else settle())

    threading.Thread(target=contextvars.copy_context().run, args=(work,), name="memoranda-request", daemon=True).start()
    return future


def connect_async(
    url: str, key: str | None = None, *, user: str | None = None, timeout: float = 30.0, allow_http: bool = False
) -> AsyncRemoteMemory:
    """Connect to a service for asyncio: `async with memoranda.connect_async(url, key) as memory`.

    The arguments and errors are those of `memoranda.connect`.
    """
    memory = connect(url, key, user=user, timeout=timeout, allow_http=allow_http)
    return AsyncRemoteMemory(memory, RequestThreads())
