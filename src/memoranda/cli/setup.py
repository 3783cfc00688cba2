"""`memoranda setup`: finds the agents on this machine, imports their conversations and gives them memory.

At the end it searches the user's own history for a topic of a recent conversation, to show that search works.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from memoranda.cli.confirmation import fail_unanswered
from memoranda.cli.context import EXIT_INTERRUPTED, EXIT_REFUSED, Invocation, memory_options
from memoranda.cli.hosts.found_hosts import HostState, find_hosts
from memoranda.cli.imports.summary_text import summary_lines
from memoranda.cli.imports.workflow import FoundSource, find_all_sources, import_without_asking
from memoranda.cli.open_home import open_home
from memoranda.cli.retrieval.search import add_resume_commands, format_search_answer
from memoranda.cli.terminal_text import bold, terminal_line
from memoranda.home.session_db import SessionDB
from memoranda.importers.sources import SOURCES
from memoranda.integrations.hosts.plugin_settings import replaced_memory
from memoranda.integrations.hosts.settings_change import SettingsError, apply_changes
from memoranda.integrations.hosts.supported_hosts import HOSTS
from memoranda.search.settings import RecallSettings
from memoranda.search.tool import SessionSearchTool
from memoranda.support.lazy_dataclass import dataclass

# These are files that users download; they have no fixed directory on a machine.
_DOWNLOADS = frozenset({"chatgpt", "claude", "jsonl"})
_WITH_MEMORIES = frozenset({"hermes", "openclaw"})
PROGRAM_NAMES = sorted({*SOURCES, *HOSTS} - _DOWNLOADS)
_MAX_TOPICS = 8
_MAX_WORDS = 8
_MAX_HITS = 3
# Programs put tags, file paths and commands into first messages; none of them is a topic.
_NOT_A_TOPIC = re.compile(r"<[^>]*>|^\s*/\S+|https?://\S+|\[redacted:[^\]]*\]")
_WORD = re.compile(r"[^\W\d_][\w'-]*")
_OPERATORS = frozenset({"AND", "OR", "NOT", "NEAR"})
_MIN_WORDS = 2
_MIN_UNSPACED_CHARS = 4
_EPILOG = """\b
Examples:
  memoranda setup                          shows what was found, and asks
  memoranda setup --yes                    imports and installs all of it
  memoranda setup --only claude-code --yes
  memoranda setup --dry-run
