"""The only writer of MEMORY.md and USER.md: every change by every caller goes through `MemoryWriter.commit`.

The writer locks the storage, reads the file, and compares it with the journal's last fingerprint, to decide what to do
about a change that another program made. Then it plans the requested change, checks it (`validate_request`), and lets
the storage write it together with its line of the journal.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path

from memoranda.memory.curated import refusals
from memoranda.memory.curated.entry_scanner import EntryScanner
from memoranda.memory.curated.journal import MemoryAction, MemoryChange, next_change
from memoranda.memory.curated.memory_file import (
    MemoryFileState,
    ReadableMemoryFile,
    WritableState,
    handle,
    reads_back_as_itself,
    serialise,
    serialise_to_bytes,
    size,
    store_backup,
)
from memoranda.memory.curated.operations import (
    Ambiguous,
    EntryPlan,
    MemoryReceipt,
    MemoryRefusal,
    NoMatch,
    rewrite_edits,
)
from memoranda.memory.curated.settings import CuratedSettings, Target, file_name
from memoranda.memory.curated.storage import MemoryStorage
from memoranda.safety.allowances import Allowances
from memoranda.storage.files.journaled_writer import WriteFailure, read_failure, run_exclusively
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.origin import Origin
from memoranda.support.text_file import ABSENT, UndecodableFile, UnreadableFile, fingerprint

Planner = Callable[[Sequence[str]], EntryPlan | NoMatch | Ambiguous | MemoryRefusal]

# An entry this many times over the limit is refused without being read.
_HOPELESS = 20

_OUTSIDE = Origin(actor="outside")


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A change to the entries that the writer reads under the lock.

    `done` and `nothing` are the messages of the receipt when entries changed, and when none did.
    `seen` is the fingerprint of the file that a person looked at: the writer replaces exactly that file, whatever its
    formatting. `allow` names scanner findings that a person accepts for the new text. `restores` is text that existed
    before: an undo restores it although the scanner or the limit would refuse it today (blocked text stays hidden).
    `until` is the last day of texts that have one, `facts` what is known about texts that come from elsewhere.
    `to_notes` are entries that become notes, `from_notes` notes that become entries, with the target that the note
    belongs to; the store changes the notes. `replaced` has the handles of the entries that replace some of `to_notes`.
    """

    target: Target
    action: MemoryAction
    origin: Origin
    plan: Planner
    done: str
    nothing: str = "Nothing changed."
    refers_to: int | None = None
    seen: str | None = None
    allow: frozenset[str] = frozenset()
    restores: frozenset[str] = frozenset()
    note: str = ""
    until: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, dict[str, str]] = field(default_factory=dict)
    to_notes: Mapping[str, Target] = field(default_factory=dict)
    from_notes: Mapping[str, Target] = field(default_factory=dict)
    replaced: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _PlannedWrite:
    request: WriteRequest
    state: WritableState
    plan: EntryPlan


