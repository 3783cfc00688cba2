"""The refusals of memory writes, worded for a person and a model: what happened, and what to do next."""

from pathlib import Path

from memoranda.memory.curated.operations import Ambiguous, MemoryRefusal, MemoryRefusalReason, NoMatch
from memoranda.memory.curated.settings import PROJECT, CuratedSettings, Target, file_name
from memoranda.storage.files.journaled_writer import FailureReason, WriteFailure

_REASONS: dict[FailureReason, MemoryRefusalReason] = {
    "locked": "locked",
    "storage": "storage",
    "unreadable": "unreadable",
    "undecodable": "undecodable",
    "symlink": "symlink",
    "read_only": "storage",
    "changed": "drift",
}


def from_failure(target: Target, failure: WriteFailure) -> MemoryRefusal:
    return MemoryRefusal(target, _REASONS[failure.reason], failure.message)


def disabled(target: Target) -> MemoryRefusal:
    keys = {"memory": "memory.memory_enabled", "user": "memory.user_profile_enabled"}
    key = keys.get(target, "memory.project_enabled")
    message = f"{file_name(target)} is switched off ({key} is false). Nothing was written."
    return MemoryRefusal(target, "disabled", message)


def no_project(settings: CuratedSettings) -> MemoryRefusal:
    reason = "one works in no project here" if settings.project_enabled else "memory.project_enabled is false"
    return MemoryRefusal(PROJECT, "disabled", f"There is no memory of a project: {reason}. Nothing was written.")


def explicit_only(target: Target) -> MemoryRefusal:
    return MemoryRefusal(
        target,
        "approval",
        "Memory is set to explicit-only: nothing is saved unless the user asks for it. Nothing was written. "
        "Continue without saving.",
    )


def empty(target: Target, name: str) -> MemoryRefusal:
    return MemoryRefusal(target, "invalid", f"{name} is empty. Nothing was written.")


def unstorable_text(target: Target, what: str) -> MemoryRefusal:
    message = f"The text contains {what} and cannot be stored as text. Nothing was written; remove it."
    return MemoryRefusal(target, "invalid", message)


def delimiter_in_text(target: Target) -> MemoryRefusal:
    return MemoryRefusal(
        target,
        "invalid",
        "The text has a line that contains only '§', which separates entries in the file, so it would not be read "
        "back as it was written. Nothing was written. Send several entries instead, or drop that line.",
    )


def blocked(target: Target, findings: tuple[str, ...]) -> MemoryRefusal:
    allow = " ".join(f"--allow {finding}" for finding in findings)
    return MemoryRefusal(
        target,
        "blocked",
        f"The text looks like an attack on its later readers, or contains a secret ({', '.join(findings)}). "
        "Nothing was written. Save the plain fact in other words; a person can allow it with "
        f"'memoranda memory add {allow}'.",
        findings=findings,
    )


def over_budget(target: Target, after: int, limit: int) -> MemoryRefusal:
    return MemoryRefusal(
        target,
        "over_budget",
        f"{file_name(target)} would have {after:,} of {limit:,} chars. Nothing was written. Consolidate: merge or "
        "shorten entries with replace, remove stale ones (one call with operations can do all of it), "
        "then add what is still worth keeping. Or move an entry to notes, which have no limit: "
        'action "move", old_text, to "notes".',
    )


def unmatched(target: Target, problem: NoMatch | Ambiguous) -> MemoryRefusal:
    where = f"Operation {problem.number}: "
    if isinstance(problem, NoMatch):
        hint = " An entry differs only in capitals." if problem.similar else ""
        message = f"{where}no entry of {file_name(target)} contains old_text.{hint} Nothing was written."
        return MemoryRefusal(target, "no_match", message, matches=problem.similar)
    message = (
        f"{where}{len(problem.matches)} different entries contain old_text. "
        "Nothing was written. Send a longer, unique part of the one you mean."
    )
    return MemoryRefusal(target, "ambiguous", message, matches=problem.matches)


def changed_outside(target: Target, path: Path, change: int, backup: Path | None) -> MemoryRefusal:
    return MemoryRefusal(
        target,
        "drift",
        f"{path} was changed outside Memoranda. Nothing was written, and the outside change was kept "
        f"(change {change} in 'memoranda memory log'). Look at the current entries; if your change still makes "
        "sense, send it again.",
        backup=backup,
    )


def unrewritable_file(target: Target, path: Path, backup: Path) -> MemoryRefusal:
    return MemoryRefusal(
        target,
        "drift",
        f"{path} was changed outside Memoranda into something that cannot be rewritten without altering it (an "
        "empty entry next to a § line, or one entry larger than the whole limit). Nothing was written. "
        f"A person can repair it with 'memoranda memory edit {target}'; until then continue without saving.",
        backup=backup,
    )


def changed_meanwhile(target: Target, path: Path) -> MemoryRefusal:
    message = f"{path} changed while you were editing. Nothing was written; edit it again."
    return MemoryRefusal(target, "conflict", message)


def changed_since(target: Target, change: int) -> MemoryRefusal:
    return MemoryRefusal(
        target,
        "conflict",
        f"Change {change} cannot be undone: an entry that it wrote was changed or removed since. "
        "Nothing was written. 'memoranda memory log' shows which later change to undo first.",
    )


def proposal_outdated(target: Target, proposal: str) -> MemoryRefusal:
    return MemoryRefusal(
        target,
        "conflict",
        f"Proposal {proposal} would now change other entries than when it was created. Nothing was written. "
        f"Reject it with 'memoranda memory reject {proposal}'.",
    )


def forgotten_since(target: Target, number: int) -> MemoryRefusal:
    message = (
        f"Change {number} cannot be undone, because its text was forgotten. Nothing was written. "
        "'memoranda memory undo NUMBER' undoes an earlier change."
    )
    return MemoryRefusal(target, "conflict", message)


def nothing_to_undo(target: Target, number: int | None) -> MemoryRefusal:
    wanted = "There is no change to undo." if number is None else f"There is no change {number} that could be undone."
    return MemoryRefusal(target, "no_match", f"{wanted} 'memoranda memory log' lists the changes.")
