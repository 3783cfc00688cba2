"""`memoranda search`: find past conversations and read the messages around each match."""

import shutil
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any
from unicodedata import east_asian_width

import click

from memoranda.api.memory import open_memory
from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.filter_options import (
    current_project,
    describe_known_projects,
    search_filter_options,
)
from memoranda.cli.open_home import open_home
from memoranda.cli.retrieval.recent import describe_work
from memoranda.cli.terminal_text import (
    ProgressLine,
    bold,
    dim,
    highlight_matches,
    resume_line,
    terminal_line,
    to_local_time,
)
from memoranda.home.session_db import SessionDB
from memoranda.importers.sources import resume_command
from memoranda.memory.curated.settings import ITEMS, NOTES, file_name
from memoranda.search.continue_prompts import asks_what_was_done
from memoranda.search.guidance import NO_PROJECT, SOME_WORDS
from memoranda.search.query import parse
from memoranda.search.request import MAX_LISTED, search_pages
from memoranda.search.tool import SessionSearchTool
from memoranda.support.projects import project_name
from memoranda.support.tool import InvalidArgumentsError, tool_refusal
from memoranda.types import RecentWork

_EPILOG = """\b
Examples:
  memoranda search deadlock
  memoranda search "how did we fix the build?" --since 30d
  memoranda search '"connection pool" NOT redis' --source cli --role user
  memoranda search migration --project this
  memoranda search 数据库 --why
"""

# Lines of the message that matches, and of each message around it.
_MATCH_LINES = 5
_NEIGHBOUR_LINES = 2
_MESSAGE_INDENT = 15


@click.command(epilog=_EPILOG)
@click.argument("words", nargs=-1, required=True)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, MAX_LISTED),
    default=5,
    show_default=True,
    help="How many conversations to show.",
)
@click.option("--offset", "cursor", type=click.IntRange(0), default=0, help="Skip this many first.")
@click.option("--sort", type=click.Choice(["newest", "oldest"]), help="Order by time instead of by relevance.")
@click.option(
    "--summary/--no-summary",
    default=None,
    help="Let a model summarize each conversation for this query; search.summarize does so always.",
)
@click.option(
    "--expand", is_flag=True, help="Let a model suggest further words to search for; search.expand does so always."
)
@click.option("--why", is_flag=True, help="Show the signals that ranked each result.")
@search_filter_options
@memory_options
def command(
    invocation: Invocation, words: tuple[str, ...], limit: int, summary: bool | None, expand: bool, **options: Any
) -> None:
    """Search every past conversation: words, "a phrase", AND OR NOT, ( ), prefix*, or a plain question."""
    query = query_of(invocation, words)
    with open_home(invocation) as memory:
        if expand:
            memory.services.expand_searches()
        db = memory.sessions
        _catch_up(db, invocation)
        wants_summaries = memory.config.recall.summarize if summary is None else summary
        tool = SessionSearchTool(
            lambda: db,
            memory.config.recall,
            summarize=memory.services.summarizer(memory.user) if wants_summaries else None,
            current_project=current_project,
        )
        searched_files = db.index.files
        answer = _answer(tool, {"query": query, **options}, limit)
        if answer.get("count") == 0:
            db.index.check()
            if db.index.files != searched_files:
                # The index was damaged and is being rebuilt, so the first answer may have missed something.
                _catch_up(db, invocation)
                answer = _answer(tool, {"query": query, **options}, limit)
        add_resume_commands(answer, db)
        others = describe_known_projects(db) if answer.get("message") == NO_PROJECT else ""
        # Its words match nothing that was said then. With filters or an order, it is searched for like any other query.
        latest: Sequence[RecentWork] = ()
        if asks_what_was_done(query) and not any(options.values()):
            from memoranda.api.recent import recent  # noqa: PLC0415

            latest = recent(memory.services, memory.user, None, 1, query)["conversations"]
    if not answer["success"]:
        invocation.fail(answer["error"], answer)
    if invocation.as_json:
        invocation.respond("", answer)
    else:
        last = [f"{describe_work(work)}\n'memoranda recent' shows more. By its words:\n" for work in latest]
        saved = "" if answer["count"] else _describe_entries(invocation, query)
        click.echo("\n".join(filter(None, (*last, format_search_answer(answer), others, saved))))


def _describe_entries(invocation: Invocation, query: str) -> str:
    """What curated memory has on a query that no conversation answers."""
    with open_memory(invocation.home, profile=invocation.profile, user=invocation.user) as memory:
        if not memory.home.memories(memory.user).is_dir():
            return ""
        from memoranda.api.recall import related_entries  # noqa: PLC0415

        memory.curated.use_project(current_project())
        entries, skipped = related_entries(memory, query)
    saved = [(target, entry) for target in entries if target not in (NOTES, ITEMS) for entry in entries[target]]
    lines = [terminal_line(f"{file_name(target)}: {entry}") for target, entry in saved]
    return "\n".join([*skipped, *(["Saved memory has:"] if lines else []), *(f"  {line}" for line in lines)])


def query_of(invocation: Invocation, words: tuple[str, ...]) -> str:
    """Returns the query that was typed; ends the command if it has no word."""
    query = " ".join(words)
    if not parse(query).parts:
        invocation.fail("That has no word to look for. 'memoranda sessions list' shows the latest conversations.")
    return query


def _answer(tool: SessionSearchTool, arguments: Mapping[str, Any], limit: int) -> dict[str, Any]:
    try:
        return search_pages(tool.answer, tool.read(arguments), limit)
    except InvalidArgumentsError as error:
        return tool_refusal("invalid", str(error))


