"""Reads the sessions of OpenCode, as versions from 0.1 to 1.18 keep them under `~/.local/share/opencode`.

In 1.2 and later they are in a database, `opencode.db`. Before that, each session, message and part of a message was a
separate file: in `storage/`, and in the first versions in `project/<name>/storage/session/`. All formats have the same
ids, so a session in several formats is imported once.
"""

import os
import shlex
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import (
    as_text,
    dicts_in,
    get_field,
    get_text,
    parse_timestamp,
    reasoning_message,
    text_message,
    tool_call_message,
    tool_result_message,
)
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, Problem, ReadError, ReadEvent, Skipped
from memoranda.importers.source_databases import database_at, open_database, rows, tables
from memoranda.importers.source_files import (
    find_files,
    is_recently_changed,
    item_at,
    item_beside,
    load_json,
    read_json_file,
    reread_time,
)
from memoranda.importers.sources import in_directory
from memoranda.support.json_object import parse_object
from memoranda.support.lazy_dataclass import dataclass

_UNTITLED = ("New session - ", "New Session - ", "Child session - ")
_ADDED_BY_PROGRAM = ("synthetic", "system")
_ENDED = ("completed", "error", "result")
# Parts without a text, and rows of the program's own events.
_NO_TEXT = (
    "step-start", "step-finish", "snapshot", "patch", "agent", "subtask", "retry", "compaction", "source-url",
    "agent-switched", "model-switched", *_ADDED_BY_PROGRAM,
)  # fmt: skip
_UNFINISHED = "still being written"
SESSION_LABEL = "session "
_UNREADABLE = "database"
_NEWER = "session_message"
_NEEDED = {"session": {"id", "time_updated"}, "message": {"id", "session_id", "data"}, "part": {"message_id", "data"}}
_COLUMNS = ("title", "directory", "parent_id", "version", "time_created")
_SESSIONS = "SELECT id, time_updated FROM session ORDER BY id DESC"
_FAMILY = (
    "WITH RECURSIVE family (id) AS (SELECT :id UNION SELECT s.id FROM session s JOIN family f ON s.parent_id = f.id)"
    " SELECT id, time_updated FROM session WHERE id IN (SELECT id FROM family) ORDER BY id DESC"
)
_SIZE = (
    "SELECT (SELECT coalesce(sum(length(data)), 0) FROM part WHERE session_id = :id)"
    " + (SELECT coalesce(sum(length(data)), 0) FROM message WHERE session_id = :id)"
)
_LABEL = "session"


@dataclass(slots=True)
class StoredSession:
    """One session; its model becomes known with the first answer."""

    id: str
    title: str | None = None
    directory: str | None = None
    started_at: float | None = None
    parent: str | None = None
    version: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message and its parts, each with an id; `ended` when OpenCode will add nothing more."""

    id: str
    role: str
    at: Any
    ended: bool
    parts: tuple[dict[str, Any], ...]
    is_summary: bool = False
    model: str | None = None
    directory: str | None = None


class OpenCode:
    name = "opencode"

    def __init__(self) -> None:
        self._databases = SessionDatabases()

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return every session, the oldest first, so that a session precedes its sub-agents."""
        path = Path.home() / ".local" / "share" / "opencode" if path is None else path
        if item_at(path, "database"):
            return self._databases.sessions(path)
        # Users can move the directory above `opencode`.
        path = path / "opencode" if (path / "opencode").is_dir() else path
        try:
            databases = sorted(path.glob("opencode*.db"))
        except OSError:
            databases = []
        found = [item for file in databases for item in self._databases.sessions(file)]
        return [*found, *find_sessions(path)]

    def scan_session(self, file: Path, host_id: str) -> Sequence[ImportItem]:
        """Return one session of a database and its sub-agents, without measuring the others.

        What is wrong with an unreadable database is reported by reading it.
        """
        item = database_at(file, _UNREADABLE)
        if item is None:
            return []
        try:
            with open_database(file) as connection:
                _check_tables(connection)
                family = connection.execute(_FAMILY, {"id": host_id})
                found = [self._databases.measure(connection, item, row) for row in family]
        except OSError:
            found = [(host_id, item.modified_at, item.size)]
        return [_session_item(file, *measured) for measured in found]

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        parts = _read_stored_session(item) if item.label.startswith(SESSION_LABEL) else _read_session_files(item)
        session: StoredSession | None = None
        for part in parts:
            if isinstance(part, StoredSession):
                session = part
                yield _conversation(session, None)
            elif isinstance(part, Problem):
                yield part
            elif session is not None:
                yield from self._message_events(item, session, part)

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return the command, which works in the session's directory."""
        return in_directory(f"opencode --session {shlex.quote(host_id)}", directory)

    def _message_events(self, item: ImportItem, session: StoredSession, message: StoredMessage) -> Iterator[ReadEvent]:
        if message.model and not session.model:
            session.model = message.model
            yield _conversation(session, message)
        yield from message_events(message, skip_unfinished=is_recently_changed(item.modified_at))


