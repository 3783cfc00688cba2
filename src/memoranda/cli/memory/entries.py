"""`memoranda remember`, and `memoranda memory list`, `add`, `replace`, `remove`, `edit`, `reset` and `allow`.

A person uses commands instead of tool arguments, so refusals are reworded, and the number of an entry in the list may
stand for a part of its text.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace as with_changes
from pathlib import Path

import click

from memoranda.cli.confirmation import ask, can_ask, require_yes
from memoranda.cli.context import EXIT_REFUSED, Invocation, memory_options, printable
from memoranda.cli.open_home import open_memory_of
from memoranda.errors import SessionError, StorageError
from memoranda.home.config import editor_is_set
from memoranda.memory.curated import guidance
from memoranda.memory.curated.entry_scanner import ScannedEntry
from memoranda.memory.curated.facts import EntryFacts
from memoranda.memory.curated.memory_file import ENTRY_DELIMITER, parse
from memoranda.memory.curated.operations import (
    Add,
    MemoryReceipt,
    MemoryRefusal,
    MemoryWriteResult,
    Operation,
    Put,
    Remove,
    Replace,
    locate,
)
from memoranda.memory.curated.person_changes import allow_findings, edit_file, empty_file, revoke_findings
from memoranda.memory.curated.refusals import empty
from memoranda.memory.curated.settings import (
    NOTES,
    PROJECT,
    TARGETS,
    Target,
    file_name,
    is_project,
    project_in,
    project_target,
)
from memoranda.memory.curated.store import MemoryStore, MemoryView
from memoranda.memory.curated.tool import describe
from memoranda.support.canonical_text import canonical
from memoranda.support.origin import PERSON, utc_time

_TARGETS = (*TARGETS, PROJECT)
_target_option = click.option(
    "-t", "--target", type=click.Choice(_TARGETS), default="memory", show_default=True,
    help="The agent's notes, the profile of the user, or the project of this directory.",
)  # fmt: skip
_target_or_notes_option = click.option(
    "-t", "--target", type=click.Choice([*_TARGETS, NOTES]), default="memory", show_default=True,
    help="The agent's notes, the profile of the user, the project of this directory, or what 'list notes' shows.",
)  # fmt: skip
project_option = click.option(
    "-p",
    "--project",
    default="",
    metavar="NAME",
    help='The memory of a project, instead of --target: its name, or "this".',
)


def target_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that name a memory."""
    return _target_option(project_option(command))


_allow_option = click.option("--allow", multiple=True, metavar="FINDING", help="Accept a scanner finding in the text.")
_until_option = click.option(
    "--until", default="", metavar="DAY", help="The last day on which it is true: 2027-01-31, 2w, or never."
)


def _require_name(context: click.Context, parameter: click.Parameter, value: str | None) -> str:
    if value is not None and not value.strip():
        raise click.BadParameter("a key needs a name.")
    return value or ""


_key_option = click.option(
    "--key", metavar="NAME", callback=_require_name,
    help="The text is the value of this key, in place of the earlier one.",
)  # fmt: skip
_replace_option = click.option(
    "--replace/--keep", default=None,
    help="It replaces the entry that shares most with it, if one is near; or it stands beside it. A terminal asks.",
)  # fmt: skip
_REMEMBER_EPILOG = """\b
Examples:
  memoranda remember "The staging database is called heron."
  memoranda remember --target user "Prefers concise answers."
  memoranda remember --target user --key "time zone" Europe/Berlin
  memoranda remember --project this "Releases are cut from the branch stable."
  memoranda remember --target notes "The invoice archive is on heron."
  memoranda remember --until 2027-01-31 "The API is frozen."
  echo "CI runs on Debian 12." | memoranda remember -
"""


def open_target(invocation: Invocation, target: Target, project: str) -> tuple[MemoryStore, Target]:
    """Opens the memory that the options name; a project that is unknown ends the command with an error."""
    memory = open_memory_of(invocation)
    if not project and target != PROJECT:
        return memory.curated, target
    # Most commands name no project, and need not load these.
    from memoranda.api.project_memory import find_target  # noqa: PLC0415
    from memoranda.cli.filter_options import current_project  # noqa: PLC0415
    from memoranda.search.guidance import NOWHERE  # noqa: PLC0415

    name = current_project() if project.strip().lower() in ("", "this") else project
    if not name:
        invocation.fail(NOWHERE)
    try:
        return memory.curated, find_target(memory, project_target(name))
    except SessionError as error:
        invocation.fail(str(error))


