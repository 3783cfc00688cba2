"""Messages that repeat others: rows that only refer, and what becomes of them when the others go.

A context that was compressed holds messages again that were said before. Such a row has `copy_of` and no text: its
`content_format` is "same", and everything it says is read from the message that it repeats, which is a message of the
same user. A row that has `copy_of` and a text of its own repeats a message in other words, such as a tool's output cut
short.
"""

from collections.abc import Sequence
from typing import Any

from memoranda.db.sqlite import Connection
from memoranda.sessions.feed import note_change
from memoranda.sessions.message_rows import READ, WRITTEN

SAME = "same"
LOST = "[This message was lost in a damaged store.]"

# What a row that refers does not hold itself.
_REFERRED = tuple(
    name for name in WRITTEN
    if name not in ("role", "content_format", "timestamp", "external_id", "copy_of", "is_summary")
)  # fmt: skip
# The provider's count of tokens is not part of what was said.
_SAID = ("role", "content_format", *(name for name in _REFERRED if name != "token_count"))
_PLACE = {name: place for place, name in enumerate(WRITTEN)}

REFERRED_TO = f"LEFT JOIN messages said ON m.content_format = '{SAME}' AND said.id = m.copy_of"
"""The join by which rows `m` find what they repeat."""


def read_fully(names: Sequence[str] = READ) -> str:
    """The columns of rows `m`, joined by REFERRED_TO, with everything that they say."""
    return ", ".join(_field(name) for name in names)


def _field(name: str) -> str:
    if name == "content_format":
        return f"CASE WHEN m.{name} = '{SAME}' THEN said.{name} ELSE m.{name} END"
    return f"COALESCE(m.{name}, said.{name})" if name in _REFERRED else f"m.{name}"


def repeating(connection: Connection, session_id: str, row: Sequence[Any]) -> list[Any]:
    """A row that says it repeats another, without the text that both have.

    A repetition of a repetition repeats the first one. One of a message that is not there is a record of its own.
    """
    repeated = original_of(connection, row[_PLACE["copy_of"]])
    made = list(row)
    made[_PLACE["copy_of"]] = repeated
    if repeated is not None and _says_the_same(connection, session_id, repeated, row):
        for name in _REFERRED:
            made[_PLACE[name]] = None
        made[_PLACE["content_format"]] = SAME
    elif repeated is None and row[_PLACE["content_format"]] == SAME:
        made[_PLACE["content"]], made[_PLACE["content_format"]] = LOST, None
    return made


def original_of(connection: Connection, message_id: int) -> int | None:
    """The message that was said, by its id or that of any repetition; None when it is not there."""
    row = connection.execute("SELECT COALESCE(copy_of, id) FROM messages WHERE id = ?", (message_id,)).fetchone()
    return None if row is None else int(row[0])


def _says_the_same(connection: Connection, session_id: str, message_id: int, row: Sequence[Any]) -> bool:
    """Whether a row has the words of a message; another user's message never counts, whatever a caller says."""
    found = connection.execute(
        f"SELECT {', '.join(f'm.{name}' for name in _SAID)} FROM messages m"
        " JOIN sessions whose ON whose.id = m.session_id JOIN sessions here ON here.id = ?"
        " WHERE m.id = ? AND m.copy_of IS NULL AND COALESCE(whose.user_id, '') = COALESCE(here.user_id, '')",
        (session_id, message_id),
    ).fetchone()
    return found is not None and all(row[_PLACE[name]] == value for name, value in zip(_SAID, found, strict=True))


def release(connection: Connection, session_id: str) -> list[str]:
    """Before the messages of a session go: hand each one on to the first row elsewhere that repeats it.

    That row is the record from then on, with the text; the other repetitions repeat it. The sessions that changed.
    """
    return _hand_on(connection, "m.session_id <> ?", (session_id, 0, session_id))


def release_to_branches(connection: Connection, session_id: str, from_id: int) -> list[str]:
    """Before messages of a session from one on are taken back: the same for other conversations that hold them."""
    other = "sessions.conversation_id <> (SELECT conversation_id FROM sessions WHERE id = ?)"
    return _hand_on(connection, other, (session_id, from_id, session_id))


def _hand_on(connection: Connection, elsewhere: str, values: tuple[str, int, str]) -> list[str]:
    rows = connection.execute(
        "SELECT m.copy_of, COALESCE(sessions.user_id, ''), m.id, m.session_id FROM messages m"
        " JOIN sessions ON sessions.id = m.session_id"
        f" WHERE m.copy_of IN (SELECT id FROM messages WHERE session_id = ? AND id >= ?) AND {elsewhere}"
        # A row that says the same word for word inherits before one that was cut short.
        f" ORDER BY COALESCE(m.content_format, '') <> '{SAME}', m.active + m.compacted = 0, m.id",
        values,
    ).fetchall()
    heirs: dict[tuple[int, str], int] = {}
    changed: dict[str, int] = {}
    for original, user, number, owner in rows:
        heir = heirs.setdefault((original, user), number)
        if heir == number:
            _inherit(connection, number)
        else:
            connection.execute("UPDATE messages SET copy_of = ? WHERE id = ?", (heir, number))
        changed[owner] = min(number, changed.get(owner, number))
    for owner, first in changed.items():
        note_change(connection, owner, first)
    return list(changed)


def _inherit(connection: Connection, message_id: int) -> None:
    names = ("content_format", *_REFERRED)
    values = connection.execute(
        f"SELECT {read_fully(names)} FROM messages m {REFERRED_TO} WHERE m.id = ?", (message_id,)
    ).fetchone()
    connection.execute(
        f"UPDATE messages SET {', '.join(f'{name} = ?' for name in names)}, copy_of = NULL WHERE id = ?",
        (*values, message_id),
    )


def lost_repetitions(connection: Connection) -> list[int]:
    """Rows that refer to a message which is not there: something else than this program deleted it."""
    rows = connection.execute(
        f"SELECT m.id FROM messages m {REFERRED_TO} WHERE m.copy_of IS NOT NULL AND m.content_format = '{SAME}'"
        " AND said.id IS NULL ORDER BY m.id"
    )
    return [row[0] for row in rows]


def give_up_lost(connection: Connection) -> list[str]:
    """Say in place of each lost message that it is lost; the sessions that changed."""
    changed = []
    for number in lost_repetitions(connection):
        (owner,) = connection.execute(
            "UPDATE messages SET content = ?, content_format = NULL, copy_of = NULL WHERE id = ? RETURNING session_id",
            (LOST, number),
        ).fetchone()
        note_change(connection, owner, number)
        changed.append(owner)
    return list(dict.fromkeys(changed))
