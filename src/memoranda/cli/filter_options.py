"""The options that several commands share to select sessions: time, project, user, title, model, size and cost."""

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from memoranda.cli.context import Invocation
from memoranda.cli.terminal_text import terminal_line
from memoranda.home.session_db import SessionDB
from memoranda.search.guidance import NOWHERE
from memoranda.search.request import FILTERS, SearchFilter, parse_time
from memoranda.support.projects import project_name, project_of, projects_named

_MAX_PROJECTS_SHOWN = 10
_Command = TypeVar("_Command", bound=Callable[..., Any])


def parse_time_option(*, end: bool = False) -> Callable[[click.Context, click.Parameter, Any], float | None]:
    """Returns a click callback that reads a timestamp: 30d, 12h, a date, or a date and time."""

    def read(context: click.Context, parameter: click.Parameter, value: Any) -> float | None:
        try:
            return None if value is None else parse_time(value, end=end)
        except ValueError as error:
            raise click.BadParameter(str(error), context, parameter) from None

    return read


def _as_option(described: SearchFilter) -> Callable[[_Command], _Command]:
    """A filter of the search as an option; the command receives it by its name."""
    spelling = described.option or f"--{described.name}"
    names = ("-p", spelling) if described.name == "project" else (spelling,)
    if described.is_time:
        callback = parse_time_option(end=described.name == "until")
        return click.option(spelling, described.name, metavar="TIME", callback=callback, help=described.help)
    kind = click.Choice(described.choices, case_sensitive=False) if described.choices else None
    metavar = None if described.choices else "NAME"
    text = f"{described.help} Can be repeated." if described.several else described.help
    return click.option(*names, described.name, metavar=metavar, type=kind, multiple=described.several, help=text)


all_users_option = click.option("--all-users", is_flag=True, help="The sessions of every user of this home.")
_SEARCH_OPTIONS: dict[str, Callable[[Any], Any]] = {each.name: _as_option(each) for each in FILTERS}
since_option, until_option = _SEARCH_OPTIONS["since"], _SEARCH_OPTIONS["until"]
project_option, source_option = _SEARCH_OPTIONS["project"], _SEARCH_OPTIONS["source"]

_FILTERS = (
    click.option("--title", metavar="TEXT", help="Only titles that contain this."),
    click.option("--model", metavar="TEXT", help="Only models whose name contains this."),
    click.option("--provider", metavar="TEXT", help="Only providers whose name contains this."),
    click.option("--min-messages", type=click.IntRange(0), help="Only sessions with at least this many messages."),
    click.option("--max-messages", type=click.IntRange(0), help="Only sessions with at most this many messages."),
    click.option("--min-tokens", type=click.IntRange(0), help="Only sessions with at least this many tokens."),
    click.option("--max-tokens", type=click.IntRange(0), help="Only sessions with at most this many tokens."),
    click.option("--min-cost", type=click.FloatRange(0), help="Only sessions that cost at least this many dollars."),
    click.option("--max-cost", type=click.FloatRange(0), help="Only sessions that cost at most this many dollars."),
)


def search_filter_options(command: _Command) -> _Command:
    """Adds an option for every filter of the search; the command receives them by the names of the filters."""
    for option in reversed(_SEARCH_OPTIONS.values()):
        command = option(command)
    return command


def session_filter_options(command: _Command) -> _Command:
    """Adds the options that are fields of a `SessionFilter`; the command receives them as keyword arguments."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def without_none(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def current_project() -> str | None:
    """Returns the project of the directory in which the command was started."""
    try:
        return project_of(os.getcwd())
    except FileNotFoundError:
        # The directory was deleted in the meantime.
        return None


def resolve_projects(invocation: Invocation, db: SessionDB, name: str) -> frozenset[str]:
    """Returns the known projects that match a name; "this" outside of a project ends the command with an error."""
    wanted = (current_project() or "") if name.strip().lower() == "this" else name
    if not wanted.strip():
        invocation.fail(NOWHERE)
    return projects_named(db.known_projects(), wanted)


def describe_known_projects(db: SessionDB) -> str:
    """Returns a line that names the known projects; "" when there are none."""
    names = [*dict.fromkeys(map(project_name, db.known_projects()))]
    hidden = len(names) - _MAX_PROJECTS_SHOWN
    rest = f", and {hidden} more" if hidden > 0 else ""
    return f"Known projects: {terminal_line(', '.join(names[:_MAX_PROJECTS_SHOWN]))}{rest}." if names else ""
