"""`memoranda curate`: what the curator would tidy up in memory, as a difference with a reason for each change."""

import click

from memoranda.cli.context import Invocation, memory_options, printable
from memoranda.cli.open_home import open_memory_of
from memoranda.cli.terminal_text import bold, dim
from memoranda.types import CurateAnswer, CuratedChange

_EPILOG = """\b
Examples:
  memoranda curate                  show what it would do
  memoranda curate --apply          do it; 'memoranda memory undo' takes it back
  memoranda curate --json
"""
_NOTHING = "Nothing to tidy up."


@click.command(epilog=_EPILOG)
@click.option("--apply", is_flag=True, help="Do it: one change, which one undo takes back.")
@memory_options
def command(invocation: Invocation, apply: bool) -> None:
    """Show what is certain enough to tidy up: said twice, contained, another value of a key, expired, or gone.

    Of a full memory also what was of least use. What leaves a file is kept as a note, and a note that was often of use
    comes back. What 'memoranda memory undo' takes back is not proposed again. No model is asked, unless curate.model
    names one.
    """
    with open_memory_of(invocation) as memory:
        answer = memory.curate(apply=apply)
    respond(invocation, answer, applied=apply)


def respond(invocation: Invocation, answer: CurateAnswer, *, applied: bool) -> None:
    """Shows what the curator would do or has done; a change that was refused ends the command with an error."""
    invocation.respond(_describe(answer, applied=applied), answer)
    if problem := answer.get("without_model"):
        click.echo(f"The model suggested nothing: {printable(problem)}", err=True)
    if refused := answer.get("refused"):
        invocation.fail("\n".join(refused))


def _describe(answer: CurateAnswer, *, applied: bool) -> str:
    if not answer["changes"]:
        return _NOTHING
    lines = ["\n".join(_lines(change)) for change in answer["changes"]]
    numbers = ", ".join(map(str, answer.get("applied", ())))
    last = f"Done as change {numbers}." if applied else "'memoranda curate --apply' does this."
    return "\n\n".join([*lines, f"{last} {dim('curate.mode is ' + answer['mode'] + '.')}"])


def _lines(change: CuratedChange) -> list[str]:
    gone = [text for text in change["before"] if text not in change["after"]]
    new = [text for text in change["after"] if text not in change["before"]]
    kept = [text for text in change["after"] if text in change["before"]]
    marked = [f"{sign} {printable(text)}" for sign, texts in (("-", gone), ("+", new), (" ", kept)) for text in texts]
    return [bold(f"{change['target']}: {change['rule']}"), f"  {change['reason']}", *(f"  {line}" for line in marked)]
