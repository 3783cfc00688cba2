"""Positions in the feed of messages that rows of a user name, after the user has moved to another store.

A position names a transaction of its store. In the target, all copied messages belong to the transaction of the move,
in the order of their ids. What the source had not read yet must come after the new position; a message that it had read
out of the order of ids is read again.
"""

from memoranda.storage.position import Position, former_stores_key
from memoranda.storage.postgres.connection import PostgresConnection
from memoranda.storage.postgres.dialect import PostgresDialect

_TABLE = "outbox_positions"
_STORE_ID = "store_id"


def keep_turn_marks(source: PostgresConnection, target: PostgresConnection, user: str) -> None:
    """Note in the target which stores the user came from.

    A completed turn names the store in which it was recorded. Without the note, the target would take a turn that was
    not queued before the move for an imported one, and never deliver it.
    """
    key = former_stores_key(user)
    former = {_meta(source, _STORE_ID), *_meta(source, key).split()} - {"", _meta(target, _STORE_ID)}
    target.execute(
        "INSERT INTO state_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, " ".join(sorted(former))),
    )


def _meta(connection: PostgresConnection, key: str) -> str:
    row = connection.execute("SELECT value FROM state_meta WHERE key = ?", (key,)).fetchone()
    return str(row[0] or "") if row else ""


def translate_positions(source: PostgresConnection, target: PostgresConnection, tables: list[str]) -> None:
    """Change the copied positions of one user, as whom both transactions act."""
    if _TABLE not in tables:
        return
    ((transaction,),) = target.execute("SELECT pg_current_xact_id()::text").fetchall()
    for number, text in source.execute(f"SELECT id, position FROM {_TABLE}").fetchall():
        condition, values = PostgresDialect().visible_after("id", Position.parse(text))
        first, last = source.execute(
            f"SELECT (SELECT min(id) FROM messages WHERE {condition}), (SELECT max(id) FROM messages)", values
        ).fetchone()
        position = Position(int(transaction), first - 1 if first else last or 0)
        target.execute(f"UPDATE {_TABLE} SET position = ? WHERE id = ?", (str(position), number))
