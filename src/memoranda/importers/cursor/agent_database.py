"""Reads the conversations of Cursor's command line, one database each: `~/.cursor/chats/<project>/<id>/store.db`.

Its blobs are named by their digest. Some are messages as JSON, others lists of blobs in the wire format of protocol
buffers; the table `meta` names the list that is the current conversation. A message that a summary replaced is no
longer in a list, but still in the database.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from typing import Any

from memoranda.importers.chat_messages import get_text, parse_timestamp, short_digest
from memoranda.importers.cursor.agent_messages import directory_in, message_events
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, Problem, ReadEvent, Skipped
from memoranda.importers.source_databases import open_database, rows, tables

_DIGEST = 32
_MESSAGES = 1
_BYTES = 2
_UNTITLED = "New Agent"


def read_conversation(item: ImportItem) -> Iterator[ReadEvent]:
    """Yield the conversation of one database."""
    try:
        with open_database(item.file) as connection:
            found_tables = tables(connection)
            if not {"id", "data"} <= found_tables.get("blobs", set()):
                yield Problem(item.file, None, "not a conversation of Cursor: it has no blobs")
                return
            meta = _read_meta(connection) if "meta" in found_tables else {}
            yield from _conversation_events(item, connection, meta)
    except OSError as error:
        yield Problem(item.file, None, str(error), unread=True)


def _conversation_events(item: ImportItem, connection: sqlite3.Connection, meta: dict[str, Any]) -> Iterator[ReadEvent]:
    host_id = get_text(meta, "agentId") or item.file.parent.name
    title = get_text(meta, "name")
    started_at = parse_timestamp(meta.get("createdAt"))
    yield ImportedConversation(
        host_id, None if title == _UNTITLED else title, get_text(meta, "lastUsedModel"), started_at=started_at
    )
    order = _current_messages(connection, get_text(meta, "latestRootBlobId") or "")
    counted: Counter[str] = Counter()
    for name in (*_other_blobs(connection, set(order)), *order):
        message = _read_message(connection, name)
        if message is None:
            yield Skipped("blob that is not a message")
            continue
        if directory := directory_in(message):
            yield ImportedConversation(host_id, directory=directory)
        counted[name] += 1
        # The same text is the same blob, even when it is repeated or in another conversation.
        yield from message_events(message, short_digest(host_id, name, str(counted[name])), started_at)


def _read_meta(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return the description of the conversation, which is JSON in hexadecimal digits."""
    row = connection.execute("SELECT value FROM meta WHERE key = '0'").fetchone()
    value = row[0] if row else ""
    try:
        found = json.loads(bytes.fromhex(value) if isinstance(value, str) and value[:1] != "{" else value)
    except (ValueError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _current_messages(connection: sqlite3.Connection, root: str) -> list[str]:
    """Return the messages of the current conversation, in order."""
    row = connection.execute("SELECT data FROM blobs WHERE id = ?", (root,)).fetchone()
    if row is None or not isinstance(row[0], bytes):
        return []
    return [value.hex() for number, value in _byte_fields(row[0]) if number == _MESSAGES and len(value) == _DIGEST]


def _byte_fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the fields of a protocol buffer that contain bytes; stops where the data is not one."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        kind = tag & 7
        if kind == _BYTES:
            size, at = _read_varint(data, at)
            yield tag >> 3, data[at : at + size]
            at += size
        elif kind == 0:
            _, at = _read_varint(data, at)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            return


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
    return value, at


def _other_blobs(connection: sqlite3.Connection, listed: set[str]) -> list[str]:
    """Return the other blobs, including lists, in the order in which they were written."""
    return [str(name) for (name,) in rows(connection, "SELECT id FROM blobs ORDER BY rowid") if name not in listed]


def _read_message(connection: sqlite3.Connection, name: str) -> dict[str, Any] | None:
    row = connection.execute("SELECT data FROM blobs WHERE id = ?", (name,)).fetchone()
    if row is None or not row[0]:
        return None
    raw = row[0] if isinstance(row[0], bytes) else str(row[0]).encode("utf-8", "surrogatepass")
    if raw[:1] != b"{":
        return None
    try:
        value = json.loads(raw.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and "role" in value else None
