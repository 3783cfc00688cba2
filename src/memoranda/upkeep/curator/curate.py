"""Carries out what the rules propose: one change of all memory files, which one undo takes back.

What leaves a file is stored as a note before the file is replaced, and the files are replaced together, so a curator
that is killed leaves the old entries or the new ones; the next run removes notes of entries that did not leave. The
change names the fingerprints of the files it was planned on: if a person or a session has changed one meanwhile, that
change wins, and the curator plans again.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from memoranda.memory.curated.facts import EntryFacts, Use, seconds_of
from memoranda.memory.curated.journal import next_change
from memoranda.memory.curated.memory_file import handle
from memoranda.memory.curated.operations import EntryEdit, EntryPlan, MemoryRefusal, apply_edit
from memoranda.memory.curated.settings import Target, file_name, is_project, project_in
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.writer import WriteRequest
from memoranda.search.index.postings import Filters
from memoranda.search.searchable_store import SearchableStore
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.origin import Origin
from memoranda.support.projects import matching_projects, project_of
from memoranda.upkeep.curator.clauses import clauses_of, is_filler
from memoranda.upkeep.curator.rules import FULL, CuratedTarget, CuratorChange, FindChanges, plan_changes, plan_returns

CURATOR = Origin("curator", explicit=True)
_TRIES = 5
_MAX_HITS = 20
_MONTH = 30 * 86_400.0
# Each note is a search.
_MAX_NOTES = 100


@dataclass(frozen=True, slots=True)
class CuratorRun:
    """What a run changed, the number of the change that an undo names, and why targets were left as they are."""

    changes: list[CuratorChange]
    number: int | None = None
    refused: tuple[MemoryRefusal, ...] = ()


@dataclass(frozen=True, slots=True)
class _TargetPlan:
    """The changes of a target, planned on the file with the fingerprint `seen`."""

    target: Target
    seen: str
    changes: list[CuratorChange]


@dataclass(frozen=True, slots=True)
class Curator:
    """Plans and carries out changes of one user's curated memory.

    Files that entries name are in `directory`; `suggest` adds to the rules.
    """

    store: MemoryStore
    directory: Path | None = None
    suggest: FindChanges = lambda target, facts: ()

    def propose(self) -> list[CuratorChange]:
        """What a run would change now."""
        return [change for plan in self._plans() for change in plan.changes]

    def apply(self) -> CuratorRun:
        """Change all targets as one change; one that refuses is left out, and the others are changed."""
        refused: dict[Target, MemoryRefusal] = {}
        for _ in range(_TRIES):
            plans = [plan for plan in self._plans() if plan.target not in refused]
            if not plans:
                break
            self._remove_stray_notes()
            outcome = self.store.commit_all([_request(plan) for plan in plans])
            if not isinstance(outcome, MemoryRefusal):
                changes = [change for plan in plans for change in plan.changes]
                numbers = [receipt.change for receipt in outcome if receipt.change]
                return CuratorRun(changes, min(numbers, default=None), tuple(refused.values()))
            if outcome.reason in ("locked", "storage"):
                return CuratorRun([], None, (outcome,))
            if outcome.reason not in ("drift", "conflict"):
                refused[outcome.target] = outcome
        return CuratorRun([], None, tuple(refused.values()))

    def _plans(self) -> list[_TargetPlan]:
        notes = self._latest_notes()
        owners = (note.target for note in notes)
        enabled = filter(self.store.settings.enabled, dict.fromkeys((*self.store.storage.targets(), *owners)))
        return [plan for target in enabled if (plan := self._plan(target, notes)).changes]

    def _plan(self, target: Target, notes: Sequence[EntryFacts]) -> _TargetPlan:
        view, facts, journal = self.store.view(target), self.store.facts(target), self.store.journal
        keys, settled = journal.keys(target), journal.settled(target)
        looked_at = CuratedTarget(target, facts, view.limit, self._directory_of(target), keys, settled)
        # Counting uses searches the record, and only a full memory and notes need it.
        is_full = view.used > FULL * view.limit
        changes = plan_changes(looked_at, self.store.uses(facts) if is_full else {}, self.suggest)
        beside = [note for note in notes if note.target == target]
        changes += plan_returns(looked_at, changes, beside, self.store.uses(beside) if beside else {})
        return _TargetPlan(target, view.fingerprint, changes)

    def _latest_notes(self) -> list[EntryFacts]:
        """The latest notes that may come back, as entries that are as old as the month in which uses are counted."""
        notes, month = self.store.notes, time.time() - _MONTH
        latest = notes.all()[:_MAX_NOTES] if notes is not None else []
        known = [note for note in latest if not note.replaced]
        shown = [note for note in known if self.store.visible_text(note.owner, note.text) == note.text]
        return [replace(note.as_entry(), written=max(seconds_of(note.at) or 0.0, month)) for note in shown]

    def _remove_stray_notes(self) -> None:
        """Remove what a killed run noted of entries that are still in their files."""
        notes = self.store.notes
        for note in notes.all() if notes is not None else ():
            if note.actor == CURATOR.actor and note.text in {e.text for e in self.store.view(note.owner).entries}:
                assert notes is not None
                notes.remove(note.text, note.owner)

    def _directory_of(self, target: Target) -> Path | None:
        """Where the files are that entries name: the working directory, unless the memory is another project's."""
        if self.directory is None or not is_project(target):
            return self.directory
        here = project_of(self.directory)
        is_here = here is not None and matching_projects([project_in(target)], here)
        return self.directory if is_here else None


