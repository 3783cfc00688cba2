"""The interface of the library over HTTP: `RemoteMemory`, its sessions and their turns."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self, Unpack, overload

from memoranda.api.client import operations
from memoranda.api.client import session_store as transfer
from memoranda.api.client.curated import RemoteCuratedMemory
from memoranda.api.client.items import RemoteItems
from memoranda.api.client.operations import BusyWait, Reply, UndoneTurn
from memoranda.api.client.session_store import FEED_WAIT, FeedPage, FeedStart, RemoteSessionStore
from memoranda.api.client.transport import Transport
from memoranda.errors import SessionBusyError, SessionError
from memoranda.support.tool import JsonObject, Tool, facts_of
from memoranda.types import ChatMessage, ConversationAnswer, MemoryAnswer, SearchAnswer, SearchFilters

Target = Literal["memory", "user"]
_TURN_WAIT = 30.0


class RemoteMemory:
    """The memory of one user at a service. The methods are those of `memoranda.Memory`, as far as a service has them.

    Thread-safe. A request that fails on the way is repeated if that cannot do anything twice.
    """

    def __init__(self, transport: Transport, user: str | None) -> None:
        self.user = user
        self._transport = transport

    def for_user(self, user: str | None) -> "RemoteMemory":
        """The memory of another user of the service, over the same connections; the key must allow it."""
        return RemoteMemory(self._transport.for_user(user), user)

    def session(
        self, *, source: str = "library", model: str = "", session_id: str | None = None, instructions: str = ""
    ) -> "RemoteSession":
        """Start a session, or resume one by its id. Nothing is sent until the prompt, the tools or a turn are needed.

        `instructions` are your own text for the prompt of a new session.
        """
        options = {"source": source, "model": model, "instructions": instructions}
        return RemoteSession(self._transport, session_id or operations.new_session_id(), options)

    @property
    def curated(self) -> RemoteCuratedMemory:
        """The entries one by one, their log, and undo."""
        return RemoteCuratedMemory(self._transport)

    @property
    def items(self) -> RemoteItems:
        """The items of this user: values under a namespace and a key, with a history, found by their words."""
        return RemoteItems(self._transport)

    @property
    def sessions(self) -> RemoteSessionStore:
        """The conversations of this user."""
        return RemoteSessionStore(self._transport)

    @overload
    def search(
        self,
        query: str = "",
        *,
        limit: int | None = None,
        sort: Literal["newest", "oldest"] | None = None,
        cursor: str | None = None,
        why: bool = False,
        **filters: Unpack[SearchFilters],
    ) -> SearchAnswer: ...
    @overload
    def search(
        self,
        *,
        session_id: str,
        around_message_id: int | None = None,
        window: int | None = None,
        cursor: str | None = None,
    ) -> ConversationAnswer: ...
    def search(
        self,
        query: str = "",
        *,
        limit: int | None = None,
        sort: Literal["newest", "oldest"] | None = None,
        cursor: str | None = None,
        why: bool = False,
        session_id: str | None = None,
        around_message_id: int | None = None,
        window: int | None = None,
        **filters: Unpack[SearchFilters],
    ) -> SearchAnswer | ConversationAnswer:
        """Find past conversations, as `memoranda.Memory.search` does; raises SessionError for a wrong value."""
        named = {"limit": limit, "sort": sort, "cursor": cursor, "why": why, "session_id": session_id, **filters}
        options = {**named, "around_message_id": around_message_id, "window": window}
        return self._transport.run(operations.search(query, options))

    def recall(
        self,
        question: str,
        *,
        limit: int | None = None,
        project: str | None = None,
        max_chars: int | None = None,
        session_id: str | None = None,
    ) -> JsonObject:
        """Ask every part of memory at once; `block` of the answer is for a prompt, and empty if nothing is known.

        `session_id` is the conversation that the recall log shows it in.
        """
        options = {"limit": limit, "project": project, "max_chars": max_chars, "session_id": session_id}
        return self._transport.run(operations.recall(question, options))

    def entries(self, target: Target = "memory") -> tuple[str, ...]:
        """The live entries of a memory as they may be shown."""
        return self._transport.run(operations.entries(target))

    def remember(self, text: str, target: Target = "memory") -> MemoryAnswer:
        """Save a fact at a person's request; the answer is a receipt, or says why it was refused."""
        return self._transport.run(operations.remember(text, target))

    def forget(
        self,
        text: str | None = None,
        *,
        session: str | None = None,
        entry: str | None = None,
        whole_words: bool = False,
        dry_run: bool = False,
    ) -> JsonObject:
        """Forget a text, a conversation or an entry everywhere; returns the report. Needs a key with `admin`."""
        wanted = {"text": text, "session": session, "entry": entry, "whole_words": whole_words, "dry_run": dry_run}
        return self._transport.run(operations.forget(wanted))

    def feed(self, cursor: str | None = None, *, start: FeedStart = "now", limit: int = 100, wait: int = 0) -> FeedPage:
        """New messages and changes after a cursor; without one, from `start` on. Waits up to `wait` seconds for one.

        Keep the cursor of the answer, or that of the last event that you have used, and continue from there.
        """
        return self._transport.run(transfer.feed(cursor, start, limit, wait))

    def follow(self, cursor: str | None = None, *, start: FeedStart = "now") -> Iterator[JsonObject]:
        """Every event as it happens, without end; each has a cursor, from which a later call continues."""
        while True:
            events, cursor = self.feed(cursor, start=start, wait=FEED_WAIT)
            yield from events

    def export(self, source: str | None = None) -> Iterator[JsonObject]:
        """Every conversation as `memoranda sessions export` writes it, the oldest first, and then every item.

        With a `source` only the conversations that have it.
        """
        after: str | None = None
        while True:
            lines, after = self._transport.run(transfer.export_page(source, after))
            yield from lines
            if after is None:
                return

    def import_exported(self, lines: Iterable[Mapping[str, Any]]) -> JsonObject:
        """Import what `export` returned, here or elsewhere; returns how much is new. A second import adds nothing."""
        return self._transport.run(transfer.import_lines(lines))

    def ready(self) -> JsonObject:
        """Ask whether the service can use its stores; raises ServiceError if not."""
        return self._transport.run(operations.ready())

    def close(self) -> None:
        """Close the connections; every write was durable when it was answered."""
        return self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RemoteSession:
    """One conversation at a service. After compression it is the same object with another `id` and another prompt."""

    def __init__(self, transport: Transport, session_id: str, options: Mapping[str, str]) -> None:
        self.id = session_id
        self.source = options["source"]
        self._transport = transport
        self._options = {name: value for name, value in options.items() if value}
        self._opened: JsonObject | None = None

    @property
    def prompt(self) -> str:
        """The system prompt, byte-identical until the conversation is compressed."""
        return str(self._open()["prompt"])

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What the model may call, as far as the key allows it."""
        return tuple(
            Tool(
                tool["name"],
                tool["description"],
                tool["parameters"],
                self._caller_of(tool["name"]),
                facts=facts_of(tool["name"]),
            )
            for tool in self._open()["tools"]
        )

    def turn(self, text: Any, *, wait: float = _TURN_WAIT) -> "RemoteTurn":
        """Begin a turn: the user's message (text or structured content) is durable when this returns.

        While another turn of the conversation is in progress, this waits for up to `wait` seconds, then raises
        SessionBusyError. Raises SessionError for an empty message.
        """
        busy = BusyWait(wait)
        while True:
            try:
                session_id, message_id = self._transport.run(operations.begin_turn(self.id, text, self._options))
                break
            except SessionBusyError as error:
                time.sleep(busy.pause(error))
        self._follow(session_id)
        return RemoteTurn(self._transport, self.id, message_id)

    def record(self, role: str, content: Any = None, **fields: Any) -> int:
        """Record one message outside a turn; it is durable when its id is returned."""
        return self.record_all([{"role": role, "content": content, **fields}])[0]

    def record_all(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """Record several messages in one commit."""
        self._open()
        return self._transport.run(operations.append(self.id, messages))

    def conversation(self) -> list[ChatMessage]:
        """The recorded messages in the form that chat APIs accept."""
        return self._transport.run(operations.conversation(self.id))

    def call(self, name: str, arguments: Mapping[str, Any]) -> JsonObject:
        """Call a tool as the model would; the answer is always a JSON object."""
        return self._transport.run(operations.call_tool(self.id, name, arguments))

    def remember(self, text: str, target: Target = "memory") -> MemoryAnswer:
        """Save a fact that the user asked to keep; the answer is a receipt, or says why it was refused."""
        return self._transport.run(operations.remember(text, target, self.id))

    def entries(self, target: Target = "memory") -> tuple[str, ...]:
        """The live entries of a memory as they may be shown."""
        return self._transport.run(operations.entries(target))

    def undo(self) -> UndoneTurn | None:
        """Undo the last turn, the user's message and everything after it; None when there is none."""
        return self._transport.run(operations.undo_turn(self.id))

    def end(self, reason: str = "session_end") -> None:
        """End the conversation; a later turn resumes it."""
        return self._transport.run(operations.end_if_started(self.id, reason))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _open(self) -> JsonObject:
        if self._opened is None:
            self._opened = self._transport.run(operations.open_session(self.id, self._options))
            self.id = self._opened["session_id"]
        return self._opened

    def _follow(self, session_id: str) -> None:
        """Continue in the session that replaced this one; its prompt is another one."""
        if session_id != self.id:
            self.id, self._opened = session_id, None

    def _caller_of(self, name: str) -> Any:
        return lambda arguments: self.call(name, arguments)


