"""The conversations of a user at a service, by the names that `SessionDB` has for the same.

Whole conversations are transferred as well: the feed of what is new, export, and import.
"""

import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Literal, NamedTuple

from memoranda.api.client import operations
from memoranda.api.client.transport import AsyncTransport, Operation, Request, Transport, awaitable, reading, write_body
from memoranda.errors import SessionError
from memoranda.support.tool import JsonObject

FEED_WAIT = 30
"""How many seconds one request waits for an event."""
FeedStart = Literal["now", "beginning"]
_PAGE = 50
# A service accepts 64 MB by default, and answers only when everything is stored.
_MAX_BATCH_BYTES = 8_000_000
_MEMORY_BYTES = 1_000_000
_COUNTS = ("imported", "updated", "unchanged", "messages", "items")


class FeedPage(NamedTuple):
    """Events, the oldest first, and the cursor to continue from."""

    events: list[JsonObject]
    cursor: str


class ExportPage(NamedTuple):
    """A part of an export: its lines, and the session to continue after; None if there is no more."""

    lines: list[JsonObject]
    after: str | None


def feed(cursor: str | None, start: FeedStart, limit: int, wait: int) -> Operation[FeedPage]:
    """The next events; the service waits up to `wait` seconds for one."""
    query: JsonObject = {"limit": limit, "wait": wait}
    query |= {"start": start} if cursor is None else {"cursor": cursor}
    answer = yield Request("GET", "/v1/feed", query=query, safe=True, wait=wait)
    return FeedPage(answer["events"], answer["cursor"])


def export_page(source: str | None, after: str | None) -> Operation[ExportPage]:
    """The next sessions of an export; the last page also has the items."""
    answer = yield reading("GET", "/v1/export", source=source, after=after, limit=_PAGE)
    lines: list[JsonObject] = answer or []
    sessions = [line for line in lines if is_session(line)]
    return ExportPage(lines, sessions[-1]["id"] if len(sessions) == _PAGE else None)


def is_session(line: Mapping[str, Any]) -> bool:
    """Whether a line of an export is a session; the others are items."""
    return "id" in line


def import_lines(lines: Iterable[Mapping[str, Any]]) -> Operation[JsonObject]:
    """Import the lines of an export in several requests, each of which may be repeated; returns the summed report."""
    total: JsonObject = {name: 0 for name in _COUNTS} | {"renamed": {}, "errors": []}
    with tempfile.SpooledTemporaryFile(_MEMORY_BYTES) as spooled:
        for batch in _batches(spooled, _spool(spooled, lines)):
            answer = yield Request("POST", "/v1/import", lines=batch, safe=True)
            for name in _COUNTS:
                total[name] += answer[name]
            total["renamed"] |= answer["renamed"]
            total["errors"] += answer["errors"]
    return total


class _Line(NamedTuple):
    """Where a line is in the file, and the sessions that it must be sent with."""

    start: int
    size: int
    session: str | None
    parent: str | None


def _spool(file: IO[bytes], lines: Iterable[Mapping[str, Any]]) -> list[_Line]:
    found = []
    for line in lines:
        if not isinstance(line, Mapping):
            raise SessionError(f"An export has objects, and not {type(line).__name__}. Nothing was imported.")
        content = write_body(dict(line)) + b"\n"
        names = [line.get(name) for name in ("id", "parent_session_id")]
        found.append(_Line(file.tell(), len(content), *(name if isinstance(name, str) else None for name in names)))
        file.write(content)
    return found


def _batches(file: IO[bytes], lines: list[_Line]) -> Iterator[bytes]:
    """Bodies of limited size. Related sessions are sent together: the copies in one refer to messages of the other."""
    batch: list[bytes] = []
    size = 0
    for group in _related(lines):
        added = sum(line.size for line in group)
        if batch and size + added > _MAX_BATCH_BYTES:
            yield b"".join(batch)
            batch, size = [], 0
        for line in group:
            file.seek(line.start)
            batch.append(file.read(line.size))
        size += added
    if batch:
        yield b"".join(batch)


