"""The interface of the library over HTTP: `RemoteMemory`.

    import memoranda

    with memoranda.connect("https://memory.example.com", key) as memory:
        with memory.session() as session, session.turn("How did we fix the deadlock?") as turn:
            turn.done(your_model(turn.messages, session.tools))
        memory.search("deadlock", since="30d")

`connect_async` does the same for asyncio. Both need `memoranda[client]`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, Self, Unpack, cast, overload

from memoranda.api.client import curated
from memoranda.api.client.curated import RemoteCuratedMemory, Target
from memoranda.api.client.items import RemoteItems
from memoranda.api.client.session import RemoteSession, new_session_id
from memoranda.api.client.session_store import RemoteSessionStore, export, import_lines
from memoranda.api.client.transport import Request, Transport, without_none
from memoranda.support.tool import JsonObject
from memoranda.types import ConversationAnswer, CurateAnswer, MemoryAnswer, RecentAnswer, SearchAnswer, SearchFilters

FeedStart = Literal["now", "beginning"]
# How many seconds one request waits for an event.
_FEED_WAIT = 30


class FeedPage(NamedTuple):
    """Events, the oldest first, and the cursor to continue from."""

    events: list[JsonObject]
    cursor: str


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
    ) -> RemoteSession:
        """Start a session, or resume one by its id. Nothing is sent until the prompt, the tools or a turn are needed.

        `instructions` are your own text for the prompt of a new session.
        """
        options = {"source": source, "model": model, "instructions": instructions}
        return RemoteSession(self._transport, session_id or new_session_id(), options)

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
        if session_id is not None:
            read = {name: options[name] for name in ("session_id", "around_message_id", "window", "cursor")}
            answer = self._transport.read("POST", "/v1/read", without_none(read))
        else:
            answer = self._transport.read("POST", "/v1/search", {"query": query, **without_none(options)})
        return cast("SearchAnswer | ConversationAnswer", {"success": True} | answer)

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
        return cast(
            JsonObject, self._transport.read("POST", "/v1/recall", {"question": question, **without_none(options)})
        )

    def recent(self, project: str | None = None, *, limit: int = 3) -> RecentAnswer:
        """What was going on: the last conversations of a project over all agents, or of all projects.

        Prompts that ask to continue get the `text` of the answer.
        """
        return cast(RecentAnswer, self._transport.read("GET", "/v1/recent", project=project, limit=limit))

    def entries(self, target: Target = "memory") -> tuple[str, ...]:
        """The live entries of a memory as they may be shown."""
        return curated.entries(self._transport, target)

    def get(self, key: str) -> str | None:
        """The value that was remembered under a key; None if there is none, or its last day is over."""
        return curated.get(self._transport, key)

    def remember(self, text: str, target: Target = "memory", *, key: str = "", until: str = "") -> MemoryAnswer:
        """Save a fact at a person's request; the answer is a receipt, or says why it was refused."""
        return curated.remember(self._transport, text, target, key=key, until=until)

    def curate(self, apply: bool = False) -> CurateAnswer:
        """What the curator would change by rules; `apply` does it, and what the service's `curate.model` says, too."""
        path = "/v1/memory/curate"
        answer = self._transport.send(Request("POST", path)) if apply else self._transport.read("GET", path)
        return cast(CurateAnswer, answer)

    def status(self) -> JsonObject:
        """How full and old memory is, what awaits a decision, and what was saved this week."""
        return cast(JsonObject, self._transport.read("GET", "/v1/memory/status"))

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
        return cast(JsonObject, self._transport.send(Request("POST", "/v1/forget", without_none(wanted))))

    def feed(self, cursor: str | None = None, *, start: FeedStart = "now", limit: int = 100, wait: int = 0) -> FeedPage:
        """New messages and changes after a cursor; without one, from `start` on. Waits up to `wait` seconds for one.

        Keep the cursor of the answer, or that of the last event that you have used, and continue from there.
        """
        query: JsonObject = {"limit": limit, "wait": wait}
        query |= {"start": start} if cursor is None else {"cursor": cursor}
        answer = self._transport.send(Request("GET", "/v1/feed", query=query, safe=True, wait=wait))
        return FeedPage(answer["events"], answer["cursor"])

    def follow(self, cursor: str | None = None, *, start: FeedStart = "now") -> Iterator[JsonObject]:
        """Every event as it happens, without end; each has a cursor, from which a later call continues."""
        while True:
            events, cursor = self.feed(cursor, start=start, wait=_FEED_WAIT)
            yield from events

    def export(self, source: str | None = None) -> Iterator[JsonObject]:
        """Every conversation as `memoranda sessions export` writes it, the oldest first, and then every item.

        With a `source` only the conversations that have it.
        """
        return export(self._transport, source)

    def import_exported(self, lines: Iterable[Mapping[str, Any]]) -> JsonObject:
        """Import what `export` returned, here or elsewhere; returns how much is new. A second import adds nothing."""
        return import_lines(self._transport, lines)

    def ready(self) -> JsonObject:
        """Ask whether the service can use its stores; raises ServiceError if not."""
        return cast(JsonObject, self._transport.read("GET", "/readyz"))

    def close(self) -> None:
        """Close the connections; every write was durable when it was answered."""
        self._transport.close()

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