def number_to_handle(invocation: Invocation, store: MemoryStore, targets: Sequence[Target], old_text: str) -> str:
    """The handle of the entry with this number; `old_text` itself if it is no number.

    Ends the command where no list or several have such an entry: it must not change one that was not meant.
    """
    if not old_text.isdecimal():
        return old_text
    lists = [(target, _listed(store, target)) for target in targets]
    if any(old_text in (entry.text, entry.handle) for _, entries in lists for entry in entries):
        return old_text
    number = int(old_text)
    found = [(target, entries[number - 1]) for target, entries in lists if 1 <= number <= len(entries)]
    if not found:
        sizes = ", ".join(f"{file_name(target)} has {len(entries)}" for target, entries in lists)
        message = f"There is no entry {old_text}: {sizes}. Nothing was changed; a part of a text needs a word, too."
        invocation.fail(message, {"reason": "no_match", "error": message})
    if len(found) == 1:
        return found[0][1].handle
    handles = [entry.handle for _, entry in found]
    lines = [f"{entry.handle}  {file_name(target)}  {entry.visible_text}" for target, entry in found]
    message = f"{old_text} can mean several entries. Nothing was changed; use --target, or a handle."
    invocation.fail("\n  - ".join([message, *lines]), {"reason": "ambiguous", "error": message, "matches": handles})


def _listed(store: MemoryStore, target: Target) -> Sequence[ScannedEntry]:
    """The entries of a target, or the notes, as the list numbers them."""
    return [note.entry for note in _notes(store)] if target == NOTES else store.view(target).entries


def _notes(store: MemoryStore) -> list[EntryFacts]:
    every = [note.as_entry() for note in store.notes.all()] if store.notes else []
    return [note for note in every if store.visible_text(note.target, note.entry.text) == note.entry.text]


def refusal_for_person(refusal: MemoryRefusal) -> str:
    """Returns the message of a refusal, with the commands that help."""
    name = file_name(refusal.target)
    if refusal.reason == "no_match":
        hint = (
            " An entry differs only in capitals:" if refusal.matches else " 'memoranda memory list' shows the entries."
        )
        return f"No entry of {name} contains that text. Nothing was written.{hint}"
    if refusal.reason == "ambiguous":
        return (
            f"{len(refusal.matches)} different entries of {name} contain that text. Nothing was written. "
            "Type a longer part that only one of them has:"
        )
    if refusal.reason == "over_budget":
        sizes = refusal.message.partition(" Nothing was written.")[0]
        kind = PROJECT if is_project(refusal.target) else refusal.target
        return (
            f"{sizes} Nothing was written. Shorten an entry with 'memoranda memory replace' or remove one with "
            "'memoranda memory remove', or move one with 'memoranda memory move … --to notes', then try again. "
            f"'memoranda config set memory.{kind}_char_limit' raises the limit."
        )
    if refusal == empty(refusal.target, "content"):
        return "There is no text to save. Nothing was written."
    return refusal.message


@click.command("list")
@click.argument("target", type=click.Choice([*_TARGETS, NOTES]), required=False)
@project_option
@memory_options
def list_entries(invocation: Invocation, target: Target | None, project: str) -> None:
    """Show the entries, numbered, and how full each file is; without a target also those of this project."""
    if target == NOTES:
        notes = _notes(open_memory_of(invocation).curated)
        invocation.respond(_format(file_name(NOTES), notes), {NOTES: {"entries": _as_data(notes)}})
        return
    store, own = open_target(invocation, target or "memory", project)
    texts, data, unreadable = [], {}, False
    for name in [own] if target or project else _targets_here(store):
        try:
            view, facts = store.view(name), store.facts(name)
            if invocation.as_json:
                sizes = {"path": str(view.path), "used": view.used, "limit": view.limit}
                data[name] = {**sizes, "entries": _as_data(facts)}
            else:
                texts.append(format_entries(view, facts))
        except StorageError as error:
            unreadable = True
            texts.append(f"{file_name(name)}  {error}")
            data[name] = {"path": str(store.path(name)), "error": str(error)}
    invocation.respond("\n\n".join(texts), data)
    sys.exit(EXIT_REFUSED if unreadable else 0)


