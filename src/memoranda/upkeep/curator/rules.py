"""What the curator would change: only what is certain, by rules that can be read; nothing here writes anything.

What is certain: an entry says the same words as another, or stands as whole sentences in one that was said later; two
values were saved under one key; a last day is over; the project no longer has what an entry names. Entries that are
merely about the same thing are never compared. What untrusted text suggested displaces nothing that a person said, and
what an undo brought back or took away stays so.

Each entry is touched by one rule at most in a run: what is left is looked at again in the next.
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Literal

from memoranda.memory.curated.facts import NO_USE, EntryFacts, Use, choose_leaving
from memoranda.memory.curated.memory_file import ENTRY_DELIMITER, handle
from memoranda.memory.curated.snapshot import describe_sources
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.shorten import shorten_end
from memoranda.upkeep.curator.same_words import repetitions, statements_within

Rule = Literal["expired", "same", "contained", "same_key", "gone", "worded", "full", "used"]

FULL = 0.8
# A note that was of use in so many conversations of the last month is worth a place in the prompt again.
OFTEN = 3
_GIT_SECONDS = 5.0
_PREVIEW_CHARS = 60
_PATH = re.compile(r"(?<![\w./~:@-])[\w.@]+(?:[\w.@-]*/)+(?:[\w.@-]*\w)?")
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
        """The texts that leave the prompt."""
        return tuple(text for text in self.before if text not in self.after)

    @property
    def comes_back(self) -> tuple[str, ...]:
        """The notes that become entries."""
        return self.after if self.rule == "used" else ()


@dataclass(frozen=True, slots=True)
class CuratedTarget:
    """What the rules look at: the entries of one target in file order, its limit, and the directory of its project.

    `keys` are the keys under which values were saved (`MemoryJournal.keys`), and `settled` the handles of what a
    person has decided about (`MemoryJournal.settled`).
    """

    name: str
    facts: Sequence[EntryFacts]
    limit: int
    directory: Path | None = None
    keys: frozenset[str] = frozenset()
    settled: frozenset[str] = frozenset()

    def is_settled(self, text: str) -> bool:
        """Whether a person has decided that a text stays, or stays away."""
        return handle(text) in self.settled


FindChanges = Callable[[CuratedTarget, Sequence[EntryFacts]], Iterable[CuratorChange]]


def plan_changes(
    target: CuratedTarget, uses: Mapping[str, Use], suggest: FindChanges = lambda target, facts: ()
) -> list[CuratorChange]:
    """What to change in one target; `uses` says how often an entry was of use, by its handle.

    `suggest` is asked about what no rule touches.
    """
    found: list[CuratorChange] = []
    touched = {each.entry.text for each in target.facts if target.is_settled(each.entry.text)}
    for rule in (_expired, _same_key, _same, _contained, _gone, suggest):
        left = [each for each in target.facts if each.entry.text not in touched and not each.entry.findings]
        for change in rule(target, left):
            if not touched.intersection(change.before):
                found.append(change)
                touched.update(change.before)
    found += _full(target, found, uses)
    return [_with_sources(change, target) for change in found]


def _with_sources(change: CuratorChange, target: CuratedTarget) -> CuratorChange:
    """The change with a reason that names the untrusted sources of its entries."""
    sources = {each.entry.text: each.sources for each in target.facts if each.sources}
    named = [
        f" “{shorten_end(text, _PREVIEW_CHARS)}”{describe_sources(sources[text])}."
        for text in dict.fromkeys(change.before)
        if text in sources
    ]
    return replace(change, reason=change.reason + "".join(named)) if named else change


def _may_displace(one: EntryFacts, other: EntryFacts) -> bool:
    """Whether the first entry is trusted at least as much as the second."""
    return not one.sources or bool(other.sources)


def _outlasts(one: EntryFacts, other: EntryFacts) -> bool:
    """Whether the first entry is still shown when the second would no longer be."""
    return not one.until or (bool(other.until) and one.until >= other.until)


def _expired(target: CuratedTarget, facts: Sequence[EntryFacts]) -> Iterator[CuratorChange]:
    for each in facts:
        if each.expired:
            yield CuratorChange("expired", target.name, (each.entry.text,), (), f"Its last day was {each.until}.")


def _same_key(target: CuratedTarget, facts: Sequence[EntryFacts]) -> Iterator[CuratorChange]:
    """Of two values that have one key, as two machines may have saved them, the one that was said last stays."""
    keyed = sorted((each for each in facts if each.key in target.keys), key=lambda each: each.checked_at)
    for older, newer in combinations(keyed, 2):
        if older.key == newer.key and _may_displace(newer, older):
            texts, reason = (
                (older.entry.text, newer.entry.text),
                f"The newer value of “{newer.key}” replaces the older.",
            )
            yield CuratorChange("same_key", target.name, texts, texts[1:], reason)


def _same(target: CuratedTarget, facts: Sequence[EntryFacts]) -> Iterator[CuratorChange]:
    """Of two entries with the same words, the one that was said last stays, if it may."""
    ordered = sorted(facts, key=lambda each: each.checked_at)
    for older, newer in repetitions(ordered, lambda each: each.entry.text):
        stays, leaves = (newer, older) if _may_displace(newer, older) else (older, newer)
        if _outlasts(stays, leaves):
            texts = (leaves.entry.text, stays.entry.text)
            yield CuratorChange("same", target.name, texts, texts[1:], "Both say the same words.")


def _contained(target: CuratedTarget, facts: Sequence[EntryFacts]) -> Iterator[CuratorChange]:
    """An entry leaves whose sentences were said again later, with more; what is added there may also take it back."""
    ordered = sorted(facts, key=lambda each: each.checked_at)
    for shorter, longer in statements_within(ordered, lambda each: each.entry.text):
        is_later = shorter.checked_at <= longer.checked_at
        if is_later and _may_displace(longer, shorter) and _outlasts(longer, shorter):
            texts, reason = (
                (shorter.entry.text, longer.entry.text),
                "The newer entry says all of the older one, and more.",
            )
            yield CuratorChange("contained", target.name, texts, texts[1:], reason)


def _gone(target: CuratedTarget, facts: Sequence[EntryFacts]) -> Iterator[CuratorChange]:
    """Entries about a file, branch or command that the project had and no longer has.

    One that a person confirmed is true for another reason.
    """
    if target.directory is None or not (target.directory / ".git").exists():
        return
    for each in facts:
        gone = "" if each.confirmed else _find_gone(target.directory, each.entry.text)
        if gone:
            yield CuratorChange("gone", target.name, (each.entry.text,), (), f"The project no longer has {gone}.")


def _find_gone(directory: Path, text: str) -> str:
    for match in _PATH.finditer(text):
        name = match[0]
        if not (directory / name).exists() and _git(directory, "log", "-1", "--format=%h", "--", name):
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
    kept = gone.union(each.entry.text for each in stay if target.is_settled(each.entry.text))
    for each in choose_leaving(stay, uses, kept, used - FULL * target.limit):
        count = uses.get(each.entry.handle, NO_USE).count
        often = "in no conversation" if not count else f"in {count} conversation{'s' if count > 1 else ''}"
        reason = f"The memory is fuller than {FULL:.0%}, and this entry was of use {often} since it was written."
        yield CuratorChange("full", target.name, (each.entry.text,), (), reason)


def plan_returns(
    target: CuratedTarget, changes: Sequence[CuratorChange], notes: Sequence[EntryFacts], uses: Mapping[str, Use]
) -> Iterator[CuratorChange]:
    """The notes that were often of use, as far as there is room for them and no rule would take them out again.

    One that untrusted text suggested comes back by a person's hand only.
    """
    if any(change.rule == "full" for change in changes):
        return
    present = [each.entry.text for each in target.facts]
    used = len(ENTRY_DELIMITER.join([*present, *(text for change in changes for text in change.after)]))
    for note in sorted(notes, key=lambda each: -uses.get(each.entry.handle, NO_USE).count):
        count, text = uses.get(note.entry.handle, NO_USE).count, note.entry.text
        used += len(text) + len(ENTRY_DELIMITER)
        if count < OFTEN or used > FULL * target.limit:
            return
        if note.sources or target.is_settled(text):
            continue
        together = replace(target, facts=[*target.facts, note])
        if text not in present and not any(text in change.before for change in plan_changes(together, {})):
            reason = f"The note was of use in {count} conversations of the last month."
            yield CuratorChange("used", target.name, (), (text,), reason)
