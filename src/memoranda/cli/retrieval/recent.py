"""`memoranda recent`: what was going on, as a prompt that asks to continue gets it."""

import click

from memoranda.cli.context import Invocation, memory_options, printable
from memoranda.cli.filter_options import describe_known_projects, project_option
from memoranda.cli.open_home import open_home
from memoranda.cli.terminal_text import bold, local_time, resume_line
from memoranda.search.guidance import NO_PROJECT
from memoranda.support.projects import project_name
from memoranda.types import RecentAnswer, RecentWork

_EPILOG = """\b
Examples:
  memoranda recent
  memoranda recent --project this
  memoranda recent --fenced                what a prompt that asks to continue gets
"""
NOTHING = "There are no conversations yet."


@click.command(epilog=_EPILOG)
@click.option("-n", "--limit", type=click.IntRange(1, 20), default=3, show_default=True, help="How many to show.")
@click.option("--fenced", is_flag=True, help="Print the block that a prompt gets, or nothing.")
@project_option
@memory_options
def command(invocation: Invocation, limit: int, fenced: bool, project: str | None) -> None:
    """See what was going on: when, in which agent, about what, how it ended, open tasks, and how to resume."""
    with open_home(invocation) as memory:
        answer = memory.recent(project, limit=limit)
        found = project is None or bool(answer["conversations"])
        nothing = NOTHING if found else f"{NO_PROJECT} {describe_known_projects(memory.sessions)}".strip()
    respond(invocation, answer, fenced=fenced, nothing=nothing)


def respond(invocation: Invocation, answer: RecentAnswer, *, fenced: bool, nothing: str) -> None:
    """Shows the conversations, or the block that a prompt gets; a person reads `nothing` if there are none."""
    if invocation.as_json:
        invocation.respond("", {**answer})
    elif fenced:
        click.echo(answer["text"], nl=bool(answer["text"]))
    else:
        click.echo("\n\n".join(map(describe_work, answer["conversations"])) or nothing)


def describe_work(work: RecentWork) -> str:
    """Describes one conversation for a person."""
    place = f" in {project_name(work['project'])}" if work["project"] else ""
    lines = [bold(printable(f"{local_time(work['last_active'])}  {work['agent']}{place}  {work['session_id']}"))]
    lines += [f"  about: {work['about']}"] if work["about"] else []
    lines += [f"  asked: {work['asked']}", f"  ended: {work['ended'] or 'without an answer'}"]
    lines += [f"  open:  {task}" for task in work["open_tasks"]]
    lines += [f"  {resume_line(work['resume'])}"] if work["resume"] else []
    return "\n".join([lines[0], *map(printable, lines[1:])])