def _targets_here(store: MemoryStore) -> tuple[Target, ...]:
    """The notes, the profile, and the memory of the project of this directory, if it has one."""
    every = store.storage.targets()
    if len(every) > len(TARGETS):
        from memoranda.cli.filter_options import current_project  # noqa: PLC0415

        store.use_project(current_project())
    return (*TARGETS, *([store.project] if store.project in every else []))


def format_entries(view: MemoryView, facts: Sequence[EntryFacts]) -> str:
    """Formats the entries of one file, numbered, and how full it is; an entry with a last day says so."""
    return _format(f"{file_name(view.target)}  {view.usage}", facts)


def _format(heading: str, facts: Sequence[EntryFacts]) -> str:
    lines = [heading]
    for number, each in enumerate(facts, start=1):
        first, *rest = each.shown.split("\n")
        first += f"  (expired: {each.until})" if each.expired else f"  (until {each.until})" if each.until else ""
        lines += [f"{number:>3}  {first}", *(f"     {line}" for line in rest)]
    return "\n".join(lines if facts else [*lines, "  (no entries yet)"])


def _as_data(facts: Sequence[EntryFacts]) -> list[dict[str, object]]:
    """Entries as JSON; times are in UTC."""
    return [
        {
            "text": each.entry.visible_text,
            "handle": each.entry.handle,
            "findings": list(each.entry.findings),
            "written": utc_time(each.written),
            "confirmed": None if each.confirmed is None else utc_time(each.confirmed),
            "actor": each.actor,
            "session": each.session,
            "message": each.message,
            "category": each.category,
            "until": each.until,
            "expired": each.expired,
        }
        for each in facts
    ]


@click.command()
@click.argument("text")
@_target_or_notes_option
@project_option
@_key_option
@_until_option
@_replace_option
@_allow_option
@memory_options
def add(
    invocation: Invocation,
    text: str,
    target: Target,
    project: str,
    key: str,
    until: str,
    replace: bool | None,
    allow: tuple[str, ...],
) -> None:
    """Add an entry; the same as 'memoranda remember'. '-' reads it from standard input."""
    store, target = open_target(invocation, target, project)
    _save(invocation, store, target, _fact(_read_text(text), key, until), allow, replace=replace)


def _fact(text: str, key: str, until: str) -> Add | Put:
    return Put(key, text, until) if key else Add(text, until)


def _save(
    invocation: Invocation,
    store: MemoryStore,
    target: Target,
    fact: Add | Put,
    allow: tuple[str, ...],
    *,
    replace: bool | None,
) -> None:
    operation = _addition(invocation, store, target, fact, replace=replace)
    report(invocation, store, _apply(store, target, operation, frozenset(allow)))


def _addition(
    invocation: Invocation, store: MemoryStore, target: Target, fact: Add | Put, *, replace: bool | None
) -> Operation:
    """The operation that saves a fact: it may be the new value of an entry that shares much with it.

    A person at a terminal is asked; elsewhere the fact is added, and the answer names the entry.
    """
    if isinstance(fact, Put) or not (replace or (replace is None and can_ask(invocation))):
        return fact
    entries = {each.shown: each.entry for each in store.facts(target)} if target != NOTES else {}
    near = [text for text in store.similar(target, [canonical(fact.content)]) if text in entries]
    for text in near:
        if replace or ask(f"{format_old_text(printable(text))}\nDoes it replace this entry?"):
            return Replace(entries[text].handle, fact.content, fact.until)
    return fact


@click.command()
@click.argument("old_text")
@click.argument("text")
@_target_or_notes_option
@project_option
@_until_option
@_allow_option
@memory_options
def replace(
    invocation: Invocation, old_text: str, text: str, target: Target, project: str, until: str, allow: tuple[str, ...]
) -> None:
    """Replace the entry that contains OLD_TEXT (or has it as its number or handle) with TEXT."""
    store, target = open_target(invocation, target, project)
    old_text = number_to_handle(invocation, store, (target,), old_text)
    report(invocation, store, _apply(store, target, Replace(old_text, _read_text(text), until), frozenset(allow)))


