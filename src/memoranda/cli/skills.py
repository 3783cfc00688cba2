"""`memoranda skills`: see and change the procedures that an agent follows."""

import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from memoranda.cli.confirmation import require_yes
from memoranda.cli.context import Invocation, memory_options, printable
from memoranda.cli.terminal_text import format_change
from memoranda.home.config import load
from memoranda.memory.skills import change_history
from memoranda.memory.skills.skill_text import SKILL_FILE, has_front_matter, with_front_matter
from memoranda.memory.skills.store import SkillStore
from memoranda.memory.skills.tool import describe, describe_log
from memoranda.memory.skills.write_result import SkillRefusal, SkillWriteResult
from memoranda.support.origin import PERSON

_EPILOG = """\b
Examples:
  memoranda skills list
  memoranda skills show release-a-version
  memoranda skills create release-a-version notes.md --description "How a version is released."
  memoranda skills log
  memoranda skills undo 3
"""


@click.group(epilog=_EPILOG)
@memory_options
def command() -> None:
    """See and change skills: procedures in skills/<name>/SKILL.md that the agent follows and improves.

    Every change is checked like the agent's own changes, and can be undone.
    """


def open_skills(invocation: Invocation) -> SkillStore:
    """Opens the skills of the command's home, profile and user."""
    home = invocation.locate_home()
    home.refuse_if_foreign()
    shared = () if invocation.user is None else (home.skills(),)
    return SkillStore(home.skills(invocation.user), load(home).skills, read_only_roots=shared)


@command.command("list")
@memory_options
def list_skills(invocation: Invocation) -> None:
    """Show every skill with its description, and the problems of those that cannot be used."""
    catalogue = open_skills(invocation).catalogue()
    lines = [f"{skill.name}\n    {printable(skill.description)}" for skill in catalogue.skills]
    lines += [f"! {printable(str(problem.path))}: {printable(problem.problem)}" for problem in catalogue.problems]
    data = {
        "skills": [
            {"name": skill.name, "description": skill.description, "path": str(skill.directory)}
            for skill in catalogue.skills
        ],
        "problems": [
            {"path": str(problem.path), "problem": problem.problem, "fatal": problem.fatal}
            for problem in catalogue.problems
        ],
    }
    invocation.respond("\n".join(lines) or "There are no skills yet.", data)


@command.command()
@click.argument("name")
@click.argument("file", default=SKILL_FILE)
@click.option("--withheld", "show_withheld", is_flag=True, help="Also print what is withheld from models.")
@memory_options
def show(invocation: Invocation, name: str, file: str, show_withheld: bool) -> None:
    """Print SKILL.md, or another FILE of a skill, as the agent sees it: suspicious passages are withheld."""
    view = open_skills(invocation).view(name, file)
    if isinstance(view, SkillRefusal):
        _refuse(invocation, view)
    lines = [_printable_lines(view.shown.text).rstrip("\n")]
    lines += ["", "Files:", *(f"  {printable(name)}" for name in view.files)] if view.files else []
    lines += ["", f"Withheld: {', '.join(view.shown.findings)}"] if view.shown.passages else []
    for passage in view.shown.passages if show_withheld else ():
        lines += ["", f"Line {passage.first_line + 1}:", _printable_lines(passage.text)]
    data: dict[str, Any] = {
        "name": name, "file": file, "path": str(view.skill.directory), "content": view.shown.text,
        "files": list(view.files), "withheld": list(view.shown.findings),
    }  # fmt: skip
    if show_withheld:
        passages = view.shown.passages
        data["withheld_passages"] = [{"findings": passage.findings, "text": passage.text} for passage in passages]
    invocation.respond("\n".join(lines), data)


