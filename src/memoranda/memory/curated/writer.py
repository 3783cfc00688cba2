"""The only writer of MEMORY.md and USER.md: every change by every caller goes through `MemoryWriter.commit`.

The writer locks the storage, reads the file, and compares it with the journal's last fingerprint, to decide what to do
about a change that another program made. Then it plans the requested change, checks it (`validate_request`), and lets
the storage write it together with its line of the journal.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
    `until` is the last day of texts that have one. `group` is an earlier change that is undone together with this one.
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
    group: int | None = None


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
        """The scanner of a target."""
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
        result = run_exclusively(self._storage.exclusive, self.path(request.target), partial(self._commit, request))
        return refusals.from_failure(request.target, result) if isinstance(result, WriteFailure) else result

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

    def _commit(self, request: WriteRequest) -> MemoryReceipt | MemoryRefusal:
        target = request.target
        state = self._writable_state(target)
        if isinstance(state, MemoryRefusal):
            return state
        if request.seen not in (None, state.fingerprint):
            return refusals.changed_meanwhile(target, self.path(target))
        outside_changes = self._record_outside_change(request, state)
        if isinstance(outside_changes, MemoryRefusal):
            return outside_changes
        self.note_seen(target, state.fingerprint)
        if request.action == "undo" and self.journal.was_undone(request.refers_to):
            # Another process has undone it since the request was made.
            return refusals.nothing_to_undo(target, request.refers_to)
        planned = self._validate(request, state)
        if isinstance(planned, MemoryRefusal):
            return planned
        # A person who saw a file with odd formatting and kept its entries still wants it rewritten.
        rewrites = request.seen is not None and isinstance(state, ReadableMemoryFile) and not state.is_canonical
        if not planned.edits and not rewrites:
            return self._note_last_days(request, state)
        return self._write(request, state, planned, outside_changes)

    def _note_last_days(self, request: WriteRequest, state: WritableState) -> MemoryReceipt:
        """Journal another last day of entries that exist; the file does not change."""
        target, last_days = request.target, _last_days(request, state.entries)
        if not last_days:
            return MemoryReceipt(target, self.path(target), request.nothing)
        line = next_change(self.journal.last(), target, "until", request.origin, (), None, until=last_days)
        self.journal.append([line])
        days = ", ".join(sorted(set(last_days.values())))
        return MemoryReceipt(target, self.path(target), f"Already there; valid until: {days}.", change=line.number)

    def _write(
        self, request: WriteRequest, state: WritableState, planned: EntryPlan, outside_changes: list[MemoryChange]
    ) -> MemoryReceipt | MemoryRefusal:
        target, path = request.target, self.path(request.target)
        content = serialise_to_bytes(planned.entries)
        head = fingerprint(content)
        # Only other programs write files that are not canonical.
        backup = None
        if isinstance(state, ReadableMemoryFile) and (outside_changes or request.seen) and not state.is_canonical:
            backup = store_backup(self._storage.backups, file_name(target), state)
        last = outside_changes[-1] if outside_changes else self.journal.last()
        change = next_change(
            last, target, request.action, request.origin, planned.edits, head,
            refers_to=request.refers_to, note=request.note, until=_last_days(request, planned.entries),
            group=request.group,
        )  # fmt: skip

        def allow_findings() -> None:
            if request.allow:
                texts = [edit.after for edit in planned.edits]
                self._allowances.allow(texts, request.allow, request.origin)

        failure = self._storage.replace(state, content, [*outside_changes, change], allow_findings)
        if failure:
            return refusals.from_failure(target, failure)
        self.note_seen(target, head)
        self._known[target] = ReadableMemoryFile(path, content, serialise(planned.entries), head, list(planned.entries))
        return MemoryReceipt(target, path, request.done, planned.edits, change.number, backup)

    def _record_outside_change(self, request: WriteRequest, state: WritableState) -> list[MemoryChange] | MemoryRefusal:
        """The journal lines for what other programs did to the file, or a refusal.

        The caller knows a change if this store has read the file since, unless text was appended to an entry. A change
        that it cannot know is refused once: the refusal itself journals the change and notes it as seen, so that the
        same request passes when it is sent again. A file whose rewriting would alter text is left to a person.
        """
        target, path, last = request.target, self.path(request.target), self.journal.last()
        known = last.heads.get(target, ABSENT) if last else ABSENT
        if known == state.fingerprint and (last is not None or self._has_seen(target, state)):
            return []
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
            return [line]
        backup = store_backup(self._storage.backups, file_name(target), readable) if readable else None
        self.journal.append([line])
        self.note_seen(target, state.fingerprint)
        return refusals.changed_outside(target, path, line.number, backup)

    def _has_seen(self, target: Target, state: WritableState) -> bool:
        """Whether the file is as this store last read it; a store that never read it has missed nothing."""
        return self._seen.get(target, state.fingerprint) == state.fingerprint


def _last_days(request: WriteRequest, entries: Sequence[str]) -> dict[str, str]:
    return {handle(text): until for text, until in request.until.items() if until and text in entries}


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
