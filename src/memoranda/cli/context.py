"""The code that every command shares: which home it uses, how it prints its answer, and how it fails.

Every command has these options, and so does `memoranda` itself, so that
`memoranda --json memory list` and `memoranda memory list --json` mean the same.
"""

import json
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, TypeVar, cast

import click

from memoranda.home.config import locate_home, service_url
from memoranda.support.home import Home
from memoranda.support.lazy_dataclass import dataclass

Command = TypeVar("Command", bound=Callable[..., Any])

EXIT_REFUSED, EXIT_UNUSABLE, EXIT_INTERRUPTED = 1, 2, 130
_KEY = "memoranda."
# Under this name the program itself provides the function that runs a command at a service: no command knows others.
REMOTE_RUNNER = f"{_KEY}run_remotely"


def common_options(command: Command) -> Command:
    """Adds --home, --profile, --url and --json to a command, which gets their values as its `Invocation`.

    With a URL, the command of the same name for a service runs instead, if there is one.
    """
    command = _or_remotely(command)
    options = (
        click.option("--home", help="The home to use (MEMORANDA_HOME, ~/.memoranda)."),
        click.option("--profile", help="A profile below the home (MEMORANDA_PROFILE)."),
        click.option("--url", help="Use a service instead of a home (MEMORANDA_URL, with its MEMORANDA_API_KEY)."),
        click.option("--json", "as_json", is_flag=True, default=None, help="Print the answer as JSON."),
    )
    # The decorator that is applied last is listed first in the help.
    for option in reversed(options):
        command = _store_in_context(option)(command)
    return command


def _or_remotely(command: Command) -> Command:
    """Gives a command its invocation, and runs it at the service that this names, unless it is a group of others."""

    @wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        context = click.get_current_context()
        invocation = Invocation.of(context)
        if isinstance(context.command, click.Group):
            return command(*args, **options)
        if invocation.url is None:
            return command(invocation, *args, **options)
        return context.meta[REMOTE_RUNNER](invocation, context, lambda: command(invocation, *args, **options), options)

    return cast(Command, run)


def memory_options(command: Command) -> Command:
    """Adds the common options and --user, for commands that use the memory of one user."""
    user = click.option("--user", help="The memory of one user of a gateway.")
    return common_options(_store_in_context(user)(command))


def _store_in_context(option: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def store_value(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value is not None:
            context.meta[f"{_KEY}{parameter.name}"] = value

    def decorate(command: Command) -> Command:
        decorated = option(command)
        parameter = decorated.__click_params__[-1]  # type: ignore[attr-defined]
        parameter.expose_value = False
        parameter.callback = store_value
        return decorated

    return decorate


def printable(text: str) -> str:
    """Replaces the characters in untrusted text that could control a terminal."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


@dataclass(frozen=True, slots=True)
class Invocation:
    """The shared options of the command that is running."""

    home: str | None
    profile: str | None
    user: str | None
    as_json: bool
    url: str | None = None
    """The service that the command uses instead of a home."""
    url_is_option: bool = False
    """Whether --url names it, and not only the environment."""

    @classmethod
    def current(cls) -> "Invocation":
        return cls.of(click.get_current_context())

    @classmethod
    def of(cls, context: click.Context) -> "Invocation":
        meta = context.meta
        return cls(
            meta.get(f"{_KEY}home"),
            meta.get(f"{_KEY}profile"),
            meta.get(f"{_KEY}user"),
            bool(meta.get(f"{_KEY}as_json")),
            meta.get(f"{_KEY}url") or service_url(),
            f"{_KEY}url" in meta,
        )

    def locate_home(self) -> Home:
        """Returns the home without opening it, so it may be missing or unusable."""
        return locate_home(self.home, self.profile)

    def respond(self, text: str, data: Any) -> None:
        """Prints the answer: the text for a person, or the data as JSON."""
        click.echo(json.dumps(data, ensure_ascii=False, indent=2) if self.as_json else text)

    def fail(self, message: str, data: dict[str, Any] | None = None, code: int = EXIT_REFUSED) -> NoReturn:
        """Prints why the command did nothing, and exits with `code`."""
        if self.as_json:
            click.echo(json.dumps({"success": False, "error": message} | (data or {}), ensure_ascii=False, indent=2))
        else:
            click.echo(message, err=True)
        sys.exit(code)
