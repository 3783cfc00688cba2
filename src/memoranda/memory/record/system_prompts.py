"""The system prompts of sessions: sessions of a user with the same prompt share one stored text.

A prompt is often longer than what is said in a session, and most sessions of a user start with the same one. Its id is
a digest of user and text, so users never share a prompt. In a file that Hermes uses, too, every session has the text in
its own row, because Hermes reads it there; a text in the row of a session always counts. `SharedPrompts` fills the rows
of sessions from before Hermes opened the file, and checks the table of prompts for the doctor.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from hashlib import sha256
from typing import Any

from memoranda.memory.record.store_part import StorePart
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.support.lazy_dataclass import dataclass

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


# Few sessions at a time are changed, so that other writers never wait long.
_FILLED_TOGETHER = 20
_PAUSE = 0.005


@dataclass(slots=True)
class PromptReport:
    """The result of `check`: prompts that do not match their id, and sessions whose prompt is missing."""

    damaged: list[str] = field(default_factory=list)
    sessions_without: list[str] = field(default_factory=list)


class SharedPrompts(StorePart):
    """The prompts of all users."""

    def fill_rows_for_hermes(self, stopped: Callable[[], bool] = lambda: False) -> int:
        """In a file that Hermes uses, store the prompts in the rows of their sessions; returns how many were changed.

        Continues until `stopped`, and costs nothing when that is done.
        """
        self._require_everyone()
        with self._engine.reading() as connection:
            if not self._dialect.is_shared_with_hermes(connection):
                return 0
        changed = 0
        while not stopped():
            time.sleep(_PAUSE if changed else 0)
            with self._engine.writing() as connection:
                rows = connection.execute(
                    "SELECT sessions.id, text FROM sessions JOIN system_prompts ON system_prompts.id = system_prompt_id"
                    f" LIMIT {_FILLED_TOGETHER}"
                ).fetchall()
                for session_id, text in rows:
                    update_columns(self._engine, connection, session_id, {"system_prompt": text})
            changed += len(rows)
            if len(rows) < _FILLED_TOGETHER:
                break
        return changed

    def check(self) -> PromptReport:
        """Compare every prompt with its id, and find the sessions whose prompt is missing."""
        self._require_everyone()
        report = PromptReport()
        with self._engine.reading() as connection:
            for number, user, text in connection.execute("SELECT id, user_id, text FROM system_prompts"):
                if not isinstance(text, str) or prompt_id(user, text) != number:
                    report.damaged.append(number)
            rows = connection.execute(
                "SELECT id FROM sessions WHERE system_prompt IS NULL AND system_prompt_id IS NOT NULL"
                " AND system_prompt_id NOT IN (SELECT id FROM system_prompts) ORDER BY id"
            )
            report.sessions_without = [session_id for (session_id,) in rows]
        return report

    def drop_damaged(self) -> int:
        """Remove damaged prompts: a prompt is used as it is or not at all, and the next turn builds a new one.

        Returns how many there were.
        """
        damaged = self.check().damaged
        with self._engine.writing() as connection:
            for number in damaged:
                connection.execute("UPDATE sessions SET system_prompt_id = NULL WHERE system_prompt_id = ?", (number,))
                connection.execute("DELETE FROM system_prompts WHERE id = ?", (number,))
            drop_lost_prompts(connection)
        return len(damaged)


def drop_lost_prompts(connection: Connection) -> None:
    """Clear references to prompts that are missing, and remove prompts without a session."""
    connection.execute(
        "UPDATE sessions SET system_prompt_id = NULL WHERE system_prompt_id NOT IN (SELECT id FROM system_prompts)"
    )
    connection.execute(
        "DELETE FROM system_prompts WHERE NOT EXISTS"
        " (SELECT 1 FROM sessions WHERE sessions.system_prompt_id = system_prompts.id)"
    )
