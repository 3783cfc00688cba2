"""Reads and writes the system prompts of sessions: sessions of a user with the same prompt share one stored text.

A prompt is often longer than what is said in a session, and most sessions of a user start with the same one. Its id is
a digest of user and text, so users never share a prompt. In a file that Hermes uses, too, every session has the text in
its own row, because Hermes reads it there; a text in the row of a session always counts.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine

PROMPT = (
    "COALESCE(sessions.system_prompt,"
    " (SELECT shared.text FROM system_prompts shared WHERE shared.id = sessions.system_prompt_id))"
)
"""An expression for the prompt of a row of `sessions`."""

_DIGEST_CHARS = 32


def select_list(columns: Iterable[str]) -> str:
    """The columns of `sessions` for a SELECT, with the prompt wherever it is stored."""
    return ", ".join([PROMPT if name == "system_prompt" else name for name in columns])


def prompt_id(user_id: str | None, text: str) -> str:
    """The id of a user's prompt; its length separates the user from the text."""
    user = user_id or ""
    return sha256(f"{len(user)} {user}{text}".encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARS]


def store_prompt(engine: Engine, connection: Connection, user_id: str | None, text: str | None) -> dict[str, Any]:
    """Store the prompt of a session, and return the columns of the session that refer to it."""
    if text is None or engine.dialect.is_shared_with_hermes(connection):
        return {"system_prompt": text, "system_prompt_id": None}
    return {"system_prompt": None, "system_prompt_id": share_prompt(connection, user_id, text)}


def share_prompt(connection: Connection, user_id: str | None, text: str) -> str:
    """Add a prompt unless the user has it, and return its id; the caller refers to it in the same transaction."""
    number = prompt_id(user_id, text)
    connection.execute(
        "INSERT INTO system_prompts (id, user_id, text) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING",
        (number, user_id, text),
    )
    return number


def update_columns(engine: Engine, connection: Connection, session_id: str, columns: Mapping[str, Any]) -> int:
    """Set columns of a session, of which the prompt may be one; returns how many sessions were changed.

    A session that gets another user takes its prompt along.
    """
    new = dict(columns)
    if "system_prompt" in new or "user_id" in new:
        row = connection.execute(f"SELECT user_id, {PROMPT} FROM sessions WHERE id = ?", (session_id,)).fetchone()
        if row is None:
            return 0
        user, prompt = new.get("user_id", row[0]), new.get("system_prompt", row[1])
        new |= store_prompt(engine, connection, user, prompt)
    assignments = ", ".join(f"{name} = ?" for name in new) or "id = id"
    changed = connection.execute(
        f"UPDATE sessions SET {assignments} WHERE id = ?", (*new.values(), session_id)
    ).rowcount
    if not changed and new.get("system_prompt_id") is not None:
        # Another transaction has just deleted the session, and no later one would remove the prompt.
        connection.execute(
            "DELETE FROM system_prompts WHERE id = ? AND NOT EXISTS"
            " (SELECT 1 FROM sessions WHERE sessions.system_prompt_id = system_prompts.id)",
            (new["system_prompt_id"],),
        )
    return changed