class MemoryWriter:
    """Writes the files of one user's memory and their journal."""

    def __init__(self, storage: MemoryStorage, settings: CuratedSettings, allowances: Allowances) -> None:
        self._storage = storage
        self.journal = storage.journal
        self._settings = settings
        self._allowances = allowances
        self._scanners: dict[Target, EntryScanner] = {}
        # The project whose memory a prompt shows together with the notes and the profile.
        self.project: Target | None = None
        # The content of each file when it was last read: equal bytes need not be parsed again.
        self._known: dict[Target, ReadableMemoryFile] = {}
        # The fingerprint of each file when this store last read it; the store replaces no file that it has not seen.
        self._seen: dict[Target, str] = {}

    def path(self, target: Target) -> Path:
        return self._storage.path(target)

    def read(self, target: Target) -> MemoryFileState:
        state = self._storage.read(target, self._known.get(target))
        if isinstance(state, ReadableMemoryFile):
            self._known[target] = state
        return state

    def scanner(self, target: Target) -> EntryScanner:
        if target not in self._scanners:
            scanner = self._scanners[target] = EntryScanner(self._allowances)
            scanner.other_entries = partial(self._entries_beside, target)
        return self._scanners[target]

    def _entries_beside(self, target: Target) -> Sequence[str]:
        """The entries of the other files, which a prompt shows together with those of this one."""
        others = [*self._settings.targets(), *([self.project] if self.project else [])]
        states = [self.read(other) for other in others if other != target]
        return [text for state in states if isinstance(state, ReadableMemoryFile) for text in state.entries]

    def note_seen(self, target: Target, seen: str) -> None:
        """Remember the fingerprint of a file whose entries were shown to the caller."""
        self._seen[target] = seen

    def commit(self, request: WriteRequest) -> MemoryReceipt | MemoryRefusal:
        """Carry out a change, or refuse it and leave the file as it was."""
        outcome = self.commit_all([request])
        return outcome if isinstance(outcome, MemoryRefusal) else outcome[0]

    def commit_all(self, requests: Sequence[WriteRequest]) -> list[MemoryReceipt] | MemoryRefusal:
        """Carry out changes of different files together, or refuse all of them and leave every file as it was."""
        target = requests[0].target
        result = run_exclusively(self._storage.exclusive, self.path(target), partial(self._commit_all, requests))
        return refusals.from_failure(target, result) if isinstance(result, WriteFailure) else result

    def plan_now(self, request: WriteRequest) -> EntryPlan | MemoryRefusal:
        """What a request would change now, or why it would be refused."""
        state = self._writable_state(request.target)
        return state if isinstance(state, MemoryRefusal) else self._validate(request, state)

    def _validate(self, request: WriteRequest, state: WritableState) -> EntryPlan | MemoryRefusal:
        scanner, limit = self.scanner(request.target), self._settings.limit(request.target)
        return validate_request(request, state.entries, scanner, limit)

    def _writable_state(self, target: Target) -> WritableState | MemoryRefusal:
        """The file as it is, or why it must not be replaced."""
        state = self.read(target)
        if isinstance(state, UnreadableFile | UndecodableFile):
            return refusals.from_failure(target, read_failure(state))
        failure = self._storage.find_write_failure(state)
        return refusals.from_failure(target, failure) if failure else state

    def _commit_all(self, requests: Sequence[WriteRequest]) -> list[MemoryReceipt] | MemoryRefusal:
        writes: list[_PlannedWrite] = []
        receipts: dict[Target, MemoryReceipt] = {}
        outside_changes: list[MemoryChange] = []
        for request in requests:
            state = self._writable_state(request.target)
            if isinstance(state, MemoryRefusal):
                return state
            if request.seen not in (None, state.fingerprint):
                return refusals.changed_meanwhile(request.target, self.path(request.target))
            recorded = self._record_outside_change(request, state, outside_changes)
            if isinstance(recorded, MemoryRefusal):
                return recorded
            outside_changes = recorded
            planned = self._plan_write(request, state)
            if isinstance(planned, MemoryRefusal):
                return planned
            # A person who saw a file with odd formatting and kept its entries still wants it rewritten.
            rewrites = request.seen is not None and isinstance(state, ReadableMemoryFile) and not state.is_canonical
            if planned.edits or rewrites:
                writes.append(_PlannedWrite(request, state, planned))
            else:
                receipts[request.target] = self._note_facts(request, state)
        written = self._write(writes, outside_changes) if writes else []
        if isinstance(written, MemoryRefusal):
            return written
        receipts |= {receipt.target: receipt for receipt in written}
        return [receipts[request.target] for request in requests]

    def _plan_write(self, request: WriteRequest, state: WritableState) -> EntryPlan | MemoryRefusal:
        self.note_seen(request.target, state.fingerprint)
        if request.action == "undo" and self.journal.was_undone(request.refers_to):
            # Another process has undone it since the request was made.
            return refusals.nothing_to_undo(request.target, request.refers_to)
        return self._validate(request, state)

    def _note_facts(self, request: WriteRequest, state: WritableState) -> MemoryReceipt:
        """Journal another last day or other facts of entries that exist; the file does not change."""
        target, last_days, facts = request.target, _last_days(request, state.entries), _facts(request, state.entries)
        said = self._said_again(request, state.entries)
        if not last_days and not facts and not said:
            return MemoryReceipt(target, self.path(target), request.nothing)
        line = next_change(
            self.journal.last(), target, "until", request.origin, (), None, until=last_days, facts=facts, sources=said
        )
        self.journal.append([line])
        days = ", ".join(sorted(set(last_days.values())))
        done = f"Already there; valid until: {days}." if days else request.nothing
        return MemoryReceipt(target, self.path(target), done, change=line.number)

    def _said_again(self, request: WriteRequest, entries: Sequence[str]) -> dict[str, list[str]]:
        """The untrusted entries that are the user's own from now on, as `MemoryChange.sources` names them."""
        if request.origin.sources or request.action == "undo":
            return {}
        sources = self.journal.sources(request.target)
        return {handle(text): [] for text in request.until if text in entries and handle(text) in sources}

    def _write(
        self, writes: Sequence[_PlannedWrite], outside_changes: Sequence[MemoryChange]
    ) -> list[MemoryReceipt] | MemoryRefusal:
        contents = [serialise_to_bytes(each.plan.entries) for each in writes]
        last = outside_changes[-1] if outside_changes else self.journal.last()
        group = (last.number if last else 0) + 1 if len(writes) > 1 else None
        changes: list[MemoryChange] = []
        for each, content in zip(writes, contents, strict=True):
            said = self._said_again(each.request, each.plan.entries)
            last = _change_of(each, last, fingerprint(content), group, said)
            changes.append(last)
        was_outside = {change.target for change in outside_changes}
        backups = [self._back_up(each, each.request.target in was_outside) for each in writes]

        def allow_findings() -> None:
            for each in writes:
                if each.request.allow:
                    texts = [edit.after for edit in each.plan.edits]
                    self._allowances.allow(texts, each.request.allow, each.request.origin)

        failure = self._storage.replace_all(
            [(each.state, content) for each, content in zip(writes, contents, strict=True)],
            [*outside_changes, *changes],
            allow_findings,
        )
        if failure:
            return refusals.from_failure(writes[0].request.target, failure)
        return [
            self._receipt(each, content, change, backup)
            for each, content, change, backup in zip(writes, contents, changes, backups, strict=True)
        ]

    def _back_up(self, write: _PlannedWrite, was_outside: bool) -> Path | None:
        """Only other programs write files that are not canonical."""
        request, state = write.request, write.state
        if not isinstance(state, ReadableMemoryFile) or state.is_canonical or not (was_outside or request.seen):
            return None
        return store_backup(self._storage.backups, file_name(request.target), state)

    def _receipt(
        self, write: _PlannedWrite, content: bytes, change: MemoryChange, backup: Path | None
    ) -> MemoryReceipt:
        target, entries, head = change.target, write.plan.entries, change.heads[change.target]
        path, request = self.path(target), write.request
        self.note_seen(target, head)
        self._known[target] = ReadableMemoryFile(path, content, serialise(entries), head, list(entries))
        moved = tuple(request.to_notes)
        return MemoryReceipt(target, path, request.done, write.plan.edits, change.number, backup, moved)

    def _record_outside_change(
        self, request: WriteRequest, state: WritableState, earlier: Sequence[MemoryChange]
    ) -> list[MemoryChange] | MemoryRefusal:
        """The journal lines for what other programs did to this file and `earlier` ones, or a refusal.

        The caller knows a change if this store has read the file since, unless text was appended to an entry. A change
        that it cannot know is refused once: the refusal itself journals the change and notes it as seen, so that the
        same request passes when it is sent again. A file whose rewriting would alter text is left to a person.
        """
        target, path = request.target, self.path(request.target)
        last = earlier[-1] if earlier else self.journal.last()
        known = last.heads.get(target, ABSENT) if last else ABSENT
        if known == state.fingerprint and (last is not None or self._has_seen(target, state)):
            return [*earlier]
        # A person looked at exactly this file before sending the request.
        accepted = request.seen == state.fingerprint
        readable = state if isinstance(state, ReadableMemoryFile) else None
        if readable and not accepted and not readable.is_rewritable(self._settings.limit(target)):
            copy = store_backup(self._storage.backups, file_name(target), readable)
            return refusals.unrewritable_file(target, path, copy)
        # Where the journal does not know the earlier entries, it records the current ones as found.
        known_entries = self.journal.entries_after(target) if last and target in last.heads else None
        action: MemoryAction = "found" if known_entries is None else "outside"
        entries_before = known_entries or ()
        edits = rewrite_edits(entries_before, state.entries)
        line = next_change(last, target, action, _OUTSIDE, edits, state.fingerprint)
        if accepted or (self._has_seen(target, state) and not _was_appended_to_an_entry(entries_before, state.entries)):
            return [*earlier, line]
        backup = store_backup(self._storage.backups, file_name(target), readable) if readable else None
        self.journal.append([*earlier, line])
        self.note_seen(target, state.fingerprint)
        return refusals.changed_outside(target, path, line.number, backup)

    def _has_seen(self, target: Target, state: WritableState) -> bool:
        """Whether the file is as this store last read it; a store that never read it has missed nothing."""
        return self._seen.get(target, state.fingerprint) == state.fingerprint