def _apply(store: MemoryStore, target: Target, operation: Operation, allow: frozenset[str]) -> MemoryWriteResult:
    if target != NOTES:
        return store.apply(target, [operation], PERSON, allow)
    from memoranda.memory.curated.moves import write_notes  # noqa: PLC0415

    return write_notes(store, [operation], PERSON)


@click.command()
@click.argument("old_text")
@_target_or_notes_option
@project_option
@memory_options
def remove(invocation: Invocation, old_text: str, target: Target, project: str) -> None:
    """Remove the entry that contains OLD_TEXT (or has it as its number or handle). Undo restores it.

    A note is removed for good.
    """
    store, target = open_target(invocation, target, project)
    old_text = number_to_handle(invocation, store, (target,), old_text)
    report(invocation, store, _apply(store, target, Remove(old_text), frozenset()))


@click.command()
@click.argument("old_text")
@click.option("--to", type=click.Choice([*_TARGETS, NOTES]), required=True, help="Where it goes.")
@click.option(
    "-t",
    "--target",
    type=click.Choice([*_TARGETS, NOTES]),
    help="Where it is. [default: memory, or else user or notes if that has the text]",
)
@project_option
@memory_options
def move(invocation: Invocation, old_text: str, to: Target, target: Target | None, project: str) -> None:
    """Move the entry that contains OLD_TEXT (or has it as its number or handle) to another memory, or to the notes.

    Notes have no limit: search finds them, and no prompt shows them. --project names the project that is meant.
    """
    from memoranda.memory.curated.moves import move_entry  # noqa: PLC0415

    needs_project = bool(project) or PROJECT in (to, target)
    store, own = open_target(invocation, PROJECT if needs_project else "memory", project)
    if needs_project:
        store.use_project(project_in(own))
    source, destination = (own if each == PROJECT else each for each in (target or _holder(store, to, old_text), to))
    old_text = number_to_handle(invocation, store, (source,), old_text)
    report(invocation, store, move_entry(store, source, old_text, destination, PERSON))


def _holder(store: MemoryStore, to: Target, old_text: str) -> Target:
    """The first memory but the one that an entry goes to that has the text; the agent's notes if none has it."""
    for target in (*TARGETS, NOTES):
        texts = [entry.text for entry in _listed(store, target)] if target != to else []
        if not old_text.isdecimal() and locate(texts, canonical(old_text)) is not None:
            return target
    return "memory"


@click.command()
@click.argument("target", type=click.Choice(_TARGETS), default="memory")
@project_option
@_allow_option
@memory_options
def edit(invocation: Invocation, target: Target, project: str, allow: tuple[str, ...]) -> None:
    """Open a file in your editor; what you save is checked like any other change.

    Blocked entries are shown in full here, so that you can decide about them.
    """
    from tempfile import NamedTemporaryFile  # noqa: PLC0415

    if not editor_is_set() and not sys.stdin.isatty():
        invocation.fail("There is no terminal to edit in. Set VISUAL or EDITOR to a program that edits a file.")
    store, target = open_target(invocation, target, project)
    view = store.view(target)
    before = ENTRY_DELIMITER.join(entry.text for entry in view.entries) + "\n"
    # The draft is our file and not the editor's, so that typed text is kept until it is saved.
    with NamedTemporaryFile("wb", prefix="memory-edit-", suffix=".md", delete=False) as draft:
        draft.write(before.encode())
    try:
        outcome = _save_edit(store, view, Path(draft.name), frozenset(allow))
    except click.ClickException as error:
        editor = error.format_message().partition(": Editing failed")[0]
        problem = f"The editor {editor!r} cannot be started, or failed. Nothing was written; set VISUAL or EDITOR."
        outcome = MemoryRefusal(target, "invalid", problem)
    note = ""
    if isinstance(outcome, MemoryRefusal) and Path(draft.name).read_bytes() != before.encode():
        note = f" Your text is in {draft.name}."
    else:
        Path(draft.name).unlink()
    report(invocation, store, outcome, note)