def session_from_info(info: dict[str, Any], host_id: str) -> StoredSession:
    """Build a session from its description."""
    title = get_text(info, "title")
    return StoredSession(
        get_text(info, "id") or host_id,
        None if title is None or title.startswith(_UNTITLED) else title,
        get_text(info, "directory"),
        parse_timestamp(get_field(info, "time", "created")),
        get_text(info, "parentID"),
        get_text(info, "version"),
    )


def message_from_info(info: dict[str, Any], name: str, parts: list[dict[str, Any]]) -> StoredMessage:
    """Build a message from its description; the first versions kept its parts and times in it."""
    old = info.get("metadata")
    details = old if isinstance(old, dict) else info
    inner = [{"id": f"{name}:{number}", **part} for number, part in enumerate(dicts_in(info.get("parts")))]
    answer = get_field(old, "assistant") or info
    return StoredMessage(
        name,
        get_text(info, "role") or "assistant",
        get_field(details, "time", "created"),
        get_field(details, "time", "completed") is not None or get_field(info, "error") is not None,
        tuple(parts or inner),
        info.get("summary") is True,
        get_text(answer, "modelID") or get_text(info, "model", "modelID"),
        get_text(answer, "path", "cwd"),
    )


def message_from_row(kind: str, name: str, at: Any, data: dict[str, Any]) -> StoredMessage:
    """Build a message from a row of the table `session_message`, which OpenCode 1.18 introduced."""
    parts: list[dict[str, Any]] = []
    text = get_text(data, "summary" if kind == "compaction" else "text")
    if kind in ("user", "compaction", *_ADDED_BY_PROGRAM) and text:
        parts.append({"type": "text", "id": name, "text": text, "synthetic": kind in _ADDED_BY_PROGRAM})
        parts += [_convert_file(name, number, entry) for number, entry in enumerate(dicts_in(data.get("files")))]
    elif kind == "shell":
        state = {"status": "completed", "input": {"command": data.get("command")}, "output": data.get("output")}
        parts.append({"type": "tool", "id": name, "tool": "shell", "callID": data.get("callID"), "state": state})
    elif kind == "assistant":
        parts += [_convert_part(name, number, entry) for number, entry in enumerate(dicts_in(data.get("content")))]
    else:
        parts.append({"type": kind, "id": name})
    return StoredMessage(
        name,
        "user" if kind == "compaction" else kind,
        get_field(data, "time", "created") or at,
        kind != "assistant" or get_field(data, "time", "completed") is not None or "error" in data,
        tuple(parts),
        kind == "compaction",
        get_text(data, "model", "id") or get_text(data, "model", "modelID"),
    )


