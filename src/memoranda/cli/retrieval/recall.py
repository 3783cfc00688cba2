"""`memoranda recall`: answers a question from every part of memory at once."""

import time
from collections.abc import Sequence

import click

from memoranda.api.memory import Memory, open_memory
from memoranda.api.project_memory import find_target
from memoranda.api.recall import MAX_BLOCK_CHARS, RecallResult, ask_provider, last_work, log_recall, related_entries
from memoranda.cli.context import Invocation, memory_options, printable
from memoranda.cli.filter_options import current_project, project_option
from memoranda.cli.open_home import open_home
from memoranda.cli.retrieval.recent import describe_work
from memoranda.cli.retrieval.search import add_resume_commands, format_search_answer, query_of
from memoranda.cli.terminal_text import bold
from memoranda.errors import SessionError
from memoranda.memory.curated.settings import file_name, project_in, project_target
from memoranda.search.guidance import NO_PROJECT
from memoranda.search.tool import SessionSearchTool

_EPILOG = """\b
Examples:
  memoranda recall "which database do we use for staging?"
  memoranda recall --limit 1 --project this deadlock
  memoranda recall --fenced "how did we fix the build?"     for a prompt: a fenced block or nothing
  memoranda recall --json heron
"""
_NOTHING = "Nothing is known about that."


@click.command(epilog=_EPILOG)
@click.argument("words", nargs=-1, required=True)
@click.option(
    "-n", "--limit", type=click.IntRange(1, 10), default=3, show_default=True, help="How many conversations to show."
)
@project_option
@click.option("--fenced", is_flag=True, help="Print one fenced block for a prompt, or nothing when nothing is known.")
@click.option(
    "--chars",
    type=click.IntRange(200),
    default=MAX_BLOCK_CHARS,
    show_default=True,
    help="The maximum length of the block.",
)
@memory_options
def command(
    invocation: Invocation, words: tuple[str, ...], limit: int, project: str | None, fenced: bool, chars: int
) -> None:
    """Ask memory: notes, profile, the project's memory, external memory if there is one, and every past conversation.

    For conversations only, with filters, use 'memoranda search'; --fenced prints a block for a prompt.
    """
    question = query_of(invocation, words)
    print_result(invocation, _ask(invocation, question, limit, project, is_for_prompt=fenced), fenced, chars)


def print_result(invocation: Invocation, result: RecallResult, fenced: bool, chars: int) -> None:
    """Prints what is known: for a person, as JSON, or `fenced` for a prompt with at most `chars` characters."""
    if not result.search["success"]:
        invocation.fail(result.search["error"], result.search)
    if invocation.as_json:
        data = {"success": True, "known": result.is_known, "noted": result.entries, "recalled": result.recalled}
        recent = result.recent["conversations"] if result.recent else []
        invocation.respond("", data | {"search": result.search, "recent": recent})
    elif fenced:
        block = result.block(chars)
        click.echo(block, nl=bool(block))
    else:
        nothing = NO_PROJECT if result.search.get("message") == NO_PROJECT else _NOTHING
        click.echo(_format_for_person(result) if result.is_known else nothing)


def _ask(
    invocation: Invocation, question: str, limit: int, project: str | None, *, is_for_prompt: bool
) -> RecallResult:
    began = time.time()
    with open_memory(invocation.home, profile=invocation.profile, user=invocation.user) as memory:
        memory.curated.use_project(_find_project(memory, project))
        entries, skipped = related_entries(memory, question)
        recalled = ask_provider(memory, question)
    for problem in skipped:
        click.echo(problem, err=True)
    # Opened separately, so that searching a home without conversations creates no database there.
    with open_home(invocation) as memory:
        db = memory.sessions
        tool = SessionSearchTool(lambda: db, memory.config.recall, current_project=current_project)
        answer = tool.call({"query": question, "limit": limit, "project": project})
        add_resume_commands(answer, db)
        result = RecallResult(entries, recalled, answer, recent=last_work(memory, question, project))
        if is_for_prompt and answer["success"]:
            log_recall(memory, question, result, began, source="cli")
    return result


def _find_project(memory: Memory, name: str | None) -> str | None:
    """The project whose memory is asked: the one that was named, or that of this directory."""
    if name is None or name.strip().lower() == "this":
        return current_project()
    try:
        return project_in(find_target(memory, project_target(name)))
    except SessionError:
        # The search says that it is unknown.
        return None


def _format_for_person(result: RecallResult) -> str:
    sections = [describe_work(work) for work in result.recent["conversations"]] if result.recent else []
    sections += [_format_section(file_name(target), entries) for target, entries in result.entries.items() if entries]
    if result.recalled:
        sections.append(_format_section("External memory", result.recalled.split("\n")))
    if result.search["results"]:
        sections.append(format_search_answer(result.search))
    return "\n\n".join(sections).rstrip()


def _format_section(title: str, entries: Sequence[str]) -> str:
    lines = [printable(line) for entry in entries for line in entry.split("\n")]
    return "\n".join([bold(title), *(f"  {line}" for line in lines)])
