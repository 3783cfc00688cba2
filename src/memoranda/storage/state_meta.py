"""Reads and writes the facts that every store keeps about itself in the table `state_meta`."""

from memoranda.storage.connection import Connection


def read_meta(connection: Connection, key: str) -> str | None:
    """The value of a key; None when there is none."""
    row = connection.execute("SELECT value FROM state_meta WHERE key = ?", (key,)).fetchone()
    return None if row is None or row[0] is None else str(row[0])


def write_meta(connection: Connection, key: str, value: str) -> None:
    """Set the value of a key."""
    connection.execute(
        "INSERT INTO state_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def add_meta(connection: Connection, key: str, value: str) -> None:
    """Set the value of a key that has none."""
    connection.execute("INSERT INTO state_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING", (key, value))


def drop_meta(connection: Connection, key: str) -> None:
    """Remove a key, if it exists."""
    connection.execute("DELETE FROM state_meta WHERE key = ?", (key,))
