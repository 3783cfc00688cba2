"""The conversations of a user at a service, by the names that `SessionDB` has for the same, and their transfer."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple, cast
from urllib.parse import quote

from memoranda.api.client.transport import Request, Transport, without_none, write_body
from memoranda.errors import SessionError, UnknownSessionError
from memoranda.support.tool import JsonObject

_PAGE = 50
# A service accepts 64 MB by default, and answers only when everything is stored.
_MAX_BATCH_BYTES = 8_000_000
_MEMORY_BYTES = 1_000_000
_COUNTS = ("imported", "updated", "unchanged", "messages", "items")


def export(transport: Transport, source: str | None) -> Iterator[JsonObject]:
    """Every session, the oldest first, and then every item; the last page has the items."""
    after: str | None = None
    while True:
        lines = transport.read("GET", "/v1/export", source=source, after=after, limit=_PAGE) or []
        yield from lines
        sessions = [line for line in lines if is_session(line)]
        if len(sessions) < _PAGE:
            return
        after = sessions[-1]["id"]


def is_session(line: Mapping[str, Any]) -> bool:
    """Whether a line of an export is a session; the others are items."""
    return "id" in line


def import_lines(transport: Transport, lines: Iterable[Mapping[str, Any]]) -> JsonObject:
    """Import the lines of an export in several requests, each of which may be repeated; returns the summed report."""
    total: JsonObject = {name: 0 for name in _COUNTS} | {"renamed": {}, "errors": []}
    with tempfile.SpooledTemporaryFile(_MEMORY_BYTES) as spooled:
        for batch in _batches(spooled, _spool(spooled, lines)):
            answer = transport.send(Request("POST", "/v1/import", lines=batch, safe=True))
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


def session_path(session_id: str, *parts: str | int) -> str:
    """The path of a session, or of something below it; ids may contain any character."""
    return "/".join(["/v1/sessions", quote(session_id, safe=""), *(quote(str(part), safe="") for part in parts)])


class RemoteSessionStore:
    """The conversations of a user. Raises UnknownSessionError for a session that does not exist."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create_session(self, /, session_id: str, source: str, **fields: Any) -> str:
        """Create a session, or fill the empty fields of an existing one; returns its id."""
        row = {"id": session_id, "source": source, **fields}
        return str(self._transport.write("POST", "/v1/sessions", without_none(row))["id"])

    def get_session(self, session_id: str) -> JsonObject | None:
        """One session; None if there is none."""
        try:
            return cast(JsonObject, self._transport.read("GET", session_path(session_id)))
        except UnknownSessionError:
            return None

    def list_sessions_rich(self, /, *, limit: int = 20, **filters: Any) -> list[JsonObject]:
        """The latest conversations, the newest first; filters are source, project, title, model and archived."""
        return self._transport.read_pages("/v1/sessions", "sessions", limit, **filters)

    def get_messages(self, session_id: str, *, include_inactive: bool = False) -> list[JsonObject]:
        """All messages of a session in order; `include_inactive` adds those that left its context."""
        found: list[JsonObject] = []
        path, cursor, everything = session_path(session_id, "messages"), None, True if include_inactive else None
        while True:
            answer = self._transport.read("GET", path, limit=1_000, cursor=cursor, all=everything)
            found += answer["messages"]
            if not answer["more"]:
                return found
            cursor = answer["cursor"]

    def append_messages(self, session_id: str, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """Append messages, all or none; returns their ids. A repeated `external_id` adds nothing."""
        body = {"messages": [without_none(message) for message in messages]}
        answer = self._transport.write("POST", session_path(session_id, "messages"), body)
        return [int(number) for number in answer["ids"]]

    def iter_export(self, source: str | None = None) -> Iterator[JsonObject]:
        """Every session with its messages, one at a time, the oldest first."""
        return filter(is_session, export(self._transport, source))

    def export_all(self, source: str | None = None) -> list[JsonObject]:
        """Every session with its messages."""
        return list(self.iter_export(source))

    def import_sessions(self, sessions: Iterable[Mapping[str, Any]]) -> JsonObject:
        """Import exported sessions; returns how many are new, and what was refused. A second import adds nothing."""
        return import_lines(self._transport, sessions)

    def statistics(self) -> JsonObject:
        """How many sessions, messages and tokens this user has."""
        return cast(JsonObject, self._transport.read("GET", "/v1/usage"))

    def end_session(self, session_id: str, reason: str = "session_end") -> None:
        """End a session; ending it again changes nothing."""
        self._transport.send(Request("POST", session_path(session_id, "end"), {"reason": reason}, safe=True))

    def delete_session(self, session_id: str) -> None:
        """Delete a session with its messages. Needs a key with `admin`."""
        # Not repeated: a second answer would say that there is no such session.
        self._transport.send(Request("DELETE", session_path(session_id)))