"""
_INTERRUPTED = (
    "\nStopped. What was imported and installed so far stays; 'memoranda setup' continues where this one stopped."
)


@dataclass(frozen=True, slots=True)
class DetectedProgram:
    """A program on this machine: what its reader found, and whether it has memory; either may be missing."""

    name: str
    title: str
    source: FoundSource | None
    host: HostState | None

    @property
    def problem(self) -> str:
        """Why memory cannot be installed; "" if it can."""
        return "" if self.host is None else self.host.problem

    @property
    def can_install(self) -> bool:
        return self.host is not None and bool(self.host.changes)

    @property
    def has_work(self) -> bool:
        return self.source is not None or self.can_install

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "conversations": None if self.source is None else self.source.as_json(),
            "memory": None if self.host is None else self.host.state,
            "settings": [] if self.host is None else [str(change.file) for change in self.host.changes],
        }

    def describe(self) -> str:
        """Describes what setup would do for this program."""
        parts = []
        if self.source is not None:
            parts.append(f"import {self.source.description}")
        if self.problem:
            parts.append(f"cannot install: {self.problem}")
        elif self.can_install:
            parts.append("install memory")
        elif self.host is not None:
            parts.append("memory is installed")
        if self.source is not None and self.name in _WITH_MEMORIES:
            parts.append(f"'memoranda import {self.name}' also imports its memories and skills")
        return terminal_line("; ".join(parts))


def detect_programs(
    invocation: Invocation, *, only: Sequence[str] = (), imports: bool = True, installs: bool = True
) -> list[DetectedProgram]:
    """Returns the programs that are on this machine; `only` limits them to these names."""
    sources = {found.source.name: found for found in find_all_sources()} if imports else {}
    found = [item for item in find_hosts(invocation) if item.present] if installs else []
    # Another memory that the user selected is replaced only when the user names the program.
    hosts = {item.host.name: item for item in found if item.host.name in only or not replaced_memory(item.changes)}
    names = [name for name in dict.fromkeys([*hosts, *sources]) if not only or name in only]
    return [_program(name, sources.get(name), hosts.get(name)) for name in names]


def _program(name: str, source: FoundSource | None, host: HostState | None) -> DetectedProgram:
    title = host.host.title if host else source.source.program if source else name
    return DetectedProgram(name, title, source, host)


def format_programs(programs: Iterable[DetectedProgram], heading: str) -> str:
    """Lists the programs with numbers, and what would be done for each."""
    rows = list(programs)
    width = max(len(program.title) for program in rows)
    lines = [f"{i:>3}. {row.title:<{width}}  {row.describe()}" for i, row in enumerate(rows, start=1)]
    return "\n".join([bold(heading), *lines])


def describe_searched_locations(invocation: Invocation, only: Sequence[str]) -> str:
    """Describes what was searched for when nothing was found."""
    if only:
        return f"This machine has no {' or '.join(only)}. 'memoranda setup' shows which programs it has."
    readers = [source.program for source in SOURCES.values() if source.name not in _DOWNLOADS]
    hosts = [f"  {item.host.title}: {item.files[0]}" for item in find_hosts(invocation)]
    return "\n".join(
        [
            "No agent was found on this machine.",
            f"Looked for the conversations of {', '.join(readers)} where these programs keep them,",
            "and for the settings of:",
            *hosts,
            "For conversations in another directory: 'memoranda import NAME --source PATH'.",
            "'memoranda demo' shows memory and search at work without an agent.",
        ]
    )


def search_own_history(db: SessionDB, settings: RecallSettings) -> dict[str, Any] | None:
    """Returns the answer to a search for a recent topic, with the words in `query`; None without a usable topic.

    It prefers a topic of several conversations: a search that finds only its own conversation shows little.
    """
    tool = SessionSearchTool(lambda: db, settings)
    best: dict[str, Any] | None = None
    for topic in _recent_topics(db):
        answer = tool.call({"query": topic, "limit": _MAX_HITS})
        if not answer["success"] or not answer.get("results"):
            continue
        answer["query"] = topic
        if best is None or answer["sessions_matched"] > 1:
            best = answer
        if answer["sessions_matched"] > 1:
            break
    if best is not None:
        add_resume_commands(best, db)
    return best


def _recent_topics(db: SessionDB) -> Iterator[str]:
    rows = db.list_sessions_rich(limit=_MAX_TOPICS, order_by_last_active=True)
    topics = (find_topic(row["title"] or row["preview"] or "") for row in rows)
    return (topic for topic in topics if topic)


def find_topic(text: str) -> str:
    """Returns the first few words of a title or a message, without markup; "" when there are too few."""
    words = _WORD.findall(_NOT_A_TOPIC.sub(" ", text))[:_MAX_WORDS]
    # AND, OR and NOT would be operators of the query.
    topic = " ".join(word.lower() if word in _OPERATORS else word for word in words)
    # Chinese and Japanese do not separate words, so one run of characters is already a topic.
    is_unspaced = any(len(word) >= _MIN_UNSPACED_CHARS and not word.isascii() for word in words)
    return topic if len(words) >= _MIN_WORDS or is_unspaced else ""


@click.command(epilog=_EPILOG)
@click.option("-y", "--yes", is_flag=True, help="Import and install everything that was found, without asking.")
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
def command(
    invocation: Invocation, yes: bool, dry_run: bool, only: tuple[str, ...], no_import: bool, no_install: bool
) -> None:
    """Find the agents on this machine, import your conversations with them, and give them memory.

    The command shows what it found and asks what you want. Without a terminal it changes nothing unless --yes is
    given. The files of the other programs are backed up before memory is installed; 'memoranda uninstall' removes it.
    It ends with a search over your own history.
    """
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
        sys.exit(EXIT_INTERRUPTED)


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

    def choose(self, *, yes: bool, dry_run: bool) -> Sequence[DetectedProgram] | None:
        """Returns the programs that the user selects; None when the command only shows them."""
        with_work = [program for program in self._programs if program.has_work]
        text = format_programs(self._programs, "Found on this machine:")
        can_ask = not self._invocation.as_json and sys.stdin.isatty()
        if dry_run or not (yes or can_ask):
            hint = "Nothing was changed. Add --yes to do all of this, or --only NAME for one program."
            if with_work and not dry_run:
                self._say(f"{text}\n")
                fail_unanswered(self._invocation, hint, self.data)
            self._invocation.respond(f"{text}\n\n{hint}", self.data)
            return None
        self._say(text)
        if yes or not with_work:
            return self._programs
        numbers = click.prompt(
            "\nWhich of them? Numbers with commas, all, or none",
            default="all",
            value_proc=lambda answer: parse_choice(answer, len(self._programs)),
        )
        return [self._programs[number - 1] for number in numbers]

    def apply(self, chosen: Sequence[DetectedProgram]) -> None:
        self._import([program for program in chosen if program.source is not None])
        failures = self._install([program for program in chosen if program.can_install or program.problem])
        self._search()
        self._say_what_waits()
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
                if program.problem:
                    raise SettingsError(program.problem)
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

    def _say_what_waits(self) -> None:
        with open_home(self._invocation) as memory:
            self.data["waiting"] = waiting = len(memory.curated.proposals.all())
        if waiting:
            text = "change of memory waits" if waiting == 1 else "changes of memory wait"
            self._say(f"\n{waiting} {text} for your decision: memoranda memory pending")

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