def _save_edit(store: MemoryStore, view: MemoryView, draft: Path, allow: frozenset[str]) -> MemoryWriteResult:
    click.edit(filename=str(draft))
    try:
        text = draft.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        return MemoryRefusal(
            view.target, "undecodable", f"What you saved is not UTF-8 text ({error}). Nothing was written."
        )
    return edit_file(store, view.target, view.fingerprint, parse(text), PERSON, allow)


@click.command()
@click.argument("target", type=click.Choice([*_TARGETS, "all"]), default="all")
@project_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@memory_options
def reset(invocation: Invocation, target: str, project: str, yes: bool) -> None:
    """Remove every entry of a file, or of both. The journal keeps them: undo restores them."""
    every = target == "all" and not project
    store, name = open_target(invocation, "memory" if every else target, project)
    if not yes:
        files = "MEMORY.md and USER.md" if every else file_name(name)
        require_yes(invocation, f"Remove every entry of {files}?")
    # "all" means the files that are in use; a file that the user names is reset in any case.
    targets = store.settings.targets() if every else (name,)
    outcomes = [empty_file(store, name, PERSON) for name in targets]
    results = [describe(outcome, store) for outcome in outcomes]
    text = "\n".join(str(result.get("message") or result["error"]) for result in results)
    if all(result["success"] for result in results):
        invocation.respond(text, results)
    else:
        invocation.fail(text, {"results": results})


@click.command()
@click.argument("handle")
@click.option("--revoke", is_flag=True, help="Withdraw an earlier permission.")
@target_options
@memory_options
def allow(invocation: Invocation, handle: str, revoke: bool, target: Target, project: str) -> None:
    """Accept the scanner findings in a blocked entry, so that it is shown again. The journal records it."""
    store, target = open_target(invocation, target, project)
    if revoke:
        if revoke_findings(store, target, handle, PERSON) is None:
            invocation.fail(f"No findings were allowed for {handle} in {file_name(target)}.")
        invocation.respond(f"{handle} is scanned like any other entry again.", {"success": True, "handle": handle})
        return
    entry = allow_findings(store, target, handle, PERSON)
    if entry is None:
        invocation.fail(f"{file_name(target)} has no blocked entry {handle}. 'memoranda memory list' shows them.")
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
    lines += [format_old_text(edit["before"]) for edit in data.get("changed", ()) if "before" in edit]
    if data.get("change"):
        lines.append(f"{data['usage']} · change {data['change']} · {data['stored_in']}")
        lines.append(_when_seen(store, outcome))
    if data.get("similar") and not can_ask(invocation):
        lines += ["Close to it; --replace puts a new value in the place of the old one:"]
        lines += [format_old_text(printable(text)) for text in data["similar"]]
    invocation.respond("\n".join(lines), data)


def format_old_text(text: str) -> str:
    """Formats the text of an entry that a change removed or replaced."""
    return "\n    ".join(f"  - {text}".split("\n"))


def _when_seen(store: MemoryStore, outcome: MemoryWriteResult) -> str:
    written = (
        {edit.after for edit in outcome.edits if edit.after is not None} if isinstance(outcome, MemoryReceipt) else ()
    )
    if not written:
        return "Sessions that start from now on no longer show it."
    if written <= {each.entry.text for each in store.facts(outcome.target) if each.expired}:
        return guidance.EXPIRED
    return "The agent sees it from its next session on."


def _read_text(argument: str) -> str:
    return sys.stdin.read() if argument == "-" else argument


@click.command(epilog=_REMEMBER_EPILOG)
@click.argument("words", nargs=-1, required=True)
@_target_or_notes_option
@project_option
@_key_option
@_until_option
@_replace_option
@_allow_option
@memory_options
def remember(
    invocation: Invocation,
    words: tuple[str, ...],
    target: Target,
    project: str,
    key: str,
    until: str,
    replace: bool | None,
    allow: tuple[str, ...],
) -> None:
    """Save a fact for every agent that uses this home. '-' reads it from standard input.

    The fact is on disk when the command answers, and agents know it from their next session on. If it may be the new
    value of an entry that is there, a terminal asks whether it replaces it. 'memoranda memory' lists, changes, removes
    and undoes.
    """
    text = sys.stdin.read() if words == ("-",) else " ".join(words)
    store, target = open_target(invocation, target, project)
    _save(invocation, store, target, _fact(text, key, until), allow, replace=replace)
