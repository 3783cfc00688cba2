"""Carries out what the rules propose: one journalled change per memory file, which one undo takes back.

What leaves a file is stored as a note before the file is replaced, so a curator that is killed leaves the old entries
or the new ones, and a note too many at most. The change names the fingerprint of the file it was planned on: if a
person or a session has changed the file meanwhile, that change wins, and the curator plans again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memoranda.memory.curated.facts import EntryFacts, Use
from memoranda.memory.curated.notes import Notes
from memoranda.memory.curated.operations import EntryPlan, MemoryReceipt, MemoryRefusal, rewrite_edits
from memoranda.memory.curated.settings import Target, file_name, is_project, project_in
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.writer import WriteRequest
from memoranda.memory.record.items import Items
from memoranda.search.index.postings import Filters
from memoranda.search.searchable_store import SearchableStore
from memoranda.support.origin import Origin
from memoranda.support.projects import matching_projects, project_of
from memoranda.upkeep.curator.clauses import clauses_of, is_filler
from memoranda.upkeep.curator.rules import FULL, CuratedTarget, CuratorChange, plan_changes

CURATOR = Origin("curator", explicit=True)
_TRIES = 5
_MAX_HITS = 20


@dataclass(frozen=True, slots=True)
class Curator:
    """Plans and carries out changes of one user's curated memory.

    `uses` counts in how many conversations entries were of use; `notes` stores what leaves.
    """

    store: MemoryStore
    uses: Callable[[Sequence[EntryFacts]], Mapping[str, Use]]
    notes: Callable[[], Items]
    directory: Path | None = None

    def targets(self) -> list[Target]:
        """The memories that are in use: the notes, the profile, and that of every project."""
        return [target for target in self.store.storage.targets() if self.store.settings.enabled(target)]

    def propose(self) -> list[CuratorChange]:
        """What a run would change now."""
        return [change for target in self.targets() for change in self._plan(target)[1]]

    def apply(self) -> tuple[list[CuratorChange], list[MemoryReceipt | MemoryRefusal]]:
        """Change each target as one change; returns what was changed, and a receipt or refusal for each."""
        done: list[CuratorChange] = []
        results: list[MemoryReceipt | MemoryRefusal] = []
        for target in self.targets():
            for _ in range(_TRIES):
                seen, changes = self._plan(target)
                if not changes:
                    break
                result = self._write(target, seen, changes)
                if isinstance(result, MemoryReceipt) or result.reason not in ("drift", "conflict"):
                    results.append(result)
                    done += changes if isinstance(result, MemoryReceipt) else []
                    break
        return done, results

    def _plan(self, target: Target) -> tuple[str, list[CuratorChange]]:
        view, facts = self.store.view(target), self.store.facts(target)
        looked_at = CuratedTarget(target, facts, view.limit, self._directory_of(target))
        # Counting uses searches the record, and only a full memory needs it.
        is_full = view.used > FULL * view.limit
        return view.fingerprint, plan_changes(looked_at, self.uses(facts) if is_full else {})

    def _directory_of(self, target: Target) -> Path | None:
        """Where the files are that entries name: the working directory, unless the memory is another project's."""
        if self.directory is None or not is_project(target):
            return self.directory
        here = project_of(self.directory)
        is_here = here is not None and matching_projects([project_in(target)], here)
        return self.directory if is_here else None

    def _write(self, target: Target, seen: str, changes: Sequence[CuratorChange]) -> MemoryReceipt | MemoryRefusal:
        until = {each.entry.text: each.until for each in self.store.facts(target)}
        for change in changes:
            for text in change.leaves:
                Notes(self.notes).add(text, target, CURATOR, until.get(text, ""))
        rules = ", ".join(sorted({change.rule for change in changes}))
        request = WriteRequest(
            target,
            "batch",
            CURATOR,
            lambda current: _plan_edits(current, changes),
            f"Curated {file_name(target)}: {len(changes)} changes.",
            seen=seen,
            restores=frozenset(text for change in changes for text in change.after if text in change.before),
            note=f"curated: {rules}; what left is in notes",
        )
        return self.store.commit(request)


def _plan_edits(current: Sequence[str], changes: Sequence[CuratorChange]) -> EntryPlan:
    entries = list(current)
    for change in changes:
        new = [text for text in change.after if text not in change.before]
        for text in change.before:
            if text in change.after or text not in entries:
                continue
            place = entries.index(text)
            entries[place : place + 1] = [new.pop(0)] if new else []
    return EntryPlan(tuple(entries), rewrite_edits(current, entries))


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
