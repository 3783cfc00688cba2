"""Copies: messages that compression repeats in a new context, and what happens to them when the original is deleted.

A copy has `copy_of`, and usually the content of the original, which is a message of the same user: then its
`content_format` is "same", which stands for the format of the original. The text is stored again, so that plain SQL and
Hermes read it. Any other copy repeats the original in another form, such as a shortened tool result.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from memoranda.memory.record.checksums import CHECKSUM, COVERED, find_damaged, mark_damaged, matches_checksum, resealed
from memoranda.memory.record.feed import note_change
from memoranda.memory.record.message_rows import DAMAGED, READ, WRITTEN, Message, decode
from memoranda.storage.connection import Connection
from memoranda.storage.engine import readable_rows

SAME = "same"
LOST = "[This message was lost in a damaged store.]"

# The columns that a copy reads from its original.
_COPIED = tuple(
    name for name in WRITTEN
    if name not in ("role", "content_format", "timestamp", "external_id", "copy_of", "is_summary")
)  # fmt: skip
# Those of them that other programs read, too.
SHARED = tuple(name for name in _COPIED if name not in ("token_count", "extra"))
# The provider's count of tokens is not part of the message.
_CONTENT = ("role", "content_format", *(name for name in _COPIED if name != "token_count"))
_INDEX = {name: index for index, name in enumerate(WRITTEN)}

JOIN_ORIGINAL = f"LEFT JOIN messages original ON m.content_format = '{SAME}' AND original.id = m.copy_of"
"""The join from rows `m` to their originals."""


def read_columns(names: Sequence[str] = READ) -> str:
    """The columns of rows `m`, joined by JOIN_ORIGINAL, with the content of copies filled in."""
    return ", ".join(_field(name) for name in names)


def _field(name: str) -> str:
    if name == "content_format":
        return f"CASE WHEN m.{name} = '{SAME}' THEN original.{name} ELSE m.{name} END"
    return f"COALESCE(m.{name}, original.{name})" if name in _COPIED else f"m.{name}"


# A copy takes these columns from its original, and its checksum covers them as they are stored.
_STORED = ("content_format", "token_count", "extra")
CHECKED_COLUMNS = f"{read_columns()}, {', '.join(f'm.{name}' for name in _STORED)}"
"""The columns for `decode_checked`, of rows `m` joined by JOIN_ORIGINAL."""
_select_covered = itemgetter(
    *[len(READ) + _STORED.index(name) if name in _STORED else READ.index(name) for name in COVERED]
)
_CHECKSUM = READ.index(CHECKSUM)


def decode_checked(row: Sequence[Any]) -> Message:
    """Decode a row with the columns in CHECKED_COLUMNS; a message that does not match its checksum is marked."""
    message = decode(row[: len(READ)])
    if not matches_checksum(message["session_id"], message["id"], _select_covered(row), row[_CHECKSUM]):
        message[DAMAGED] = True
    return message


def as_copy(connection: Connection, session_id: str, row: Sequence[Any]) -> list[Any]:
    """Turn a row with `copy_of` into a copy, with the text that it shares with the original.

    A copy of a copy refers to the first original. A copy of a message that does not exist becomes an original.
    """
    original = original_of(connection, row[_INDEX["copy_of"]])
    copy = list(row)
    copy[_INDEX["copy_of"]] = original
    if original is not None and row[_INDEX["content_format"]] == SAME:
        _fill(connection, copy, original)
    elif original is not None and _has_same_content(connection, session_id, original, row):
        copy[_INDEX["content_format"]] = SAME
        copy[_INDEX["extra"]] = copy[_INDEX["token_count"]] = None
    elif original is None and row[_INDEX["content_format"]] == SAME:
        copy[_INDEX["content_format"]] = None
        if copy[_INDEX["content"]] is None and copy[_INDEX["tool_calls"]] is None:
            copy[_INDEX["content"]] = LOST
    if original is not None and copy[_INDEX["content_format"]] == SAME and find_damaged(connection, [original]):
        # The text of the copy has a checksum of its own, which would hide the damage.
        (extra,) = _read_row(connection, ("extra",), original)
        copy[_INDEX["extra"]] = mark_damaged(extra)
    return copy


def _fill(connection: Connection, copy: list[Any], original: int) -> None:
    for name, value in zip(SHARED, _read_row(connection, SHARED, original), strict=True):
        copy[_INDEX[name]] = value


def _read_row(connection: Connection, names: Sequence[str], message_id: int) -> Sequence[Any]:
    (row,) = readable_rows(connection, f"SELECT {', '.join(names)} FROM messages WHERE id = ?", (message_id,))
    return row  # type: ignore[no-any-return]


def original_of(connection: Connection, message_id: int) -> int | None:
    """The id of the original, given its id or that of a copy; None if it does not exist."""
    row = connection.execute("SELECT COALESCE(copy_of, id) FROM messages WHERE id = ?", (message_id,)).fetchone()
    return None if row is None else int(row[0])


def _has_same_content(connection: Connection, session_id: str, message_id: int, row: Sequence[Any]) -> bool:
    """Whether a row has the content of a message of the same user; another user's message never counts."""
    found = next(
        readable_rows(
            connection,
            f"SELECT {', '.join(f'm.{name}' for name in _CONTENT)} FROM messages m"
            " JOIN sessions theirs ON theirs.id = m.session_id JOIN sessions ours ON ours.id = ?"
            " WHERE m.id = ? AND m.copy_of IS NULL AND COALESCE(theirs.user_id, '') = COALESCE(ours.user_id, '')",
            (session_id, message_id),
        ),
        None,
    )
    return found is not None and all(row[_INDEX[name]] == value for name, value in zip(_CONTENT, found, strict=True))


