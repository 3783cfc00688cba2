"""The conversations of a user at a service, by the names that `SessionDB` has for the same."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from memoranda.api.client import operations, transfer
from memoranda.api.client.transports import AsyncTransport, Transport
from memoranda.support.tool import JsonObject


class RemoteSessionStore:
    """The conversations of a user. Raises UnknownSessionError for a session that does not exist."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create_session(self, session_id: str, source: str, **fields: Any) -> str:
        """Create a session, or fill the empty fields of an existing one; returns its id."""
        return self._transport.run(operations.create_session({"id": session_id, "source": source, **fields}))

    def get_session(self, session_id: str) -> JsonObject | None:
        """One session; None if there is none."""
        return self._transport.run(operations.find_session(session_id))

    def list_sessions_rich(self, *, limit: int = 20, **filters: Any) -> list[JsonObject]:
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
            lines, after = self._transport.run(transfer.export_page(source, after))
            yield from filter(transfer.is_session, lines)
            if after is None:
                return

    def export_all(self, source: str | None = None) -> list[JsonObject]:
        """Every session with its messages."""
        return list(self.iter_export(source))

    def import_sessions(self, sessions: Iterable[Mapping[str, Any]]) -> JsonObject:
        """Import exported sessions; returns how many are new, and what was refused. A second import adds nothing."""
        return self._transport.run(transfer.import_lines(sessions))

    def statistics(self) -> JsonObject:
        """How many sessions, messages and tokens this user has."""
        return self._transport.run(operations.usage())

    def end_session(self, session_id: str, reason: str = "session_end") -> None:
        """End a session; ending it again changes nothing."""
        self._transport.run(operations.end_session(session_id, reason))

    def delete_session(self, session_id: str) -> None:
        """Delete a session with its messages. Needs a key with `admin`."""
        self._transport.run(operations.delete_session(session_id))


class AsyncRemoteSessionStore:
    """The same for asyncio."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create_session(self, session_id: str, source: str, **fields: Any) -> str:
        return await self._transport.run(operations.create_session({"id": session_id, "source": source, **fields}))

    async def get_session(self, session_id: str) -> JsonObject | None:
        return await self._transport.run(operations.find_session(session_id))

    async def list_sessions_rich(self, *, limit: int = 20, **filters: Any) -> list[JsonObject]:
        return await self._transport.run(operations.list_sessions(limit, filters))

    async def get_messages(self, session_id: str, *, include_inactive: bool = False) -> list[JsonObject]:
        return await self._transport.run(operations.get_messages(session_id, include_inactive=include_inactive))

    async def append_messages(self, session_id: str, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        return await self._transport.run(operations.append(session_id, messages))

    async def iter_export(self, source: str | None = None) -> AsyncIterator[JsonObject]:
        after: str | None = None
        while True:
            lines, after = await self._transport.run(transfer.export_page(source, after))
            for session in filter(transfer.is_session, lines):
                yield session
            if after is None:
                return

    async def export_all(self, source: str | None = None) -> list[JsonObject]:
        return [session async for session in self.iter_export(source)]

    async def import_sessions(self, sessions: Iterable[Mapping[str, Any]]) -> JsonObject:
        return await self._transport.run(transfer.import_lines(sessions))

    async def statistics(self) -> JsonObject:
        return await self._transport.run(operations.usage())

    async def end_session(self, session_id: str, reason: str = "session_end") -> None:
        await self._transport.run(operations.end_session(session_id, reason))

    async def delete_session(self, session_id: str) -> None:
        await self._transport.run(operations.delete_session(session_id))
