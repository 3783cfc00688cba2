"""Which sessions a command means: by id, by the beginning of one, by title, by time, by project."""

import os
from collections.abc import Callable
from typing import Any

import click

from memoranda.cli.context import Invocation
from memoranda.cli.terminal_text import terminal_line
from memoranda.errors import SessionError
from memoranda.recall.guidance import NOWHERE
from memoranda.recall.request import parse_time
from memoranda.recall.session_db import SessionDB
from memoranda.sessions.titles import TitledSession
from memoranda.support.projects import matching_projects, project_name, project_of

_SHOWN_PROJECTS = 10
_SHOWN_OTHERS = 3
NOT_FOUND = "No session has the id or title {name!r}, or its id begins like more than one."

all_users_option = click.option("--all-users", is_flag=True, help="The sessions of every user of this home.")


def parse_time_option(*, end: bool = False) -> Callable[[click.Context, click.Parameter, Any], float | None]:
    """Reads an option as a moment: 30d, 12h, a date, a date and time."""

    def read(context: click.Context, parameter: click.Parameter, value: Any) -> float | None:
        try:
            return None if value is None else parse_time(value, end=end)
        except ValueError as error:
            raise click.BadParameter(str(error), context, parameter) from None

    return read


since_option = click.option(
    "--since", metavar="TIME", callback=parse_time_option(), help="Only from then on: 30d, 12h, 2026-11-01."
)
until_option = click.option("--until", metavar="TIME", callback=parse_time_option(end=True), help="Up to then.")
project_option = click.option(
    "--project", metavar="NAME", help="Only about one project: this (the repository you are in), or owner/name."
)


def current_project() -> str | None:
    """The project of the directory that the command was started in."""
    try:
        return project_of(os.getcwd())
    except FileNotFoundError:
        # It was deleted meanwhile.
        return None


def resolve_projects(invocation: Invocation, db: SessionDB, name: str) -> frozenset[str]:
    """The projects that a person means; leaves the command when that is the present one and there is none."""
    wanted = (current_project() or "") if name.strip().lower() == "this" else name
    if not wanted.strip():
        invocation.fail(NOWHERE)
    return matching_projects(db.known_projects(), wanted)


def describe_known_projects(db: SessionDB) -> str:
    """A line that says which projects there are; empty when there are none."""
    known = [*dict.fromkeys(map(project_name, db.known_projects()))]
    rest = f", and {len(known) - _SHOWN_PROJECTS} more" if len(known) > _SHOWN_PROJECTS else ""
    return f"There are: {terminal_line(', '.join(known[:_SHOWN_PROJECTS]))}{rest}." if known else ""


def find_session(invocation: Invocation, db: SessionDB, name: str, *, exactly: bool = False) -> str:
    """The session that a person means; leaves the command when there is none or more than one.

    A whole id comes first, then an exact title; `exactly` takes nothing else. Then the latest of the titles that are
    numbered after it, and the beginning of an id. Where another conversation could be meant, it says which was taken.
    """
    exact, numbered = db.list_titled(name)
    if db.get_session(name):
        _say_which(invocation, db, name, exact)
        return name
    if len(exact) > 1:
        holders = ", ".join(terminal_line(each.session_id) for each in exact)
        invocation.fail(f"More than one session is called {name!r}. Name one by its id: {holders}.")
    if exact:
        _say_which(invocation, db, exact[0].session_id, numbered)
        return exact[0].session_id
    near = numbered[-1].session_id if numbered else db.resolve_session_id(name)
    if near is None:
        invocation.fail(f"{NOT_FOUND.format(name=name)} 'memoranda sessions list' shows them.")
    if exactly:
        invocation.fail(
            f"{name!r} is neither a whole id nor an exact title, and --yes takes nothing else. "
            f"Do you mean {_called(db, near)}?"
        )
    if numbered:
        _say_which(invocation, db, near, numbered, f"No conversation is called {name!r}. ")
    return near


def resolve_session(db: SessionDB, name: str) -> str | None:
    """The session to take up again: by id, by title (the latest of those numbered after it), or by how an id begins."""
    if db.get_session(name):
        return name
    try:
        titled = db.resolve_session_by_title(name)
    except SessionError:
        # Longer than a title can be.
        titled = None
    return titled or db.resolve_session_id(name)


def _say_which(invocation: Invocation, db: SessionDB, taken: str, others: list[TitledSession], why: str = "") -> None:
    """Say on the side which conversation is meant when the name fits others, too; JSON answers name it by its id."""
    conversation = db.get_compression_lineage(taken)
    left = [_called(db, each.session_id) for each in others if each.session_id not in conversation]
    if invocation.as_json or not (left or why):
        return
    shown = ", ".join(left[:_SHOWN_OTHERS])
    rest = f" or {len(left) - _SHOWN_OTHERS} more" if len(left) > _SHOWN_OTHERS else ""
    click.echo(f"{why}This is {_called(db, taken)}" + (f", not {shown}{rest}." if left else "."), err=True)


def _called(db: SessionDB, session_id: str) -> str:
    title = db.get_session_title(session_id)
    return f"{title!r} ({terminal_line(session_id)})" if title else terminal_line(session_id)