def add_resume_commands(answer: dict[str, Any], db: SessionDB) -> None:
    """Adds the command that resumes a conversation in the program it came from."""
    for result in answer.get("results", ()):
        if command := resume_command(db.get_session(result["session_id"]) or {}):
            result["resume"] = command


def _catch_up(db: SessionDB, invocation: Invocation) -> None:
    """Updates the index, with progress on a terminal when that takes a while."""
    with ProgressLine(visible=not invocation.as_json) as line:
        db.index.catch_up(progress=lambda done, total: line.update(f"Indexing {done:,} of {total:,} messages"))


def format_search_answer(answer: Mapping[str, Any]) -> str:
    """Formats the answer of a search for a person."""
    why = [dim(_format_ranking(answer["why"]))] if "why" in answer else []
    beside = [line for name in ("notes", "items") for found in answer.get(name, ()) for line in _format_item(found)]
    if not answer["results"]:
        texts = (terminal_line(answer[field]) for field in ("message", "note") if answer.get(field))
        return "\n".join([*texts, *why, *([""] if beside else []), *beside])
    count = answer["sessions_matched"]
    how = _matched_for_person(answer["matched"])
    head = f"{count:,} session{'' if count == 1 else 's'} match{'es' if count == 1 else ''} ({how})"
    if (others := len(answer["results"]) - count) > 0:
        # They were found by words that are related to those of the question.
        head += f", and {others:,} more {'is' if others == 1 else 'are'} related"
    head += f" · {answer['confidence']}" if "confidence" in answer else ""
    lines = [dim(terminal_line(head + (f" · {answer['note']}" if answer.get("note") else ""))), *why, "", *beside]
    for number, result in enumerate(answer["results"], start=1):
        lines += _format_result(number, result)
    if answer.get("cursor"):
        lines.append(dim(f"More: --offset {answer['cursor']}"))
    return "\n".join(lines)


def _matched_for_person(matched: str) -> str:
    """Joins the overlapping pairs of characters, by which Chinese and Japanese are searched, into words."""
    start, label, words = matched.rpartition(SOME_WORDS)
    joined: list[str] = []
    for word in words.split(", "):
        if joined and len(word) == 2 and not word.isascii() and joined[-1].endswith(word[0]):
            joined[-1] += word[1]
        else:
            joined.append(word)
    return start + label + ", ".join(joined)


def _format_ranking(why: dict[str, Any]) -> str:
    """Describes how the results are ordered, which terms were searched, and with which filters."""
    filters = [f"{name.replace('_', ' ')} {_join_values(value)}" for name, value in why["filters"].items()]
    parts = [why["order"], f"searched for: {_join_values(why['terms']) or 'nothing'}"]
    if why.get("expanded"):
        parts.append(f"and for what a model suggests: {_join_values(why['expanded'])}")
    return terminal_line("why: " + "; ".join([*parts, f"filters: {', '.join(filters) or 'none'}"]))


def _join_values(value: Any) -> str:
    return " | ".join(map(str, value)) if isinstance(value, list) else str(value)


def _format_result(number: int, result: dict[str, Any]) -> list[str]:
    title = terminal_line(result["title"] or result.get("preview") or "(no title)", 70)
    parts = (
        to_local_time(result["when"]),
        result["source"],
        result["session_id"],
        project_name(result.get("project")),
        result.get("confidence"),
    )
    facts = terminal_line(" · ".join(part for part in parts if part))
    lines = [
        f"{number}. {bold(title)}",
        dim(f"   {facts}"),
        f"   {highlight_matches(terminal_line(result['snippet']))}",
    ]
    if result.get("asked"):
        lines.append(dim(f"   asked in {result['asked']:,} conversations, shown as one"))
    if result.get("repeated"):
        lines.append(dim(f"   repeated in {result['repeated']:,} later conversation{'s'[: result['repeated'] > 1]}"))
    for message in result.get("messages", []):
        lines += _format_message(message)
    if result.get("summary"):
        lines += textwrap.wrap(
            terminal_line(result["summary"]),
            max(40, shutil.get_terminal_size().columns - 1),
            initial_indent="   ",
            subsequent_indent="   ",
        )
    if result.get("resume"):
        lines.append(f"   {resume_line(result['resume'])}")
    if "why" in result:
        signals = ", ".join(f"{name} {value}" for name, value in result["why"].items())
        lines.append(dim(f"   why: {signals}"))
    return [*lines, ""]


def _format_item(found: Mapping[str, Any]) -> list[str]:
    """Formats a note or an item of a program: where it is, and its text."""
    named = "/".join((*found.get("namespace", ()), found.get("key", "")))
    place = f"note beside {found['beside']}, {found['noted']}" if "noted" in found else f"item {named}"
    place += f", replaced {found['replaced']}" if "replaced" in found else ""
    return [dim(terminal_line(place)), f"   {terminal_line(found['text'])}", ""]


def _format_message(message: dict[str, Any]) -> list[str]:
    """Formats a message around a match: a few lines of the match itself, fewer of its neighbours."""
    is_match = message.get("anchor")
    width = max(40, shutil.get_terminal_size().columns - _MESSAGE_INDENT - 1)
    text = " ".join(message["content"].split())
    # Characters of some scripts take two columns.
    columns = sum(2 if east_asian_width(character) in "WF" else 1 for character in text)
    width = max(20, width * len(text) // max(columns, 1))
    shown = terminal_line(text, width * (_MATCH_LINES if is_match else _NEIGHBOUR_LINES))
    first, *rest = textwrap.wrap(shown, width) or [""]
    head = f"   {'▸' if is_match else ' '} {terminal_line(message['role']):<9} "
    style = str if is_match else dim
    return [head + style(first), *(" " * _MESSAGE_INDENT + style(line) for line in rest)]
