"""`memoranda recall`: answers a question from every part of memory at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from memoranda.app import Memory, open_memory
from memoranda.cli.context import Invocation, memory_options, printable
from memoranda.cli.filter_options import current_project, project_option
from memoranda.cli.open_home import open_home
from memoranda.cli.search import add_resume_commands, format_search_answer
from memoranda.cli.terminal_text import bold
from memoranda.curated.settings import FILE_NAMES, Target
from memoranda.errors import StorageError
from memoranda.recall.related_entries import entries_matching
from memoranda.recall.tool import SessionSearchTool
from memoranda.safety.fence import build_memory_context_block

_EPILOG = """\b
Examples:
  memoranda recall "which database do we use for staging?"
  memoranda recall --limit 1 --project this deadlock
  memoranda recall --fenced "how did we fix the build?"     for a prompt: a fenced block or nothing
  memoranda recall --json heron
"""
_NOTHING = "Nothing is known about that."
_MAX_CHARS = 8_000
# The length of the fence itself, with the final newline.
_FENCE_CHARS = len(build_memory_context_block("x"))


@dataclass(frozen=True, slots=True)
class RecallResult:
    """The answers of all parts of memory to one question."""

    entries: dict[Target, list[str]]
    recalled: str
    """The text that the external memory recalled."""
    search: dict[str, Any]
    """The answer of the search over past conversations."""

    @property
    def is_known(self) -> bool:
        return bool(any(self.entries.values()) or self.recalled or self.search["results"])


@click.command(epilog=_EPILOG)
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--limit", type=click.IntRange(1, 10), default=3, show_default=True, help="How many conversations to show."
)
@project_option
@click.option("--fenced", is_flag=True, help="Print one fenced block for a prompt, or nothing when nothing is known.")
@click.option(
    "--chars", type=click.IntRange(200), default=_MAX_CHARS, show_default=True, help="The maximum length of the block."
)
@memory_options
def command(words: tuple[str, ...], limit: int, project: str | None, fenced: bool, chars: int) -> None:
    """Ask memory: the notes, the profile, the external memory if there is one, and every past conversation.

    For conversations only, with filters, use 'memoranda search'; --fenced prints a block for a prompt.
    """
    invocation = Invocation.current()
    question = " ".join(words)
    if not question.strip():
        invocation.fail("The question is empty.")
    result = _ask(invocation, question, limit, project)
    if not result.search["success"]:
        invocation.fail(result.search["error"], result.search)
    if invocation.as_json:
        data = {"success": True, "known": result.is_known, "noted": result.entries, "recalled": result.recalled}
        invocation.respond("", data | {"search": result.search})
    elif fenced:
        block = build_memory_context_block(_format_for_model(result), max_chars=chars - _FENCE_CHARS)
        click.echo(block, nl=bool(block))
    else:
        click.echo(_format_for_person(result) if result.is_known else _NOTHING)


def _ask(invocation: Invocation, question: str, limit: int, project: str | None) -> RecallResult:
    with open_memory(invocation.home, profile=invocation.profile, user=invocation.user) as memory:
        entries = {target: _related_entries(memory, target, question) for target in memory.config.curated.targets()}
        recalled = _ask_provider(memory, question)
    # Opened separately, so that searching a home without conversations creates no database there.
    with open_home(invocation) as memory:
        db = memory.sessions
        tool = SessionSearchTool(lambda: db, memory.config.recall, current_project=current_project)
        answer = tool.call({"query": question, "limit": limit, "project": project})
        add_resume_commands(answer, db)
    return RecallResult(entries, recalled, answer)


def _related_entries(memory: Memory, target: Target, question: str) -> list[str]:
    try:
        return entries_matching(question, memory.entries(target))
    except StorageError as error:
        click.echo(f"{FILE_NAMES[target]} was skipped: {error}", err=True)
        return []


def _ask_provider(memory: Memory, question: str) -> str:
    """Returns the text that the provider recalls, without the fence. The provider is not notified of a session."""
    if not memory.config.providers:
        return ""
    session = memory.session(source="cli")
    block = session.external.begin_turn(question, session.id, lambda: 1)
    session.external.close()
    return block.partition("\n\n")[2].removesuffix("\n</memory-context>").strip()


def _format_for_person(result: RecallResult) -> str:
    sections = [_format_section(FILE_NAMES[target], entries) for target, entries in result.entries.items() if entries]
    if result.recalled:
        sections.append(_format_section("External memory", result.recalled.split("\n")))
    if result.search["results"]:
        sections.append(format_search_answer(result.search))
    return "\n\n".join(sections).rstrip()


def _format_section(title: str, entries: Sequence[str]) -> str:
    lines = [printable(line) for entry in entries for line in entry.split("\n")]
    return "\n".join([bold(title), *(f"  {line}" for line in lines)])


def _format_for_model(result: RecallResult) -> str:
    """Returns the entries first, then the messages of each conversation with its time and id."""
    lines = [f"{FILE_NAMES[target]}: {entry}" for target, entries in result.entries.items() for entry in entries]
    lines += [result.recalled] if result.recalled else []
    for hit in result.search["results"]:
        lines.append(f"\n{hit['when']}, {hit['title'] or 'a conversation'} ({hit['session_id']}):")
        messages = hit.get("messages") or [{"role": "", "content": hit["snippet"]}]
        lines += [f"{message['role']}: {message['content']}" for message in messages]
    return "\n".join(lines).strip()
