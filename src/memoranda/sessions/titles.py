"""Titles: names for people, unique among a user's sessions and numbered along a conversation."""

import re
import unicodedata
from dataclasses import dataclass

from memoranda.db.sqlite import Connection
from memoranda.errors import SessionError
from memoranda.sessions.feed import note_change
from memoranda.sessions.scope import Scope
from memoranda.sessions.store_part import StorePart, count_redactions
from memoranda.support.shorten import shorten_end

LONGEST = 100
_NEVER_CUT = 80
_NUMBERED = re.compile(r"(?P<base>.*\S) #(?P<number>[1-9]\d{0,8})")


@dataclass(frozen=True, slots=True, order=True)
class TitledSession:
    """A session found by a title; those that are numbered after it sort by their numbers, the latest last."""

    number: int
    started_at: float
    session_id: str
    title: str


def tidy(title: str) -> str | None:
    """A title on one line, without signs that cannot be seen; None when nothing is left."""
    shown = "".join(" " if char.isspace() else char for char in title if char.isspace() or _is_shown(char))
    tidied = " ".join(shown.split())
    if len(tidied) > LONGEST:
        raise SessionError(f"A title may have {LONGEST} characters; this one has {len(tidied)}.")
    return tidied or None


def _is_shown(char: str) -> bool:
    # A joiner holds an emoji together; all other format characters only hide something.
    return char == "\u200d" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Cn", "Co")


class Titles(StorePart):
    """Finding sessions by their titles, and giving them some."""

    def set_session_title(self, session_id: str, title: str | None) -> bool:
        """Name a session; a blank title takes its name away. False when there is no such session.

        A title that an earlier session of the same conversation has moves on to this one; one that any other
        session has is refused.
        """
        clean, redacted = self._redact(title or "")
        with self._db.writing() as connection:
            if not self._exists(connection, session_id):
                return False
            claim_title(connection, session_id, clean)
            count_redactions(connection, redacted)
            return True

    def get_session_title(self, session_id: str) -> str | None:
        with self._db.reading() as connection:
            row = connection.execute(
                f"SELECT title FROM sessions WHERE id = ? AND {self._seen}", (session_id, *self._scope.values)
            ).fetchone()
        return row[0] if row else None

    def list_titled(self, title: str) -> tuple[list[TitledSession], list[TitledSession]]:
        """The sessions with exactly that title (of several users in a store for everyone), and those numbered after it.

        What cannot be a title finds nothing.
        """
        try:
            wanted = tidy(title)
        except SessionError:
            return [], []
        if wanted is None:
            return [], []
        with self._db.reading() as connection:
            found = sorted(variants(connection, wanted, self._scope))
        return [each for each in found if each.title == wanted], [each for each in found if each.title != wanted]

    def resolve_session_by_title(self, title: str) -> str | None:
        """The latest of the sessions with that title and those numbered after it; a number that is given is meant.

        `list_titled` tells them apart.
        """
        wanted = tidy(title)
        if wanted is None:
            return None
        with self._db.reading() as connection:
            found = variants(connection, wanted, self._scope)
        if _NUMBERED.fullmatch(wanted):
            # One of a row, named as it stands.
            found = [each for each in found if each.number == 1] or found
        return max(found).session_id if found else None

    def get_next_title_in_lineage(self, base: str) -> str:
        """The next free title after `base`: itself, or the same with the next number."""
        with self._db.reading() as connection:
            return next_title(connection, base, self._scope)


def next_title(connection: Connection, base: str, scope: Scope) -> str:
    """The next free title after `base` among the sessions in scope."""
    wanted = tidy(base)
    if wanted is None:
        raise SessionError("A title must not be blank.")
    numbered = _NUMBERED.fullmatch(wanted)
    stem = numbered["base"] if numbered else wanted
    taken = [each.number for each in variants(connection, stem, scope)]
    return _with_number(stem, max(taken) + 1) if taken else stem


def variants(connection: Connection, stem: str, scope: Scope) -> list[TitledSession]:
    """The sessions titled `stem` (number 1) or `stem #n`; a long stem is cut to make room."""
    pattern = stem[:_NEVER_CUT].replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
    rows = connection.execute(
        f"SELECT title, started_at, id FROM sessions WHERE title LIKE ? ESCAPE '\\' AND {scope.condition()}",
        (pattern, *scope.values),
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
    return shorten_end(stem, LONGEST - len(ending)) + ending


def claim_title(connection: Connection, session_id: str, title: str) -> None:
    """Give a session its title within a transaction, taking it from an earlier session of the conversation."""
    wanted = tidy(title)
    user, conversation = connection.execute(
        "SELECT user_id, conversation_id FROM sessions WHERE id = ?", (session_id,)
    ).fetchone()
    if wanted is not None:
        holder = connection.execute(
            "SELECT id, conversation_id FROM sessions WHERE title = ? AND COALESCE(user_id, '') = ? AND id <> ?",
            (wanted, user or "", session_id),
        ).fetchone()
        if holder and holder[1] != conversation:
            raise SessionError(f"The title {wanted!r} is taken by session {holder[0]}.")
        if holder:
            connection.execute("UPDATE sessions SET title = NULL WHERE id = ?", (holder[0],))
            note_change(connection, holder[0])
    connection.execute("UPDATE sessions SET title = ? WHERE id = ?", (wanted, session_id))
    note_change(connection, session_id)