@command.command()
@click.argument("name")
@click.argument("source", metavar="FILE")
@click.option("--description", default="", help="What the skill is for, if FILE has no front matter.")
@click.option("--allow", multiple=True, metavar="FINDING", help="Accept a scanner finding in the text.")
@memory_options
def create(invocation: Invocation, name: str, source: str, description: str, allow: tuple[str, ...]) -> None:
    """Create a skill from a Markdown file; '-' reads standard input."""
    try:
        content = sys.stdin.read() if source == "-" else Path(source).read_text("utf-8")
    except UnicodeDecodeError:
        invocation.fail(f"{source} is not UTF-8 text. Nothing was changed.")
    if description and not has_front_matter(content):
        content = with_front_matter(name, description, content)
    _report(invocation, open_skills(invocation).create(name, content, PERSON, frozenset(allow)))


@command.command()
@click.argument("name")
@click.argument("file", required=False)
@memory_options
def remove(invocation: Invocation, name: str, file: str | None) -> None:
    """Remove a skill, or one FILE of it. Undo restores it."""
    store = open_skills(invocation)
    _report(invocation, store.remove_file(name, file, PERSON) if file else store.delete(name, PERSON))


@command.command()
@click.argument("name")
@click.argument("file", default=SKILL_FILE)
@click.option("--revoke", is_flag=True, help="Withdraw an earlier permission.")
@memory_options
def allow(invocation: Invocation, name: str, file: str, revoke: bool) -> None:
    """Accept the scanner findings in a file of a skill, so that all of it is shown. The journal records it."""
    store = open_skills(invocation)
    if revoke:
        revoked = store.revoke(name, file, PERSON)
        if isinstance(revoked, SkillRefusal):
            _refuse(invocation, revoked)
        if not revoked:
            invocation.fail(f"No findings were allowed in {file} of {name}.")
        invocation.respond(f"{file} of {name} is scanned like any other file again.", {"success": True, "skill": name})
        return
    accepted = store.allow(name, file, PERSON)
    if isinstance(accepted, SkillRefusal):
        _refuse(invocation, accepted)
    text = f"Allowed {', '.join(accepted)} in {file} of {name}." if accepted else "Nothing in it is withheld."
    invocation.respond(text, {"success": True, "skill": name, "file": file, "allowed": list(accepted)})


@command.command()
@click.argument("name", required=False)
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many changes, newest first."
)
@memory_options
def log(invocation: Invocation, name: str | None, limit: int) -> None:
    """Show the changes: number, time, actor, session, and the text before and after."""
    changes = describe_log(open_skills(invocation), name, limit)
    lines: list[str] = []
    for change in changes:
        lines.append(format_change(change, printable(change["path"])))
        lines += [f"      - {printable(line)}" for line in change["before"].splitlines()]
        lines += [f"      + {printable(line)}" for line in change["after"].splitlines()]
    invocation.respond("\n".join(lines) or "No changes yet.", changes)


@command.command()
@click.argument("number", type=click.IntRange(min=1), required=False)
@memory_options
def undo(invocation: Invocation, number: int | None) -> None:
    """Undo change NUMBER (default: the latest that is not undone yet). An undo is a change too, and can be undone."""
    _report(invocation, change_history.undo(open_skills(invocation), number, PERSON))


@command.command()
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@memory_options
def purge(invocation: Invocation, yes: bool) -> None:
    """Delete the journal's history and all removed skills and files for good. The skills themselves stay."""
    if not yes:
        require_yes(invocation, "Delete the history of skills for good? This cannot be undone.")
    store = open_skills(invocation)
    purged = change_history.purge(store) if store.root.is_dir() else change_history.PurgedSkills(0, 0)
    text = f"Deleted {purged.changes} changes and {purged.archived} removed skills and files."
    invocation.respond(text, {"success": True, "changes": purged.changes, "archived": purged.archived})


def _report(invocation: Invocation, outcome: SkillWriteResult) -> None:
    if isinstance(outcome, SkillRefusal):
        _refuse(invocation, outcome)
    change = f"\nchange {outcome.change} · {outcome.stored_in}" if outcome.change is not None else ""
    invocation.respond(outcome.message + change, describe(outcome))


def _refuse(invocation: Invocation, refusal: SkillRefusal) -> NoReturn:
    invocation.fail(refusal.message, describe(refusal))


def _printable_lines(text: str) -> str:
    return "\n".join(printable(line.replace("\t", "    ")) for line in text.split("\n"))