def _convert_part(name: str, number: int, part: dict[str, Any]) -> dict[str, Any]:
    part_id = f"{name}:{get_text(part, 'id') or number}"
    if part.get("type") != "tool":
        return {**part, "id": part_id}
    state = part.get("state")
    texts = [as_text(entry.get("text")) for entry in dicts_in(get_field(state, "content"))]
    output = "\n".join(filter(None, texts)) or as_text(get_field(state, "result"))
    times = {"start": get_field(part, "time", "created"), "end": get_field(part, "time", "completed")}
    converted = {
        "status": get_field(state, "status"),
        "input": get_field(state, "input"),
        "output": output,
        "error": get_text(state, "error", "message") or output,
        "time": times,
    }
    return {"type": "tool", "id": part_id, "tool": part.get("name"), "callID": part.get("id"), "state": converted}


def _convert_file(name: str, number: int, file: dict[str, Any]) -> dict[str, Any]:
    shown = get_text(file, "name") or get_text(file, "uri")
    return {"type": "file", "id": f"{name}:file:{number}", "filename": shown, "mime": file.get("mime")}


def message_events(message: StoredMessage, *, skip_unfinished: bool) -> Iterator[ReadEvent]:
    """Yield the parts of a message; with `skip_unfinished`, a part that is still being written is skipped for now."""
    ended = message.ended or message.role == "user" or not skip_unfinished
    if not message.parts:
        yield Skipped("message without parts" if ended else _UNFINISHED)
    for part in message.parts:
        yield from _part_events(message, part, ended=ended)


def _part_events(message: StoredMessage, part: dict[str, Any], *, ended: bool) -> Iterator[ReadEvent]:
    kind, name = part.get("type"), str(part.get("id"))
    at = get_field(part, "time", "start") or message.at
    is_done = ended or get_field(part, "time", "end") is not None
    if message.role == "user" and (typed := get_text(part, "metadata", "memoranda_typed")):
        # OpenCode stores what a command expands to; our plugin adds what the user typed.
        yield text_message("user", typed, name, at)
        if text := get_text(part, "text"):
            yield text_message("system", text, f"{name}:added", at)
    elif kind in ("text", "reasoning"):
        text = get_text(part, "text")
        if text is None or part.get("synthetic") is True or part.get("ignored") is True:
            yield Skipped("text added by the program" if text else "part without text")
        elif not is_done:
            yield Skipped(_UNFINISHED)
        elif kind == "reasoning":
            yield reasoning_message(text, name, at)
        else:
            yield text_message(message.role, text, name, at, **({"is_summary": True} if message.is_summary else {}))
    elif kind in ("tool", "tool-invocation"):
        yield from _tool_events(part, name, at, ended=ended)
    elif kind == "file":
        shown = get_text(part, "filename") or get_text(part, "source", "path") or "file"
        role = "system" if message.role == "user" else message.role
        yield text_message(role, f"[{shown}: {as_text(part.get('mime'))}, not imported]", name, at)
    else:
        yield Skipped(f"part ({str(kind)[:40]})", is_unknown=kind not in _NO_TEXT)


def _tool_events(part: dict[str, Any], name: str, at: Any, *, ended: bool) -> Iterator[ReadEvent]:
    """Convert a tool call, with its result if there is one."""
    old = part.get("toolInvocation")
    state: Any
    if isinstance(old, dict):
        call_id, tool, state = old.get("toolCallId"), old.get("toolName"), old
        status, arguments, output = old.get("state"), old.get("args"), old.get("result")
    else:
        call_id, tool, state = part.get("callID"), part.get("tool"), part.get("state")
        status, arguments = get_field(state, "status"), get_field(state, "input")
        output = get_field(state, "output") if status != "error" else get_field(state, "error")
    if not ended and status not in _ENDED:
        # Its arguments may not be complete either.
        yield Skipped(_UNFINISHED)
        return
    call = as_text(call_id) or name
    started_at = get_field(state, "time", "start") or at
    yield tool_call_message((call, as_text(tool), arguments), name, started_at)
    if status in _ENDED:
        yield tool_result_message(
            (call, as_text(tool)), as_text(output), f"{name}:result", get_field(state, "time", "end") or started_at
        )


