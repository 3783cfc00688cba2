"""Which sessions a command means: by id, by the beginning of one, by title, by time, by project."""

import os
from collections.abc import Callable
from typing import Any

import click

from memoranda.cli.context import Invocation
from memoranda.cli.text import wrapped
from memoranda.recall.guidance import NOWHERE
from memoranda.recall.session_db import SessionDB
from memoranda.recall.times import parse_time
from memoranda.support.projects import among, project_name, project_of

_SHOWN_PROJECTS = 10
NOT_FOUND = "No session has the id or title {name!r}, or its id begins like more than one."

all_users_option = click.option("--all-users", is_flag=True, help="The sessions of every user of this home.")


def moment(*, end: bool = False) -> Callable[[click.Context, click.Parameter, Any], float | None]:
    """Reads an option as a moment: 30d, 12h, a date, a date and time."""

    def read(context: click.Context, parameter: click.Parameter, value: Any) -> float | None:
        try:
            return None if value is None else parse_time(value, end=end)
        except ValueError as error:
            raise click.BadParameter(str(error), context, parameter) from None

    return read


since_option = click.option(
    "--since", metavar="TIME", callback=moment(), help="Only from then on: 30d, 12h, 2026-11-01."
)
until_option = click.option("--until", metavar="TIME", callback=moment(end=True), help="Up to then.")
project_option = click.option(
    "--project", metavar="NAME", help="Only about one project: this (the repository you are in), or owner/name."
)


def present_project() -> str | None:
    """The project of the directory that the command was started in."""
    try:
        return project_of(os.getcwd())
    except FileNotFoundError:
        # It was deleted meanwhile.
        return None


def projects_named(invocation: Invocation, db: SessionDB, name: str) -> frozenset[str]:
    """The projects that a person means; leaves the command when that is the present one and there is none."""
    wanted = (present_project() or "") if name.strip().lower() == "this" else name
    if not wanted.strip():
        invocation.refuse(NOWHERE)
    return among(db.known_projects(), wanted)


def other_projects(db: SessionDB) -> str:
    """A line that says which projects there are; empty when there are none."""
    known = [*dict.fromkeys(map(project_name, db.known_projects()))]
    rest = f", and {len(known) - _SHOWN_PROJECTS} more" if len(known) > _SHOWN_PROJECTS else ""
    return f"There are: {wrapped(', '.join(known[:_SHOWN_PROJECTS]))}{rest}." if known else ""


def find_session(invocation: Invocation, db: SessionDB, name: str) -> str:
    """The session that a person means; leaves the command when there is none or more than one."""
    found = session_named(db, name)
    if found is None:
        invocation.refuse(f"{NOT_FOUND.format(name=name)} 'memoranda sessions list' shows them.")
    return found


def session_named(db: SessionDB, name: str) -> str | None:
    """The session with that id, that title, or an id that begins so; what is named exactly comes first."""
    return name if db.get_session(name) else db.resolve_session_by_title(name[:100]) or db.resolve_session_id(name)