def _change_of(
    write: _PlannedWrite, last: MemoryChange | None, head: str, group: int | None, sources: Mapping[str, list[str]]
) -> MemoryChange:
    request = write.request
    return next_change(
        last, request.target, request.action, request.origin, write.plan.edits, head,
        refers_to=request.refers_to, note=request.note, until=_last_days(request, write.plan.entries), group=group,
        facts=_facts(request, write.plan.entries), sources=dict(sources),
        to_notes={handle(text): owner for text, owner in request.to_notes.items()},
        from_notes={handle(text): owner for text, owner in request.from_notes.items()},
    )  # fmt: skip


def _last_days(request: WriteRequest, entries: Sequence[str]) -> dict[str, str]:
    return {handle(text): until for text, until in request.until.items() if until and text in entries}


def _facts(request: WriteRequest, entries: Sequence[str]) -> dict[str, dict[str, str]]:
    return {handle(text): facts for text, facts in request.facts.items() if text in entries}


def validate_request(
    request: WriteRequest, entries: Sequence[str], scanner: EntryScanner, limit: int
) -> EntryPlan | MemoryRefusal:
    """Plan a request on these entries, or say why it is refused."""
    planned = request.plan(entries)
    if isinstance(planned, NoMatch | Ambiguous):
        return refusals.unmatched(request.target, planned)
    if isinstance(planned, MemoryRefusal) or not planned.edits:
        return planned
    written = {edit.after for edit in planned.edits if edit.after is not None}
    new = {text for text in written - request.restores if text not in entries}
    after = size(planned.entries)
    over_budget = bool(new) and after > limit and after > size(entries)
    if over_budget and after > _HOPELESS * limit:
        # Reading so much for attacks would take minutes, and it is refused in any case.
        return refusals.over_budget(request.target, after, limit)
    # The existing entries read back as themselves, so only the new ones need the check.
    if not all(map(reads_back_as_itself, written)):
        return refusals.delimiter_in_text(request.target)
    if found := scanner.findings_in(planned.entries, new) - request.allow:
        return refusals.blocked(request.target, tuple(sorted(found)))
    if over_budget:
        return refusals.over_budget(request.target, after, limit)
    return planned


def _was_appended_to_an_entry(known: Sequence[str], entries: Sequence[str]) -> bool:
    """Whether text was added to the end of an entry, as `echo … >> MEMORY.md` does."""
    gone = set(known) - set(entries)
    return any(new.startswith(tuple(gone)) for new in set(entries) - set(known)) if gone else False
