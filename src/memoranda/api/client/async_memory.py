"""The interface of the library over HTTP for asyncio: `AsyncRemoteMemory`, its sessions and their turns.

The operations are those of the synchronous client. A call that is cancelled may still take effect at the service.
"""

import asyncio
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from typing import Any, Self

from memoranda.api.client import operations
from memoranda.api.client import session_store as transfer
from memoranda.api.client.curated import AsyncRemoteCuratedMemory
from memoranda.api.client.items import AsyncRemoteItems
from memoranda.api.client.memory import RemoteMemory, RemoteSession
from memoranda.api.client.operations import BusyWait, Reply
from memoranda.api.client.session_store import FEED_WAIT, AsyncRemoteSessionStore, FeedStart, RemoteSessionStore
from memoranda.api.client.transport import AsyncTransport, Operation, T, awaitable
from memoranda.errors import SessionBusyError, SessionError
from memoranda.support.tool import JsonObject
from memoranda.types import ChatMessage, ConversationAnswer, SearchAnswer

_TURN_WAIT = 30.0


class AsyncRemoteMemory:
    """The memory of one user at a service, for one event loop."""

    def __init__(self, transport: AsyncTransport, user: str | None) -> None:
        self.user = user
        self._transport = transport

    def for_user(self, user: str | None) -> "AsyncRemoteMemory":
        """The memory of another user of the service, over the same connections; the key must allow it."""
        return AsyncRemoteMemory(self._transport.for_user(user), user)

    def session(
        self, *, source: str = "library", model: str = "", session_id: str | None = None, instructions: str = ""
    ) -> "AsyncRemoteSession":
        """Start a session, or resume one by its id: `async with memory.session() as session`, or `await` it."""
        options = {"source": source, "model": model, "instructions": instructions}
        return AsyncRemoteSession(self._transport, session_id or operations.new_session_id(), options)

    @property
    def curated(self) -> AsyncRemoteCuratedMemory:
        """The entries one by one, their log, and undo."""
        return AsyncRemoteCuratedMemory(self._transport)

    @property
    def sessions(self) -> AsyncRemoteSessionStore:
        """The conversations of this user."""
        return AsyncRemoteSessionStore(self._transport)

    @property
    def items(self) -> AsyncRemoteItems:
        """The items of this user: values under a namespace and a key, with a history, found by their words."""
        return AsyncRemoteItems(self._transport)

    async def search(self, query: str = "", **options: Any) -> SearchAnswer | ConversationAnswer:
        """Find past conversations, as `memoranda.Memory.search` does; raises SessionError for a wrong value."""
        return await self._transport.run(operations.search(query, options))

    recall = awaitable(RemoteMemory.recall)
    entries = awaitable(RemoteMemory.entries)
    remember = awaitable(RemoteMemory.remember)
    list_sessions = awaitable(RemoteSessionStore.list_sessions_rich)
    get_messages = awaitable(RemoteSessionStore.get_messages)
    forget = awaitable(RemoteMemory.forget)
    feed = awaitable(RemoteMemory.feed)
    import_exported = awaitable(RemoteMemory.import_exported)
    ready = awaitable(RemoteMemory.ready)
    close = awaitable(RemoteMemory.close)

    async def follow(self, cursor: str | None = None, *, start: FeedStart = "now") -> AsyncIterator[JsonObject]:
        """Every event as it happens, without end, as `RemoteMemory.follow` returns them."""
        while True:
            events, cursor = await self.feed(cursor, start=start, wait=FEED_WAIT)
            for event in events:
                yield event

    async def export(self, source: str | None = None) -> AsyncIterator[JsonObject]:
        """Every conversation and every item, as `RemoteMemory.export` returns them."""
        after: str | None = None
        while True:
            lines, after = await self._transport.run(transfer.export_page(source, after))
            for line in lines:
                yield line
            if after is None:
                return

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncRemoteSession:
    """One conversation at a service: `await` it or enter it, then it has a prompt and tools."""

    def __init__(self, transport: AsyncTransport, session_id: str, options: Mapping[str, str]) -> None:
        self.id = session_id
        self.source = options["source"]
        self._transport = transport
        self._options = {name: value for name, value in options.items() if value}
        self._opened: JsonObject | None = None

    @property
    def prompt(self) -> str:
        """The system prompt, byte-identical until the conversation is compressed."""
        return str(self._require_opened()["prompt"])

    @property
    def tools(self) -> list[JsonObject]:
        """What the model may call: name, description and parameters of each; `call` calls one."""
        tools: list[JsonObject] = self._require_opened()["tools"]
        return tools

    def turn(self, text: Any, *, wait: float = _TURN_WAIT) -> "AsyncRemoteTurn":
        """Begin a turn: `async with session.turn(text) as turn`, or `await` it.

        The user's message is durable then. While another turn of the conversation is in progress, this waits for up to
        `wait` seconds, then raises SessionBusyError. Raises SessionError for an empty message.
        """
        return AsyncRemoteTurn(self, text, wait)

    async def record(self, role: str, content: Any = None, **fields: Any) -> int:
        """Record one message outside a turn; it is durable when its id is returned."""
        return (await self.record_all([{"role": role, "content": content, **fields}]))[0]

    async def record_all(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """Record several messages in one commit."""
        await self
        return await self.run(operations.append(self.id, messages))

    conversation = awaitable(RemoteSession.conversation)
    call = awaitable(RemoteSession.call)
    remember = awaitable(RemoteSession.remember)
    entries = awaitable(RemoteSession.entries)
    undo = awaitable(RemoteSession.undo)
    end = awaitable(RemoteSession.end)

    async def run(self, operation: Operation[T]) -> T:
        """Carry out an operation of the client."""
        return await self._transport.run(operation)

    async def begin(self, text: Any, wait: float) -> int:
        """Record the user's message of a turn; returns its id. `turn` calls this."""
        busy = BusyWait(wait)
        while True:
            try:
                session_id, message_id = await self.run(operations.begin_turn(self.id, text, self._options))
                break
            except SessionBusyError as error:
                await asyncio.sleep(busy.pause(error))
        if session_id != self.id:
            # The conversation was compressed meanwhile, so its prompt is another one.
            self.id, self._opened = session_id, None
            await self
        return message_id

    def __await__(self) -> Generator[Any, None, Self]:
        return self._open().__await__()

    async def __aenter__(self) -> Self:
        return await self

    async def __aexit__(self, *_: object) -> None:
        await self.end()

    async def _open(self) -> Self:
        if self._opened is None:
            self._opened = await self.run(operations.open_session(self.id, self._options))
            self.id = self._opened["session_id"]
        return self

    def _require_opened(self) -> JsonObject:
        if self._opened is None:
            raise SessionError("The session is not open yet: use 'async with memory.session()', or await it.")
        return self._opened


class AsyncRemoteTurn:
    """One turn: the user's message is durable when it begins, the answer when `done` returns.

    A turn that is left without `done` is interrupted: what was recorded stays.
    """

    def __init__(self, session: AsyncRemoteSession, text: Any, wait: float) -> None:
        self.message_id = 0
        self.interrupted = True
        self._session = session
        self._text = text
        self._wait = wait
        self._left = False

    async def messages(self) -> list[ChatMessage]:
        """The conversation so far in the form that chat APIs accept, with recalled memory in a copy of the question."""
        return await self._session.run(operations.turn_messages(self._session.id, self.message_id))

    async def record(self, role: str, content: Any = None, **fields: Any) -> int:
        """Record a step of the turn, such as a tool call or its result, before the next step starts."""
        step = {"role": role, "content": content, **fields}
        return await self._session.run(operations.record_step(self._session.id, self.message_id, step))

    async def done(self, reply: Reply) -> list[int]:
        """Record the answer: text, a message, or several messages in one commit. A turn is done once."""
        if not self.interrupted:
            raise SessionError("This turn is done, and its answer is recorded. session.turn() begins the next one.")
        ids = await self._session.run(operations.finish_turn(self._session.id, self.message_id, reply))
        self.interrupted, self._left = False, True
        return ids

    async def close(self) -> None:
        """Leave the turn, so that the next one can begin; without `done` before, it is interrupted."""
        if not self._left and self.message_id:
            self._left = True
            await self._session.run(operations.leave_turn(self._session.id, self.message_id))

    def __await__(self) -> Generator[Any, None, Self]:
        return self._begin().__await__()

    async def __aenter__(self) -> Self:
        return await self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _begin(self) -> Self:
        if not self.message_id:
            self.message_id = await self._session.begin(self._text, self._wait)
        return self


def connect_async(
    url: str, key: str | None = None, *, user: str | None = None, timeout: float = 30.0, allow_http: bool = False
) -> AsyncRemoteMemory:
    """Connect to a service for asyncio: `async with memoranda.connect_async(url, key) as memory`.

    The arguments and errors are those of `memoranda.connect`.
    """
    return AsyncRemoteMemory(AsyncTransport(url, key, user, timeout=timeout, allow_http=allow_http), user)
