"""What the curator would change, by rules that can be explained; nothing here writes anything.

Each entry is touched by one rule at most in a run: what is left is looked at again in the next.
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from memoranda.memory.curated.absolute_dates import absolute_dates
from memoranda.memory.curated.facts import NO_USE, EntryFacts, Use, choose_leaving
from memoranda.memory.curated.memory_file import ENTRY_DELIMITER
from memoranda.support.lazy_dataclass import dataclass
from memoranda.upkeep.curator.clauses import clauses_of
from memoranda.upkeep.curator.entry_pairs import find_pairs

Rule = Literal["relative_date", "expired", "same", "contained", "superseded", "gone", "worded", "full", "used"]

FULL = 0.8
# A note that was of use in so many conversations of the last month is worth a place in the prompt again.
OFTEN = 3
_GIT_SECONDS = 5.0
_MAKE = re.compile(r"\bmake ([a-z][\w-]*)")
_SCRIPT = re.compile(r"\b(?:npm|pnpm|yarn)(?: run)? ([a-z][\w:-]*)")
_BRANCH = re.compile(r"\bbranch (?:called |named )?`?([\w./-]*[\w-])`?|`?([\w./-]*[\w-])`? branch\b")
# Words beside "branch" that are no names.
_NO_BRANCH = frozenset(
    {"the", "a", "an", "this", "that", "each", "every", "new", "default", "feature", "release", "is"}
)


@dataclass(frozen=True, slots=True)
class CuratorChange:
    """One change of a target: `before` becomes `after`; what is only in `before` goes to notes.

    Without a `before`, `after` is a note that becomes an entry.
    """

    rule: Rule
    target: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    reason: str

    @property
    def leaves(self) -> tuple[str, ...]:
        """The texts that leave the prompt; another wording of an entry replaces it and leaves nothing."""
        if self.rule == "relative_date":
            return ()
        return tuple(text for text in self.before if text not in self.after)

    @property
    def comes_back(self) -> tuple[str, ...]:
        """The notes that become entries."""
        return self.after if self.rule == "used" else ()


@dataclass(frozen=True, slots=True)
class CuratedTarget:
    """What the rules look at: the entries of one target in file order, its limit, and the directory of its project.

    `untrusted` are the texts that untrusted text may have suggested.
    """

    name: str
    facts: Sequence[EntryFacts]
    limit: int
    directory: Path | None = None
    untrusted: frozenset[str] = frozenset()


FindChanges = Callable[[CuratedTarget, Sequence[EntryFacts]], Iterable[CuratorChange]]


def plan_changes(
    target: CuratedTarget, uses: Mapping[str, Use], suggest: FindChanges = lambda target, facts: ()
) -> list[CuratorChange]:
    """What to change in one target; `uses` says how often an entry was of use, by its handle.

    `suggest` is asked about what no rule touches.
    """
    found: list[CuratorChange] = []
    touched: set[str] = set()
    for rule in (_relative_dates, _expired, _pairs, _gone, suggest):
        left = [each for each in target.facts if each.entry.text not in touched and not each.entry.findings]
        for change in rule(target, left):
            if not touched.intersection(change.before):
                found.append(change)
                touched.update(change.before)
    return found + list(_full(target, found, uses))


def _relative_dates(target: CuratedTarget, facts: Sequence[EntryFacts]) -> Iterator[CuratorChange]:
    for each in facts:
        dated = absolute_dates(each.entry.text, each.written)
        if dated != each.entry.text:
            reason = "It names a day by its distance from the day it was written."
            yield CuratorChange("relative_date", target.name, (each.entry.text,), (dated,), reason)


def _expired(target: CuratedTarget, facts: Sequence[EntryFacts]) -> Iterator[CuratorChange]:
    for each in facts:
        if each.expired:
            yield CuratorChange("expired", target.name, (each.entry.text,), (), f"Its last day was {each.until}.")


def _pairs(target: CuratedTarget, facts: Sequence[EntryFacts]) -> Iterator[CuratorChange]:
    """The entry that was written or confirmed later wins; of one that contains the other, the longer stays."""
    ordered = sorted(facts, key=lambda each: each.checked_at)
    texts = [each.entry.text for each in ordered]
    for older, newer, relation in find_pairs(texts):
        pair = (texts[older], texts[newer])
        if relation == "superseded":
            yield CuratorChange("superseded", target.name, pair, pair[1:], "The newer entry replaces the older one.")
        elif relation == "same":
            yield CuratorChange("same", target.name, pair, pair[1:], "Both say the same.")
        else:
            kept = pair[1:] if relation == "contains" else pair[:1]
            yield CuratorChange("contained", target.name, pair, kept, "One entry says all that the other says.")


def _gone(target: CuratedTarget, facts: Sequence[EntryFacts]) -> Iterator[CuratorChange]:
    """Entries about a file, branch or command that the project had and no longer has."""
    if target.directory is None or not (target.directory / ".git").exists():
        return
    for each in facts:
        gone = _find_gone(target.directory, each.entry.text)
        if gone:
            yield CuratorChange("gone", target.name, (each.entry.text,), (), f"The project no longer has {gone}.")


def _find_gone(directory: Path, text: str) -> str:
    paths = [
        word.key for clause in clauses_of(text) for word in clause.words if word.kind == "path" and " " not in word.key
    ]
    for path in paths:
        named = re.search(re.escape(path), text, re.IGNORECASE)
        name = named[0] if named else path
        is_inside = "/" in name and not name.startswith(("/", "~", "-")) and "://" not in name and "*" not in name
        if is_inside and not (directory / name).exists() and _git(directory, "log", "-1", "--format=%h", "--", name):
            return f"the file {name}"
    for match in _BRANCH.finditer(text):
        name = match[1] or match[2]
        known = _git(directory, "for-each-ref", "--format=%(refname)").split()
        is_known = any(ref.endswith(f"/{name}") for ref in known)
        # What git and GitHub write when a branch is merged; a word of that name in another message says nothing.
        merges = rf"Merge branch '{re.escape(name)}'\|Merge pull request #[0-9]* from [^/]*/{re.escape(name)}$"
        was_merged = ("log", "-1", "--format=%h", f"--grep={merges}", "--merges", "--all")
        if name.lower() not in _NO_BRANCH and not is_known and _git(directory, *was_merged):
            return f"the branch {name}"
    return _find_gone_command(directory, text)


def _find_gone_command(directory: Path, text: str) -> str:
    makefile, package = directory / "Makefile", directory / "package.json"
    for match in _MAKE.finditer(text) if makefile.is_file() else ():
        targets = re.findall(r"^([\w-]+):", makefile.read_text("utf-8", "replace"), re.MULTILINE)
        if match[1] not in targets and _git(directory, "log", "-1", "--format=%h", f"-S{match[1]}:", "--", "Makefile"):
            return f"the command make {match[1]}"
    for match in _SCRIPT.finditer(text) if package.is_file() else ():
        try:
            scripts = json.loads(package.read_text("utf-8", "replace")).get("scripts", {})
        except (ValueError, AttributeError):
            return ""
        had_it = ("log", "-1", "--format=%h", f'-S"{match[1]}":', "--", "package.json")
        if match[1] not in scripts and _git(directory, *had_it):
            return f"the script {match[1]}"
    return ""


def _git(directory: Path, *arguments: str) -> str:
    """The answer of git; "" where there is none, so that what cannot be asked is not gone."""
    try:
        asked = subprocess.run(
            ["git", "-C", str(directory), *arguments], capture_output=True, text=True, timeout=_GIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout.strip() if asked.returncode == 0 else ""


def _full(target: CuratedTarget, changes: Sequence[CuratorChange], uses: Mapping[str, Use]) -> Iterator[CuratorChange]:
    """The entries of least use, until what the other changes leave is no fuller than 80 %."""
    gone = {text for change in changes for text in change.before}
    added = [
        text for change in changes for text in change.after if text not in {each.entry.text for each in target.facts}
    ]
    stay = [
        each for each in target.facts if each.entry.text not in gone or any(each.entry.text in c.after for c in changes)
    ]
    used = len(ENTRY_DELIMITER.join([*(each.entry.text for each in stay), *added]))
    for each in choose_leaving(stay, uses, gone, used - FULL * target.limit):
        count = uses.get(each.entry.handle, NO_USE).count
        often = "in no conversation" if not count else f"in {count} conversation{'s' if count > 1 else ''}"
        reason = f"The memory is fuller than {FULL:.0%}, and this entry was of use {often} since it was written."
        yield CuratorChange("full", target.name, (each.entry.text,), (), reason)


def plan_returns(
    target: CuratedTarget, changes: Sequence[CuratorChange], notes: Sequence[EntryFacts], uses: Mapping[str, Use]
) -> Iterator[CuratorChange]:
    """The notes that were often of use, as far as there is room for them and no rule would take them out again."""
    if any(change.rule == "full" for change in changes):
        return
    present = [each.entry.text for each in target.facts]
    used = len(ENTRY_DELIMITER.join([*present, *(text for change in changes for text in change.after)]))
    for note in sorted(notes, key=lambda each: -uses.get(each.entry.handle, NO_USE).count):
        count, text = uses.get(note.entry.handle, NO_USE).count, note.entry.text
        used += len(text) + len(ENTRY_DELIMITER)
        if count < OFTEN or used > FULL * target.limit:
            return
        together = replace(target, facts=[*target.facts, note])
        if text not in present and not any(text in change.before for change in plan_changes(together, {})):
            reason = f"The note was of use in {count} conversations of the last month."
            yield CuratorChange("used", target.name, (), (text,), reason)