def _related(lines: list[_Line]) -> Iterable[list[_Line]]:
    """The lines in groups: a session with its parent, its parent's parent, and so on; every item alone."""
    roots: dict[str, str] = {}

    def root_of(name: str) -> str:
        while (above := roots.get(name, name)) != name:
            roots[name] = roots.get(above, above)
            name = above
        return name

    for line in lines:
        if line.session is not None and line.parent is not None:
            roots[root_of(line.session)] = root_of(line.parent)
    groups: dict[str | int, list[_Line]] = {}
    for number, line in enumerate(lines):
        groups.setdefault(number if line.session is None else root_of(line.session), []).append(line)
    return groups.values()


class RemoteSessionStore:
    """The conversations of a user. Raises UnknownSessionError for a session that does not exist."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create_session(self, /, session_id: str, source: str, **fields: Any) -> str:
        """Create a session, or fill the empty fields of an existing one; returns its id."""
        return self._transport.run(operations.create_session({"id": session_id, "source": source, **fields}))

    def get_session(self, session_id: str) -> JsonObject | None:
        """One session; None if there is none."""
        return self._transport.run(operations.find_session(session_id))

    def list_sessions_rich(self, /, *, limit: int = 20, **filters: Any) -> list[JsonObject]:
        """The latest conversations, the newest first; filters are source, project, title, model and archived."""
        return self._transport.run(operations.list_sessions(limit, filters))

    def get_messages(self, session_id: str, *, include_inactive: bool = False) -> list[JsonObject]:
        """All messages of a session in order; `include_inactive` adds those that left its context."""
        return self._transport.run(operations.get_messages(session_id, include_inactive=include_inactive))

    def append_messages(self, session_id: str, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """Append messages, all or none; returns their ids. A repeated `external_id` adds nothing."""
        return self._transport.run(operations.append(session_id, messages))

    def iter_export(self, source: str | None = None) -> Iterator[JsonObject]:
        """Every session with its messages, one at a time, the oldest first."""
        after: str | None = None
        while True:
            lines, after = self._transport.run(export_page(source, after))
            yield from filter(is_session, lines)
            if after is None:
                return

    def export_all(self, source: str | None = None) -> list[JsonObject]:
        """Every session with its messages."""
        return list(self.iter_export(source))

    def import_sessions(self, sessions: Iterable[Mapping[str, Any]]) -> JsonObject:
        """Import exported sessions; returns how many are new, and what was refused. A second import adds nothing."""
        return self._transport.run(import_lines(sessions))

    def statistics(self) -> JsonObject:
        """How many sessions, messages and tokens this user has."""
        return self._transport.run(operations.usage())

    def end_session(self, session_id: str, reason: str = "session_end") -> None:
        """End a session; ending it again changes nothing."""
        return self._transport.run(operations.end_session(session_id, reason))

    def delete_session(self, session_id: str) -> None:
        """Delete a session with its messages. Needs a key with `admin`."""
        return self._transport.run(operations.delete_session(session_id))


class AsyncRemoteSessionStore:
    """The same for asyncio."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    create_session = awaitable(RemoteSessionStore.create_session)
    get_session = awaitable(RemoteSessionStore.get_session)
    list_sessions_rich = awaitable(RemoteSessionStore.list_sessions_rich)
    get_messages = awaitable(RemoteSessionStore.get_messages)
    append_messages = awaitable(RemoteSessionStore.append_messages)
    import_sessions = awaitable(RemoteSessionStore.import_sessions)
    statistics = awaitable(RemoteSessionStore.statistics)
    end_session = awaitable(RemoteSessionStore.end_session)
    delete_session = awaitable(RemoteSessionStore.delete_session)

    async def iter_export(self, source: str | None = None) -> AsyncIterator[JsonObject]:
        after: str | None = None
        while True:
            lines, after = await self._transport.run(export_page(source, after))
            for session in filter(is_session, lines):
                yield session
            if after is None:
                return

    async def export_all(self, source: str | None = None) -> list[JsonObject]:
        return [session async for session in self.iter_export(source)]
