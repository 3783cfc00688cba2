"""`memoranda recall`: everything that is known about a question, from every part of memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from memoranda.app import Memory, open_memory
from memoranda.cli.context import Invocation, memory_options, printable
from memoranda.cli.filter_options import current_project, project_option
from memoranda.cli.open_home import open_home
from memoranda.cli.search import format_search_answer
from memoranda.cli.terminal_text import bold
from memoranda.curated.settings import FILE_NAMES, Target
from memoranda.errors import StorageError
from memoranda.importers.resume_command import resume_command
from memoranda.recall.related_entries import entries_matching
from memoranda.recall.tool import SessionSearchTool
from memoranda.safety.fence import build_memory_context_block

_EPILOG = """\b
Examples:
  memoranda recall "which database do we use for staging?"
  memoranda recall --limit 1 --project this deadlock
  memoranda recall --fenced "how did we fix the build?"     for a prompt: fenced, or nothing at all
  memoranda recall --json heron
"""
_NOTHING = "Nothing is known about that."
_MOST_CHARS = 8_000
# What the fence itself takes, with the end of the line.
_FENCE = len(build_memory_context_block("x"))


@dataclass(frozen=True, slots=True)
class RecallResult:
    """What the parts of memory know about one question."""

    noted: dict[Target, list[str]]
    recalled: str
    """What the external memory recalled."""
    answer: dict[str, Any]
    """The past conversations that search found."""

    @property
    def anything(self) -> bool:
        return bool(any(self.noted.values()) or self.recalled or self.answer["results"])


@click.command(epilog=_EPILOG)
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 10), default=3, show_default=True, help="How many conversations.")
@project_option
@click.option("--fenced", is_flag=True, help="Print one block for a prompt, or nothing when nothing is known.")
@click.option("--chars", type=click.IntRange(200), default=_MOST_CHARS, show_default=True,
              help="How long the block may be.")  # fmt: skip
@memory_options
def command(words: tuple[str, ...], limit: int, project: str | None, fenced: bool, chars: int) -> None:
    """Ask memory: the notes and the profile, the external memory if there is one, and every past conversation."""
    invocation = Invocation.current()
    question = " ".join(words)
    if not question.strip():
        invocation.fail("Say what you want to know.")
    known = _ask(invocation, question, limit, project)
    if not known.answer["success"]:
        invocation.fail(known.answer["error"], known.answer)
    if invocation.as_json:
        data = {"success": True, "known": known.anything, "noted": known.noted, "recalled": known.recalled}
        invocation.respond("", data | {"search": known.answer})
    elif fenced:
        block = build_memory_context_block(_as_text(known), max_chars=chars - _FENCE)
        click.echo(block, nl=bool(block))
    else:
        click.echo(_shown(known) if known.anything else _NOTHING)


def _ask(invocation: Invocation, question: str, limit: int, project: str | None) -> RecallResult:
    with open_memory(invocation.home, profile=invocation.profile, user=invocation.user) as memory:
        noted = {target: _noted(memory, target, question) for target in memory.config.curated.targets()}
        recalled = _recalled(memory, question)
    # Apart, because looking for conversations in a home that has none leaves no trace there.
    with open_home(invocation) as memory:
        db = memory.sessions
        tool = SessionSearchTool(lambda: db, memory.config.recall, here=current_project)
        answer = tool.call({"query": question, "limit": limit, "project": project})
        for result in answer.get("results", ()):
            if command := resume_command(db.get_session(result["session_id"]) or {}):
                result["resume"] = command
    return RecallResult(noted, recalled, answer)


def _noted(memory: Memory, target: Target, question: str) -> list[str]:
    try:
        return entries_matching(question, memory.entries(target))
    except StorageError as error:
        click.echo(f"{FILE_NAMES[target]} is left out: {error}", err=True)
        return []


def _recalled(memory: Memory, question: str) -> str:
    """What the external memory has to say, without its fence; it hears of no session, because none takes place."""
    if not memory.config.provider:
        return ""
    session = memory.session(source="cli")
    block = session.external.begin_turn(question, session.id)
    session.external.close()
    return block.partition("\n\n")[2].removesuffix("\n</memory-context>").strip()


def _shown(known: RecallResult) -> str:
    """For a person."""
    parts = [_section(FILE_NAMES[target], entries) for target, entries in known.noted.items() if entries]
    if known.recalled:
        parts.append(_section("External memory", known.recalled.split("\n")))
    if known.answer["results"]:
        parts.append(format_search_answer(known.answer))
    return "\n\n".join(parts).rstrip()


def _section(title: str, entries: Sequence[str]) -> str:
    lines = [printable(line) for entry in entries for line in entry.split("\n")]
    return "\n".join([bold(title), *(f"  {line}" for line in lines)])


def _as_text(known: RecallResult) -> str:
    """For a model: the facts first, then what was said, with where and when."""
    lines = [f"{FILE_NAMES[target]}: {entry}" for target, entries in known.noted.items() for entry in entries]
    lines += [known.recalled] if known.recalled else []
    for result in known.answer["results"]:
        lines.append(f"\n{result['when']}, {result['title'] or 'a conversation'} ({result['session_id']}):")
        said = result.get("messages") or [{"role": "", "content": result["snippet"]}]
        lines += [f"{each['role']}: {each['content']}" for each in said]
    return "\n".join(lines).strip()
