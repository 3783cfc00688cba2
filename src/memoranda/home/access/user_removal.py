"""Removes a user from the tables of the service: the keys that act as the user, and the user's name in the audit log.

The audit log keeps that something was done, when, and by which key. In place of the user it has a pseudonym, which a
person who knows the id of the user can compute, and no one can read.
"""

import hashlib

from memoranda.home.access.keys import DEFAULT_TENANT
from memoranda.home.access.service_database import ServiceDatabase
from memoranda.storage.connection import Connection

_FORGOTTEN = "forgotten-"
_DIGITS = 16
# A user of another tenant than the default one is stored as `<tenant>/<user>`.
_STORED_USER = f"CASE WHEN tenant = '{DEFAULT_TENANT}' THEN '' ELSE tenant || '/' END || user_id"
_OWN_KEYS = f"user_id IS NOT NULL AND {_STORED_USER} = ?"


def forgotten_name(user: str) -> str:
    """The pseudonym of a user who was forgotten."""
    return _FORGOTTEN + hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def count_rows_of(database: ServiceDatabase, user: str) -> int:
    """How many keys act as a user, and how many entries of the audit log name the user; `user` is the id as stored."""
    if not database.exists():
        return 0
    with database.open().reading() as connection:
        (keys,) = connection.execute(f"SELECT count(*) FROM api_keys WHERE {_OWN_KEYS}", (user,)).fetchone()
        (entries,) = connection.execute("SELECT count(*) FROM audit_log WHERE user_id = ?", (user,)).fetchone()
    return int(keys) + int(entries)


def remove_user(database: ServiceDatabase, user: str) -> None:
    """Delete the keys of a user with what was granted by them, and replace the user in the audit log."""
    if not database.exists():
        return
    with database.open().writing() as connection:
        rows = connection.execute(f"SELECT id FROM api_keys WHERE {_OWN_KEYS}", (user,)).fetchall()
        for (key_id,) in rows:
            _delete_key(connection, key_id)
        # What was changed may be named after its content, such as a session.
        connection.execute(
            "UPDATE audit_log SET user_id = ?, subject = '' WHERE user_id = ?", (forgotten_name(user), user)
        )
    database.open().shrink_log()


def _delete_key(connection: Connection, key_id: str) -> None:
    grants = "SELECT id FROM oauth_grants WHERE key_id = ?"
    connection.execute(f"DELETE FROM oauth_tokens WHERE grant_id IN ({grants})", (key_id,))
    connection.execute("DELETE FROM oauth_grants WHERE key_id = ?", (key_id,))
    connection.execute("DELETE FROM api_keys WHERE id = ?", (key_id,))
