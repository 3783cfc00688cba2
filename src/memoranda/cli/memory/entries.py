"""`memoranda memory list`, `add`, `replace`, `remove`, `edit`, `reset` and `allow`."""

import sys
from collections.abc import Sequence
from dataclasses import replace as with_changes
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import get_args

import click

from memoranda.cli.context import EXIT_REFUSED, Invocation, memory_options
from memoranda.cli.memory.entry_numbers import number_to_handle
from memoranda.cli.memory.refusal_text import refusal_for_person
from memoranda.cli.open_home import open_curated_memory
from memoranda.errors import StorageError
from memoranda.home.config import editor_is_set
from memoranda.memory.curated.memory_file import ENTRY_DELIMITER, parse
from memoranda.memory.curated.operations import Add, MemoryRefusal, MemoryWriteResult, Operation, Remove, Replace
from memoranda.memory.curated.settings import FILE_NAMES, TARGETS, Target
from memoranda.memory.curated.store import MemoryStore, MemoryView
from memoranda.memory.curated.tool import describe
from memoranda.support.origin import PERSON

target_option = click.option(
    "--target", type=click.Choice(get_args(Target)), default="memory", show_default=True, help="The file to change."
)
_allow_option = click.option("--allow", multiple=True, metavar="FINDING", help="Accept a scanner finding in the text.")


@click.command("list")
@click.argument("target", type=click.Choice(TARGETS), required=False)
@memory_options
def list_entries(target: Target | None) -> None:
    """Show the entries, numbered, and how full each file is."""
    invocation = Invocation.current()
    store = open_curated_memory(invocation)
    texts, data, unreadable = [], {}, False
    for name in [target] if target else TARGETS:
        try:
            view = store.view(name)
            texts.append(format_entries(view))
            data[name] = _as_data(view)
        except StorageError as error:
            unreadable = True
            texts.append(f"{FILE_NAMES[name]}  {error}")
            data[name] = {"path": str(store.path(name)), "error": str(error)}
    invocation.respond("\n\n".join(texts), data)
    sys.exit(EXIT_REFUSED if unreadable else 0)


def format_entries(view: MemoryView) -> str:
    """Formats the entries of one file, numbered, and how full it is."""
    lines = [f"{FILE_NAMES[view.target]}  {view.usage}"]
    for number, entry in enumerate(view.entries, start=1):
        first, *rest = entry.visible_text.split("\n")
        lines += [f"{number:>3}  {first}", *(f"     {line}" for line in rest)]
    if not view.entries:
        lines.append("  (no entries yet)")
    return "\n".join(lines)


def _as_data(view: MemoryView) -> dict[str, object]:
    entries = [
        {"text": entry.visible_text, "handle": entry.handle, "findings": list(entry.findings)} for entry in view.entries
    ]
    return {"path": str(view.path), "used": view.used, "limit": view.limit, "entries": entries}


@click.command()
@click.argument("text")
@target_option
@_allow_option
@memory_options
def add(text: str, target: Target, allow: tuple[str, ...]) -> None:
    """Add an entry; the same as 'memoranda remember'. '-' reads it from standard input."""
    _apply(target, [Add(_read_text(text))], allow)


@click.command()
@click.argument("old_text")
@click.argument("text")
@target_option
@_allow_option
@memory_options
def replace(old_text: str, text: str, target: Target, allow: tuple[str, ...]) -> None:
    """Replace the entry that contains OLD_TEXT (or has it as its number or handle) with TEXT."""
    _apply(target, [Replace(_number_to_handle(target, old_text), _read_text(text))], allow)


@click.command()
@click.argument("old_text")
@target_option
@memory_options
def remove(old_text: str, target: Target) -> None:
    """Remove the entry that contains OLD_TEXT (or has it as its number or handle). Undo restores it."""
    _apply(target, [Remove(_number_to_handle(target, old_text))], ())


@click.command()
@click.argument("target", type=click.Choice(TARGETS), default="memory")
@_allow_option
@memory_options
def edit(target: Target, allow: tuple[str, ...]) -> None:
    """Open a file in your editor; what you save is checked like any other change.

    Blocked entries are shown in full here, so that you can decide about them.
    """
    invocation = Invocation.current()
    if not editor_is_set() and not sys.stdin.isatty():
        invocation.fail("There is no terminal to edit in. Set VISUAL or EDITOR to a program that edits a file.")
    store = open_curated_memory(invocation)
    view = store.view(target)
    before = ENTRY_DELIMITER.join(entry.text for entry in view.entries) + "\n"
    # The draft is our file and not the editor's, so that typed text is kept until it is saved.
    with NamedTemporaryFile("wb", prefix=f"{target}-edit-", suffix=".md", delete=False) as draft:
        draft.write(before.encode())
    try:
        outcome = _save_edit(store, view, Path(draft.name), frozenset(allow))
    except click.ClickException as error:
        outcome = MemoryRefusal(target, "invalid", f"{error.format_message()} Nothing was written.")
    if Path(draft.name).read_bytes() == before.encode():
        Path(draft.name).unlink()
        report(invocation, store, outcome)
        return
    if isinstance(outcome, MemoryRefusal):
        report(invocation, store, outcome, note=f" Your text is in {draft.name}.")
    else:
        Path(draft.name).unlink()
        report(invocation, store, outcome)