class RemoteTurn:
    """One turn: the user's message is durable when it begins, the answer when `done` returns.

    A turn that is left without `done` is interrupted: what was recorded stays.
    """

    def __init__(self, transport: Transport, session_id: str, message_id: int) -> None:
        self.message_id = message_id
        self.interrupted = True
        self._session_id = session_id
        self._transport = transport
        self._left = False

    @property
    def messages(self) -> list[ChatMessage]:
        """The conversation so far in the form that chat APIs accept, with recalled memory in a copy of the question."""
        return self._transport.run(operations.turn_messages(self._session_id, self.message_id))

    def record(self, role: str, content: Any = None, **fields: Any) -> int:
        """Record a step of the turn, such as a tool call or its result, before the next step starts."""
        step = {"role": role, "content": content, **fields}
        return self._transport.run(operations.record_step(self._session_id, self.message_id, step))

    def done(self, reply: Reply) -> list[int]:
        """Record the answer: text, a message, or several messages in one commit. A turn is done once."""
        if not self.interrupted:
            raise SessionError("This turn is done, and its answer is recorded. session.turn() begins the next one.")
        ids = self._transport.run(operations.finish_turn(self._session_id, self.message_id, reply))
        self.interrupted, self._left = False, True
        return ids

    def close(self) -> None:
        """Leave the turn, so that the next one can begin; without `done` before, it is interrupted."""
        if not self._left:
            self._left = True
            self._transport.run(operations.leave_turn(self._session_id, self.message_id))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(
    url: str, key: str | None = None, *, user: str | None = None, timeout: float = 30.0, allow_http: bool = False
) -> RemoteMemory:
    """Connect to a service: `key` is an API key of it; `user` one of its users, unless the key is bound to one.

    Nothing is sent yet. Plain http:// is refused for other machines unless `allow_http`: the key would be readable.
    Raises AccessError for an address or a key that cannot be used, and ServiceError without `memoranda[client]`.
    """
    return RemoteMemory(Transport(url, key, user, timeout=timeout, allow_http=allow_http), user)