def note_run(store: MemoryStore, note: str) -> None:
    """Journal a run that changed nothing, so that the next one waits until something has changed."""
    with store.exclusive():
        store.journal.append([next_change(store.journal.last(), "memory", "curate", CURATOR, (), None, note=note)])


def _request(planned: _TargetPlan) -> WriteRequest:
    target, changes = planned.target, planned.changes
    rules = ", ".join(sorted({change.rule for change in changes}))
    return WriteRequest(
        target,
        "batch",
        CURATOR,
        lambda current: _plan_edits(current, changes),
        f"Curated {file_name(target)}: {len(changes)} changes.",
        seen=planned.seen,
        restores=frozenset(text for change in changes for text in change.after if text in change.before),
        note=f"curated: {rules}; what left is in notes",
        to_notes={text: target for change in changes for text in change.leaves},
        replaced={text: handle(change.after[0]) for change in changes if change.after for text in change.leaves},
        from_notes={text: target for change in changes for text in change.comes_back},
    )


def _plan_edits(current: Sequence[str], changes: Sequence[CuratorChange]) -> EntryPlan:
    entries, edits = list(current), []
    for change in changes:
        new = [text for text in change.after if text not in change.before]
        stay = [text for text in change.after if text in change.before]
        for text in change.before:
            if text in stay:
                # Of two equal entries, one stays.
                stay.remove(text)
                continue
            edits.append(EntryEdit(entries.index(text), text, new.pop(0) if new else None))
            apply_edit(entries, edits[-1])
        edits += [EntryEdit(len(entries) + count, None, text) for count, text in enumerate(new)]
        entries += new
    return EntryPlan(tuple(entries), tuple(edits))


def count_uses(db: SearchableStore, facts: Sequence[EntryFacts]) -> dict[str, Use]:
    """In how many conversations since it was written the words of each entry were said, and when last."""
    found: dict[str, Use] = {}
    for each in facts:
        words = [word for clause in clauses_of(each.entry.text) for word in clause.words if not is_filler(word.key)]
        named = [word.text for word in words if word.kind != "word"] or sorted((w.text for w in words), key=len)[-2:]
        query = " AND ".join(f'"{text}"' for text in dict.fromkeys(named[:2]))
        if not query:
            continue
        hits = db.find(query, Filters(db.scope, since=each.written, titles=False), limit=_MAX_HITS).hits
        if hits:
            times = [row["last_active"] or 0.0 for hit in hits if (row := db.sessions.get_session(hit.session_id))]
            found[each.entry.handle] = Use(len(hits), max(times, default=0.0))
    return found