def _save_edit(store: MemoryStore, view: MemoryView, draft: Path, allow: frozenset[str]) -> MemoryWriteResult:
    click.edit(filename=str(draft))
    try:
        text = draft.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        return MemoryRefusal(
            view.target, "undecodable", f"What you saved is not UTF-8 text ({error}). Nothing was written."
        )
    return store.edit(view.target, view.fingerprint, parse(text), PERSON, allow)


@click.command()
@click.argument("target", type=click.Choice([*TARGETS, "all"]), default="all")
@click.option("--yes", is_flag=True, help="Do not ask.")
@memory_options
def reset(target: str, yes: bool) -> None:
    """Remove every entry of a file, or of both. The journal keeps them: undo restores them."""
    invocation = Invocation.current()
    if not yes:
        files = "both files" if target == "all" else FILE_NAMES["memory" if target == "memory" else "user"]
        click.confirm(f"Remove every entry of {files}?", abort=True, err=True)
    store = open_curated_memory(invocation)
    # "all" means the files that are in use; a file that the user names is reset in any case.
    targets = store.settings.targets() if target == "all" else [name for name in TARGETS if name == target]
    outcomes = [store.reset(name, PERSON) for name in targets]
    results = [describe(outcome, store) for outcome in outcomes]
    text = "\n".join(str(result.get("message") or result["error"]) for result in results)
    if all(result["success"] for result in results):
        invocation.respond(text, results)
    else:
        invocation.fail(text, {"results": results})


@click.command()
@click.argument("handle")
@click.option("--revoke", is_flag=True, help="Withdraw an earlier permission.")
@target_option
@memory_options
def allow(handle: str, revoke: bool, target: Target) -> None:
    """Accept the scanner findings in a blocked entry, so that it is shown again. The journal records it."""
    invocation = Invocation.current()
    store = open_curated_memory(invocation)
    if revoke:
        if store.revoke(target, handle, PERSON) is None:
            invocation.fail(f"No findings were allowed for {handle} in {FILE_NAMES[target]}.")
        invocation.respond(f"{handle} is scanned like any other entry again.", {"success": True, "handle": handle})
        return
    entry = store.allow(target, handle, PERSON)
    if entry is None:
        invocation.fail(f"{FILE_NAMES[target]} has no blocked entry {handle}. 'memoranda memory list' shows them.")
    text = f"Allowed {', '.join(entry.findings)} in {handle}; agents see it from their next session on."
    invocation.respond(text, {"success": True, "handle": handle, "allowed": list(entry.findings)})


def report(invocation: Invocation, store: MemoryStore, outcome: MemoryWriteResult, note: str = "") -> None:
    """Prints an outcome; a refusal ends the command with an error, to which `note` is added."""
    if isinstance(outcome, MemoryRefusal):
        data = describe(with_changes(outcome, message=outcome.message + note), store)
        backup = f" A copy of the file as it was found is at {outcome.backup}." if outcome.backup else ""
        matches = "".join(f"\n  - {match}" for match in data.get("matches", ()))
        invocation.fail(refusal_for_person(outcome) + note + backup + matches, data)
    data = describe(outcome, store)
    lines = [str(data["message"])]
    if data.get("changed"):
        lines.append(f"{data['usage']} · change {data['change']} · {data['stored_in']}")
        lines.append("The agent sees it from its next session on.")
    invocation.respond("\n".join(lines), data)


def _number_to_handle(target: Target, old_text: str) -> str:
    invocation = Invocation.current()
    return number_to_handle(invocation, open_curated_memory(invocation), (target,), old_text)


def _apply(target: Target, operations: Sequence[Operation], allow: tuple[str, ...]) -> None:
    invocation = Invocation.current()
    store = open_curated_memory(invocation)
    report(invocation, store, store.apply(target, operations, PERSON, frozenset(allow)))


def _read_text(argument: str) -> str:
    return sys.stdin.read() if argument == "-" else argument


COMMANDS = (list_entries, add, replace, remove, edit, reset, allow)
