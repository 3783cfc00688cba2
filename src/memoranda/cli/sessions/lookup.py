"""Finds the session that a person names: by id, by title or first question, or by the beginning of one of these."""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from memoranda.cli.context import Invocation
from memoranda.cli.terminal_text import terminal_line
from memoranda.errors import SessionError
from memoranda.home.session_db import SessionDB
from memoranda.memory.record.sessions import TitledSession

_MAX_OTHERS_SHOWN = 3
_MAX_CANDIDATES = 10
# No index has the first questions, so only those of the latest conversations are compared.
_MAX_COMPARED = 2_000


def find_session(invocation: Invocation, db: SessionDB, name: str, *, exactly: bool = False) -> str:
    """Returns the id of the session with a name; ends the command with an error when there is none, or more than one.

    A name is a whole id or an exact title; unless `exactly`, it may also be a title without its number, which means the
    latest of the numbered ones, the beginning of an id, or what `called` accepts. If the name matches other
    conversations too, a note on standard error says which one was chosen.
    """
    exact, numbered = db.list_titled(name)
    if db.get_session(name):
        _note_choice(invocation, db, name, exact)
        return name
    if len(exact) > 1:
        holders = ", ".join(terminal_line(session.session_id) for session in exact)
        invocation.fail(f"More than one session is called {name!r}. Name one by its id: {holders}.")
    if exact:
        _note_choice(invocation, db, exact[0].session_id, numbered)
        return exact[0].session_id
    closest = numbered[-1].session_id if numbered else db.resolve_session_id(name) or _resolve_shown(db, name)
    if closest is None:
        invocation.fail(explain_not_found(db, name))
    if exactly:
        invocation.fail(
            f"{name!r} is neither a whole id nor an exact title, and --yes accepts nothing else. "
            f"Do you mean {_title_and_id(db, closest)}?"
        )
    if numbered:
        _note_choice(invocation, db, closest, numbered, f"No conversation is called {name!r}. ")
    return closest


def resolve_session(db: SessionDB, name: str) -> str | None:
    """Returns the id of the session to resume: by id, by title (the latest numbered one), or as `find_session` does."""
    if db.get_session(name):
        return name
    try:
        titled = db.resolve_session_by_title(name)
    except SessionError:
        # The name is longer than a title can be.
        titled = None
    return titled or db.resolve_session_id(name) or _resolve_shown(db, name)


def called(name: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The ids of the conversations that a list shows under a name, in any case, or under one that begins with it.

    Each has what the list shows: its title, or its first question.
    """
    start = _comparable(name)
    shown = {str(row["id"]): str(row["title"] or row.get("preview") or "") for row in rows}
    begun = {each: text for each, text in shown.items() if start and _comparable(text).startswith(start)}
    return {each: text for each, text in begun.items() if _comparable(text) == start} or begun


def _comparable(text: str) -> str:
    """A name without its case, its spacing, and the dots of one that was shortened for a list."""
    return " ".join(text.casefold().split()).rstrip(".…")


def _called(db: SessionDB, name: str) -> dict[str, str]:
    def rows(**filters: Any) -> list[dict[str, Any]]:
        return db.list_sessions_rich(
            limit=_MAX_COMPARED, order_by_last_active=True, include_children=True, include_archived=True, **filters
        )

    return called(name, [*rows(title=name), *rows()])


def _resolve_shown(db: SessionDB, name: str) -> str | None:
    found = list(_called(db, name))
    return found[0] if len(found) == 1 else None


def explain_not_found(db: SessionDB, name: str, list_command: str = "'memoranda sessions list'") -> str:
    """Explains why a name matches no session: it is unknown, or it means several, which are listed."""
    candidates = db.sessions.ids_starting_with(name, _MAX_CANDIDATES + 1)
    reason = f"More than one session has an id that begins with {name!r}. Type more of it:"
    if not candidates and (candidates := list(_called(db, name))):
        reason = f"More than one session has a title or first question that begins with {name!r}. Name one by its id:"
    if not candidates:
        candidates = [row["id"] for row in db.search_sessions_by_id(name, _MAX_CANDIDATES + 1)]
        reason = f"No session has the id or title {name!r}. These ids contain it:"
    if not candidates:
        return f"No session has the id or title {name!r}. {list_command} lists them."
    lines = [f"  {_id_and_name(db, session_id)}" for session_id in candidates[:_MAX_CANDIDATES]]
    if len(candidates) > _MAX_CANDIDATES:
        lines.append(f"  and more; {list_command} lists them")
    return "\n".join([reason, *lines])


def _id_and_name(db: SessionDB, session_id: str) -> str:
    title = db.get_session_title(session_id) or db.listing.first_words(session_id)
    return f"{terminal_line(session_id)}  {terminal_line(title, 60)}" if title else terminal_line(session_id)


def _note_choice(
    invocation: Invocation, db: SessionDB, chosen: str, candidates: list[TitledSession], reason: str = ""
) -> None:
    """Prints which conversation was chosen when the name matches others too; JSON answers contain its id."""
    conversation = db.get_compression_lineage(chosen)
    others = [_title_and_id(db, other.session_id) for other in candidates if other.session_id not in conversation]
    if invocation.as_json or not (others or reason):
        return
    names = ", ".join(others[:_MAX_OTHERS_SHOWN])
    rest = f" or {len(others) - _MAX_OTHERS_SHOWN} more" if len(others) > _MAX_OTHERS_SHOWN else ""
    ending = f", not {names}{rest}." if others else "."
    click.echo(f"{reason}This is {_title_and_id(db, chosen)}{ending}", err=True)


def _title_and_id(db: SessionDB, session_id: str) -> str:
    title = db.get_session_title(session_id)
    return f"{title!r} ({terminal_line(session_id)})" if title else terminal_line(session_id)