def promote_copies(connection: Connection, session_id: str) -> list[str]:
    """Make the first copy of each message in another session the original, before the session's messages are deleted.

    That copy gets the text, and the other copies refer to it. Returns the sessions that changed.
    """
    return _promote(connection, "m.session_id <> ?", (session_id, 0, session_id))


def promote_copies_in_branches(connection: Connection, session_id: str, from_id: int) -> list[str]:
    """Make copies in other conversations originals, before messages of a session from an id on are rewound."""
    other = "sessions.conversation_id <> (SELECT conversation_id FROM sessions WHERE id = ?)"
    return _promote(connection, other, (session_id, from_id, session_id))


def _promote(connection: Connection, elsewhere: str, values: tuple[str, int, str]) -> list[str]:
    rows = connection.execute(
        "SELECT m.copy_of, COALESCE(sessions.user_id, ''), m.id, m.session_id FROM messages m"
        " JOIN sessions ON sessions.id = m.session_id"
        f" WHERE m.copy_of IN (SELECT id FROM messages WHERE session_id = ? AND id >= ?) AND {elsewhere}"
        # A word-for-word copy comes before a shortened one.
        f" ORDER BY COALESCE(m.content_format, '') <> '{SAME}', m.active + m.compacted = 0, m.id",
        values,
    ).fetchall()
    originals: dict[tuple[int, str], int] = {}
    changed: dict[str, int] = {}
    for original, user, number, owner in rows:
        promoted = originals.setdefault((original, user), number)
        if promoted == number:
            _make_original(connection, number)
        else:
            with resealed(connection, [number]):
                connection.execute("UPDATE messages SET copy_of = ? WHERE id = ?", (promoted, number))
        changed[owner] = min(number, changed.get(owner, number))
    for owner, first in changed.items():
        note_change(connection, owner, first)
    return list(changed)


def _make_original(connection: Connection, message_id: int) -> None:
    names = ("content_format", *_COPIED)
    (values,) = readable_rows(
        connection, f"SELECT {read_columns(names)} FROM messages m {JOIN_ORIGINAL} WHERE m.id = ?", (message_id,)
    )
    with resealed(connection, [message_id]):
        connection.execute(
            f"UPDATE messages SET {', '.join(f'{name} = ?' for name in names)}, copy_of = NULL WHERE id = ?",
            (*values, message_id),
        )


def find_lost_copies(connection: Connection) -> list[int]:
    """The ids of copies without an original, because another program deleted it."""
    rows = connection.execute(
        f"SELECT m.id FROM messages m {JOIN_ORIGINAL} WHERE m.copy_of IS NOT NULL AND m.content_format = '{SAME}'"
        " AND original.id IS NULL ORDER BY m.id"
    )
    return [row[0] for row in rows]


def mark_lost_copies(connection: Connection) -> list[str]:
    """Make copies without an original originals; one without content says that it is lost. Return their sessions."""
    changed = []
    for number in find_lost_copies(connection):
        with resealed(connection, [number]):
            (owner,) = connection.execute(
                "UPDATE messages SET content ="
                "  CASE WHEN content IS NULL AND tool_calls IS NULL THEN ? ELSE content END,"
                " content_format = NULL, copy_of = NULL WHERE id = ? RETURNING session_id",
                (LOST, number),
            ).fetchone()
        note_change(connection, owner, number)
        changed.append(owner)
    return list(dict.fromkeys(changed))
