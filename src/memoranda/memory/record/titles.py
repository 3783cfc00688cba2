"""Titles: names for people, unique among a user's sessions and numbered within a conversation."""

import re
import unicodedata
from dataclasses import dataclass

from memoranda.errors import SessionError
from memoranda.memory.record.feed import note_change
from memoranda.memory.record.store_part import StorePart, count_redactions
from memoranda.storage.connection import Connection
from memoranda.support.shorten import shorten_end

MAX_TITLE_CHARS = 100
_NEVER_SHORTENED = 80
_NUMBERED = re.compile(r"(?P<base>.*\S) #(?P<number>[1-9]\d{0,8})")


@dataclass(frozen=True, slots=True, order=True)
class TitledSession:
    """A session found by its title; numbered titles sort by number, the latest last."""

    number: int
    started_at: float
    session_id: str
    title: str


def tidy(title: str) -> str | None:
    """Put a title on one line without invisible characters; None if nothing is left."""
    shown = "".join(" " if char.isspace() else char for char in title if char.isspace() or _is_shown(char))
    tidied = " ".join(shown.split())
    if len(tidied) > MAX_TITLE_CHARS:
        raise SessionError(f"A title may have at most {MAX_TITLE_CHARS} characters; this one has {len(tidied)}.")
    return tidied or None


def _is_shown(char: str) -> bool:
    # A joiner holds an emoji together; all other format characters are invisible.
    return char == "\u200d" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Cn", "Co")


class Titles(StorePart):
    """Sets titles and finds sessions by them."""

    def set_session_title(self, session_id: str, title: str | None) -> bool:
        """Set the title of a session, or remove it with a blank one. False if the session does not exist.

        If an earlier session of the same conversation has the title, it moves to this session. Raises SessionError if
        any other session has it.
        """
        clean, redacted = self._redact(title or "")
        with self._engine.writing() as connection:
            self._engine.lock_session(connection, session_id)
            if not self._exists(connection, session_id):
                return False
            self.claim_title(connection, session_id, clean)
            count_redactions(connection, redacted)
            return True

    def get_session_title(self, session_id: str) -> str | None:
        with self._engine.reading() as connection:
            row = connection.execute(
                f"SELECT title FROM sessions WHERE id = ? AND {self._in_scope}", (session_id, *self._scope.values)
            ).fetchone()
        return row[0] if row else None

    def list_titled(self, title: str) -> tuple[list[TitledSession], list[TitledSession]]:
        """The sessions with exactly that title (of several users, in a store for all), and its numbered variants.

        A text that cannot be a title finds nothing.
        """
        try:
            clean = tidy(title)
        except SessionError:
            return [], []
        if clean is None:
            return [], []
        with self._engine.reading() as connection:
            found = sorted(self._variants(connection, clean))
        exact = [session for session in found if session.title == clean]
        return exact, [session for session in found if session.title != clean]

    def resolve_session_by_title(self, title: str) -> str | None:
        """The latest of the sessions with that title and its numbered variants; a title with a number means that one.

        `list_titled` returns all of them.
        """
        clean = tidy(title)
        if clean is None:
            return None
        with self._engine.reading() as connection:
            found = self._variants(connection, clean)
        if _NUMBERED.fullmatch(clean):
            # The caller names one of a series.
            found = [session for session in found if session.number == 1] or found
        return max(found).session_id if found else None

    def get_next_title_in_lineage(self, base: str) -> str:
        """The next free title after `base`: itself, or the same with the next number."""
        with self._engine.reading() as connection:
            return self.next_title(connection, base)

    def next_title(self, connection: Connection, base: str) -> str:
        """The next free title after `base` within a transaction: itself, or the same with the next number."""
        clean = tidy(base)
        if clean is None:
            raise SessionError("A title must not be blank.")
        numbered = _NUMBERED.fullmatch(clean)
        stem = numbered["base"] if numbered else clean
        taken = [session.number for session in self._variants(connection, stem)]
        return _with_number(stem, max(taken) + 1) if taken else stem

    def claim_title(self, connection: Connection, session_id: str, title: str) -> None:
        """Set the title of a session within a transaction; an earlier session of the conversation loses it.

        Raises SessionError if a session of another conversation has the title.
        """
        clean = tidy(title)
        user, conversation = connection.execute(
            "SELECT user_id, conversation_id FROM sessions WHERE id = ?", (session_id,)
        ).fetchone()
        if clean is not None:
            self._engine.lock_titles(connection, user)
            holder = connection.execute(
                "SELECT id, conversation_id FROM sessions WHERE title = ? AND COALESCE(user_id, '') = ? AND id <> ?",
                (clean, user or "", session_id),
            ).fetchone()
            if holder and holder[1] != conversation:
                raise SessionError(f"The title {clean!r} is taken by session {holder[0]}.")
            if holder:
                connection.execute("UPDATE sessions SET title = NULL WHERE id = ?", (holder[0],))
                note_change(connection, holder[0])
        connection.execute("UPDATE sessions SET title = ? WHERE id = ?", (clean, session_id))
        note_change(connection, session_id)

    def _variants(self, connection: Connection, stem: str) -> list[TitledSession]:
        """The sessions titled `stem` (number 1) or `stem #n`; a long stem is shortened to make room."""
        condition, values = self._dialect.starts_with("title", stem[:_NEVER_SHORTENED])
        # The index on titles finds the few sessions; by that on users, every session of a user would be read.
        in_scope = self._scope.condition(self._dialect.unindexed("sessions"))
        rows = connection.execute(
            f"SELECT title, started_at, id FROM sessions WHERE {condition} AND {in_scope}",
            (*values, *self._scope.values),
        )
        found = []
        for name, started, session_id in rows:
            match = _NUMBERED.fullmatch(name)
            if name == stem:
                found.append(TitledSession(1, started, session_id, name))
            elif match and name == _with_number(stem, int(match["number"])):
                found.append(TitledSession(int(match["number"]), started, session_id, name))
        return found


def _with_number(stem: str, number: int) -> str:
    ending = f" #{number}"
    return shorten_end(stem, MAX_TITLE_CHARS - len(ending)) + ending