class SessionDatabases:
    """Finds the sessions in databases; does not measure unchanged databases and sessions again."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[ImportItem, list[tuple[str, float, int]]]] = {}
        self._sizes: dict[tuple[Path, str], tuple[float, int]] = {}

    def sessions(self, file: Path) -> list[ImportItem]:
        """Return an item for each session; an unreadable database is one item, so that its problem is reported."""
        item = database_at(file, _UNREADABLE)
        if item is None:
            return []
        known = self._known.get(file)
        if known is None or known[0] != item:
            try:
                with open_database(file) as connection:
                    _check_tables(connection)
                    session_rows = connection.execute(_SESSIONS).fetchall()
                    found = [self.measure(connection, item, row) for row in session_rows]
            except OSError:
                return [ImportItem(file, item.size, item.modified_at, f"{SESSION_LABEL}?")]
            known = self._known[file] = (item, found)
        # Session ids are made from the time, counted down, so the oldest session has the largest id.
        return [_session_item(file, *measured) for measured in known[1]]

    def measure(self, connection: sqlite3.Connection, item: ImportItem, row: tuple[Any, ...]) -> tuple[str, float, int]:
        """Return the name of a session, when it was last changed, and its size."""
        name, updated = str(row[0]), row[1]
        at = updated / 1000 if isinstance(updated, int | float) else item.modified_at
        known = self._sizes.get((item.file, name))
        if known is None or known[0] != at:
            size = connection.execute(_SIZE, {"id": row[0]}).fetchone()[0]
            known = self._sizes[item.file, name] = (at, size if isinstance(size, int) else 0)
        return name, at, known[1]


def _session_item(file: Path, name: str, at: float, size: int) -> ImportItem:
    return ImportItem(file, size, reread_time(at), f"{SESSION_LABEL}{name}")


def _read_stored_session(item: ImportItem) -> Iterator[StoredSession | StoredMessage | Problem]:
    host_id = item.label.removeprefix(SESSION_LABEL)
    with open_database(item.file) as connection:
        columns = _check_tables(connection)
        wanted = [name for name in _COLUMNS if name in columns]
        query = f"SELECT {', '.join(['id', *wanted])} FROM session WHERE id = ?"
        row = connection.execute(query, (host_id,)).fetchone()
        if row is None:
            raise ReadError(Problem(item.file, None, f"session {host_id} no longer exists"))
        yield _stored_session(dict(zip(wanted, row[1:], strict=True)), host_id)
        yield from _read_messages(item.file, connection, host_id)
        if _NEWER in tables(connection):
            yield from _read_newer_messages(item.file, connection, host_id)


def _check_tables(connection: sqlite3.Connection) -> set[str]:
    """Return the columns of the sessions table; raises if this is not a database of OpenCode."""
    found = tables(connection)
    for table, columns in _NEEDED.items():
        if not columns <= found.get(table, set()):
            raise OSError(f"not a known database of OpenCode: the table {table} is missing or has other columns")
    return found["session"]


def _stored_session(row: dict[str, Any], host_id: str) -> StoredSession:
    info = {**row, "id": host_id, "parentID": row.get("parent_id"), "time": {"created": row.get("time_created")}}
    return session_from_info(info, host_id)


def _read_messages(file: Path, connection: sqlite3.Connection, host_id: str) -> Iterator[StoredMessage | Problem]:
    names = [
        row[0] for row in connection.execute("SELECT id FROM message WHERE session_id = ? ORDER BY id", (host_id,))
    ]
    for name in names:
        row = connection.execute("SELECT data FROM message WHERE id = ?", (name,)).fetchone()
        info = parse_object(row[0]) if row else None
        if info is None:
            yield Problem(file, None, f"message {name} of session {host_id} is not a JSON object")
            continue
        parts: list[dict[str, Any]] = []
        for part_id, data in rows(connection, "SELECT id, data FROM part WHERE message_id = ? ORDER BY id", (name,)):
            part = parse_object(data)
            if part is None:
                yield Problem(file, None, f"part {part_id} of message {name} is not a JSON object")
            else:
                parts.append({**part, "id": str(part_id)})
        yield message_from_info({**info, "id": get_text(info, "id") or name}, str(name), parts)


def _read_newer_messages(file: Path, connection: sqlite3.Connection, host_id: str) -> Iterator[StoredMessage | Problem]:
    query = f"SELECT id, type, time_created, data FROM {_NEWER} WHERE session_id = ? ORDER BY seq"
    for name, kind, at, data in rows(connection, query, (host_id,)):
        info = parse_object(data)
        if info is None:
            yield Problem(file, None, f"message {name} of session {host_id} is not a JSON object")
        else:
            yield message_from_row(str(kind), str(name), at, info)


def find_sessions(path: Path) -> list[ImportItem]:
    """Return an item for each session, with the total size and the latest change of its files."""
    found = [item for directory in _session_directories(path) for item in find_files(directory, _is_session, _LABEL)]
    # Session ids are made from the time, counted down, so the oldest session has the largest id.
    return [_measure(item) for item in sorted(found, key=lambda item: item.file.name, reverse=True)]


def _read_session_files(item: ImportItem) -> Iterator[StoredSession | StoredMessage | Problem]:
    info = load_json(item)
    if not isinstance(info, dict):
        raise ReadError(Problem(item.file, None, "a JSON object is expected"))
    yield session_from_info(info, item.file.stem)
    messages, parts = _message_directories(item.file)
    for message in _json_files(item.file, messages):
        value = read_json_file(message)
        if not isinstance(value, dict):
            yield value if isinstance(value, Problem) else Problem(message.file, None, "a JSON object is expected")
            continue
        message_parts = []
        for part in _json_files(item.file, parts / message.file.stem):
            entry = read_json_file(part)
            if isinstance(entry, dict):
                message_parts.append({"id": part.file.stem, **entry})
            else:
                yield entry if isinstance(entry, Problem) else Problem(part.file, None, "a JSON object is expected")
        yield message_from_info(value, message.file.stem, message_parts)


def _session_directories(path: Path) -> list[Path]:
    """Return the directories with the descriptions of sessions."""
    try:
        old = sorted((path / "project").glob("*/storage/session/info"))
    except OSError:
        old = []
    return [path / "storage" / "session", *old]


def _is_session(file: Path) -> bool:
    return file.suffix == ".json" and file.name.startswith("ses_")


def _message_directories(session: Path) -> tuple[Path, Path]:
    """Return the directory of the messages of a session, and the directory of their parts."""
    if session.parent.name == "info":
        storage = session.parent.parent
        return storage / "message" / session.stem, storage / "part" / session.stem
    storage = session.parent.parent.parent
    return storage / "message" / session.stem, storage / "part"


def _json_files(session: Path, folder: Path) -> list[ImportItem]:
    """Return the files of a session's directory in the order of their names, which is the order of time."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except OSError:
        return []
    found = [item_beside(session, folder / name, _LABEL) for name in names]
    return [item for item in found if item is not None]


def _measure(session: ImportItem) -> ImportItem:
    messages, parts = _message_directories(session.file)
    size, modified_at = session.size, session.modified_at
    for message in _json_files(session.file, messages):
        for entry in (message, *_json_files(session.file, parts / message.file.stem)):
            size, modified_at = size + entry.size, max(modified_at, entry.modified_at)
    return ImportItem(session.file, size, reread_time(modified_at), session.label)


def _conversation(session: StoredSession, message: StoredMessage | None) -> ImportedConversation:
    return ImportedConversation(
        session.id,
        session.title,
        session.model,
        session.directory or (message.directory if message else None),
        session.started_at,
        session.parent,
        "delegation" if session.parent else None,
        extra={"version": session.version} if session.version else {},
    )
