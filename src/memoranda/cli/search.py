"""`memoranda search`: find past conversations and read the messages around each match."""

import sys
from typing import Any

import click

from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.opening import open_home
from memoranda.cli.sessions.naming import since_option, until_option
from memoranda.cli.text import bold, dim, marked, print_long, wrapped
from memoranda.recall.session_db import SessionDB
from memoranda.recall.tool import SessionSearchTool

_EPILOG = """\b
Examples:
  memoranda search deadlock
  memoranda search "how did we fix the build?" --since 30d
  memoranda search '"connection pool" NOT redis' --source cli --role user
  memoranda search 数据库 --why
"""
_LINE = 100


@click.command(epilog=_EPILOG)
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 10), default=5, show_default=True, help="How many conversations.")
@click.option("--source", multiple=True, help="Only from there: cli, telegram … Can be repeated.")
@click.option("--role", multiple=True, help="Only what these said: user, assistant, tool. Can be repeated.")
@click.option("--sort", type=click.Choice(["newest", "oldest"]), help="Order by time instead of by relevance.")
@click.option("--why", is_flag=True, help="Say which signals put each result there.")
@since_option
@until_option
@memory_options
def command(
    words: tuple[str, ...], limit: int, source: tuple[str, ...], role: tuple[str, ...], sort: str | None, why: bool,
    since: float | None, until: float | None,
) -> None:  # fmt: skip
    """Search every past conversation: words, "a phrase", AND OR NOT, ( ), prefix*, or a plain question."""
    invocation = Invocation.current()
    arguments = {"query": " ".join(words), "limit": limit, "source": list(source) or None, "sort": sort, "why": why,
                 "role_filter": list(role) or None, "since": since, "until": until}  # fmt: skip
    with open_home(invocation) as memory:
        db = memory.sessions
        _catch_up(db, invocation)
        answer = SessionSearchTool(lambda: db, memory.config.recall).call(arguments)
    if not answer["success"]:
        invocation.refuse(answer["error"], answer)
    if invocation.as_json:
        invocation.say("", answer)
    else:
        print_long(_show(answer))


def _catch_up(db: SessionDB, invocation: Invocation) -> None:
    """Bring the index up to date, and say so when it takes a while."""
    shown = False

    def progress(done: int, total: int) -> None:
        nonlocal shown
        if sys.stderr.isatty() and not invocation.as_json and total:
            shown = True
            click.echo(f"\rIndexing {done:,} of {total:,} messages", nl=False, err=True)

    db.index.catch_up(progress=progress)
    if shown:
        click.echo(err=True)


def _show(answer: dict[str, Any]) -> str:
    if not answer["results"]:
        return str(answer["message"]) + (f"\n{answer['note']}" if answer.get("note") else "")
    count = answer["sessions_matched"]
    head = f"{count:,} conversation{'' if count == 1 else 's'} ({answer['matched']})"
    lines = [dim(head + (f" · {answer['note']}" if answer.get("note") else "")), ""]
    for number, result in enumerate(answer["results"], start=1):
        lines += _result(number, result)
    if answer.get("cursor"):
        lines.append(dim(f"More matched: raise --limit above {answer['count']}, or say more."))
    return "\n".join(lines)


def _result(number: int, result: dict[str, Any]) -> list[str]:
    title = wrapped(result["title"] or "(no title)", 70)
    lines = [f"{number}. {bold(title)}", dim(f"   {result['when']} · {result['source']} · {result['session_id']}"),
             f"   {marked(wrapped(result['snippet']))}"]  # fmt: skip
    for message in result.get("messages", []):
        sign = "▸" if message.get("anchor") else " "
        text = wrapped(" ".join(message["content"].split()), _LINE)
        lines.append(f"   {sign} {message['role']:<9} {text if message.get('anchor') else dim(text)}")
    if result.get("summary"):
        lines.append(f"   {wrapped(result['summary'])}")
    if "why" in result:
        signals = ", ".join(f"{name} {value}" for name, value in result["why"].items())
        lines.append(dim(f"   why: {signals}"))
    return [*lines, ""]
