"""`memoranda setup`: finds the agents on this machine, imports their conversations and gives them memory."""

import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from memoranda.cli.context import EXIT_REFUSED, Invocation, memory_options
from memoranda.cli.imports.summary_text import summary_lines
from memoranda.cli.imports.workflow import import_without_asking
from memoranda.cli.open_home import open_home
from memoranda.cli.search import format_search_answer
from memoranda.cli.setup.detected_programs import (
    PROGRAM_NAMES,
    DetectedProgram,
    describe_searched_locations,
    detect_programs,
    format_programs,
)
from memoranda.cli.setup.first_search import search_own_history
from memoranda.cli.terminal_text import bold
from memoranda.integrations.hosts.settings_change import SettingsError, apply_changes

_EPILOG = """\b
Examples:
  memoranda setup                          shows what was found, and asks
  memoranda setup --yes                    imports and installs all of it
  memoranda setup --only claude-code --yes
  memoranda setup --dry-run
"""
_EXIT_INTERRUPTED = 130
_INTERRUPTED = (
    "\nStopped. What was imported and installed so far stays; 'memoranda setup' continues where this one stopped."
)


@click.command(epilog=_EPILOG)
@click.option("--yes", is_flag=True, help="Import and install everything that was found, without asking.")
@click.option("--dry-run", is_flag=True, help="Show what was found; change nothing.")
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    type=click.Choice(PROGRAM_NAMES),
    help="Only this program, such as claude-code. Can be repeated.",
)
@click.option("--no-import", is_flag=True, help="Import no conversations.")
@click.option("--no-install", is_flag=True, help="Do not change the settings of any program.")
@memory_options
def command(yes: bool, dry_run: bool, only: tuple[str, ...], no_import: bool, no_install: bool) -> None:
    """Find the agents on this machine, import your conversations with them, and give them memory.

    The command shows what it found and asks what you want. Without a terminal it changes nothing unless --yes is
    given. The files of the other programs are backed up before memory is installed; 'memoranda uninstall' removes it.
    It ends with a search over your own history.
    """
    invocation = Invocation.current()
    invocation.locate_home().refuse_if_foreign()
    programs = detect_programs(invocation, only=only, imports=not no_import, installs=not no_install)
    run = _SetupRun(invocation, programs)
    if not programs:
        text = describe_searched_locations(invocation, only)
        invocation.respond(text, run.data | {"message": text})
        return
    chosen = run.choose(yes=yes, dry_run=dry_run)
    if chosen is None:
        return
    try:
        run.apply(chosen)
    except KeyboardInterrupt:
        click.echo(_INTERRUPTED, err=True)
        sys.exit(_EXIT_INTERRUPTED)


class _SetupRun:
    """One run of the command; `data` is its JSON answer."""

    def __init__(self, invocation: Invocation, programs: Sequence[DetectedProgram]) -> None:
        self._invocation = invocation
        self._programs = programs
        self.data: dict[str, Any] = {
            "success": True,
            "applied": False,
            "found": [program.as_json() for program in programs],
        }

    def choose(self, *, yes: bool, dry_run: bool) -> list[DetectedProgram] | None:
        """Returns the programs that the user selects; None when the command only shows them."""
        with_work = [program for program in self._programs if program.has_work]
        text = format_programs(self._programs, "Found on this machine:")
        can_ask = not self._invocation.as_json and sys.stdin.isatty()
        if dry_run or not (yes or can_ask):
            hint = "Nothing was changed. Add --yes to do all of this, or --only NAME for one program."
            self._invocation.respond(f"{text}\n\n{hint}", self.data)
            return None
        self._say(text)
        if yes or not with_work:
            return with_work
        numbers = click.prompt(
            "\nWhich of them? Numbers with commas, all, or none",
            default="all",
            value_proc=lambda answer: parse_choice(answer, len(self._programs)),
        )
        return [self._programs[number - 1] for number in numbers if self._programs[number - 1].has_work]

    def apply(self, chosen: Sequence[DetectedProgram]) -> None:
        self._import([program for program in chosen if program.source is not None])
        failures = self._install([program for program in chosen if program.can_install])
        self._search()
        self.data |= {"success": not failures, "applied": True}
        if self._invocation.as_json:
            self._invocation.respond("", self.data)
        sys.exit(EXIT_REFUSED if failures else 0)

    def _import(self, programs: Sequence[DetectedProgram]) -> None:
        sources = [program.source for program in programs if program.source is not None]
        if not sources:
            return
        self._say("")
        summaries, self.data["imported"] = import_without_asking(self._invocation, sources)
        for program, summary in zip(programs, summaries, strict=True):
            self._say("\n".join(summary_lines(program.title, summary, done=True)))

    def _install(self, programs: Sequence[DetectedProgram]) -> int:
        """Installs memory into the programs, and returns how many failed."""
        failures = 0
        self.data["installed"] = results = []
        for program in programs:
            assert program.host is not None
            host, changes = program.host.host, program.host.changes
            result: dict[str, Any] = {"host": host.name, "files": [str(change.file) for change in changes]}
            results.append(result)
            try:
                apply_changes(changes, self._invocation.locate_home().root / "host-backups" / host.name)
            except (SettingsError, OSError) as error:
                failures += 1
                result["error"] = str(error)
                click.echo(f"Memory was not installed into {host.title}: {error}", err=True)
                continue
            result["then"] = host.next_step
            files = ", ".join(map(_shorten_home, result["files"]))
            self._say(f"\nInstalled memory into {host.title}: {files}\n  {host.next_step}")
        return failures

    def _search(self) -> None:
        with open_home(self._invocation) as memory:
            memory.sessions.index.catch_up()
            answer = search_own_history(memory.sessions, memory.config.recall)
        self.data["search"] = answer
        if answer is None:
            self._say("\nNo conversation to search yet. 'memoranda search WORDS' finds them when there are some.")
            return
        self._say("\n" + bold(f'A search over your own history: memoranda search "{answer["query"]}"'))
        self._say(format_search_answer(answer))

    def _say(self, text: str) -> None:
        if not self._invocation.as_json:
            click.echo(text)


def parse_choice(answer: str | Sequence[int], count: int) -> Sequence[int]:
    """Parses an answer such as "1, 3", "all" or "none" into numbers of the list."""
    if not isinstance(answer, str):
        return answer
    words = answer.replace(",", " ").lower().split()
    if words in (["all"], ["none"], ["0"]):
        return range(1, count + 1) if words == ["all"] else ()
    if words and all(word.isdecimal() and 1 <= int(word) <= count for word in words):
        return sorted({int(word) for word in words})
    raise click.BadParameter(f"Type numbers from 1 to {count} with commas, 'all' or 'none'.")


def _shorten_home(file: str) -> str:
    """Returns a path for people, with ~ for their home directory."""
    home = os.path.expanduser("~")
    return f"~{file.removeprefix(home)}" if file.startswith(f"{home}{os.sep}") else file
