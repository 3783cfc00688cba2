"""The one write path of curated memory: every change of every caller goes through `Writer.commit`.

In order: take the lock, settle what a killed writer left, read the file, refuse what must not be written over,
notice what others changed, make the plan, judge it (round trip, scan, budget), then stage the file, journal the
change, and publish. Until the journal line is on disk nothing has happened; after the rename everything has.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memoranda.curated import memory_file, refusals
from memoranda.curated.backups import keep_backup
from memoranda.curated.entries import keeps_apart, serialise, size
from memoranda.curated.journal import Action, Change, Journal, next_change
from memoranda.curated.memory_file import FileState, Missing, Readable, Undecodable, Unreadable
from memoranda.curated.operations import Ambiguous, NoMatch, Plan, rewrite_edits
from memoranda.curated.outcome import Origin, Receipt, Refusal
from memoranda.curated.screening import Screening
from memoranda.curated.settings import FILE_NAMES, TARGETS, CuratedSettings, Target
from memoranda.errors import LockTimeoutError, StorageError
from memoranda.support.files import discard_staged, make_private_directory, publish, stage, staged_path
from memoranda.support.lock import FileLock

Planner = Callable[[Sequence[str]], Plan | NoMatch | Ambiguous | Refusal]
_OUTSIDE = Origin(actor="outside")
_MEMORANDA = Origin(actor="memoranda")


@dataclass(frozen=True, slots=True)
class Draft:
    """A change somebody wants: what to do with the entries that will be found under the lock.

    `seen` is the fingerprint of the file as a person looked at it: just that file, odd as it may be, is written over.
    `allow` names scanner findings that a person accepts for the new text.
    """

    target: Target
    action: Action
    origin: Origin
    plan: Planner
    done: str
    nothing: str = "Nothing changed."
    refers_to: int | None = None
    seen: str | None = None
    allow: frozenset[str] = frozenset()
    note: str = ""


class Writer:
    """Writes the two files of one memory directory and their journal."""

    def __init__(self, directory: Path, settings: CuratedSettings, screening: Mapping[Target, Screening]) -> None:
        self.directory = directory
        self.journal = Journal(directory / "journal.jsonl")
        self._settings = settings
        self._screening = screening
        self._paths = {target: directory / FILE_NAMES[target] for target in TARGETS}
        # What each file held when it was last read: equal bytes need not be parsed again.
        self._known: dict[Target, Readable] = {}
        # The fingerprint of each file as this store last saw it; what it has not seen it does not write over.
        self._seen: dict[Target, str] = {}

    def path(self, target: Target) -> Path:
        return self._paths[target]

    def read(self, target: Target) -> FileState:
        """What a file holds at this moment."""
        state = memory_file.read(self._paths[target], self._known.get(target))
        if isinstance(state, Readable):
            self._known[target] = state
        return state

    def lock(self, timeout: float | None = None) -> FileLock:
        make_private_directory(self.directory)
        return FileLock(self.directory / ".lock", self._settings.lock_timeout if timeout is None else timeout)

    def note_seen(self, target: Target, fingerprint: str) -> None:
        self._seen[target] = fingerprint

    def commit(self, draft: Draft) -> Receipt | Refusal:
        """Carry out a change, or say why not; the file is then as it was."""
        try:
            with self.lock():
                return self._commit_locked(draft)
        except LockTimeoutError as error:
            return Refusal(draft.target, "locked", str(error))
        except StorageError as error:
            return Refusal(draft.target, "storage", str(error))
        except OSError as error:
            return refusals.disk(draft.target, self.path(draft.target), error)

    def settle(self) -> None:
        """Clear up after a killed writer, unless somebody is writing right now or the disk is read-only."""
        if not any(os.path.lexists(staged_path(path)) for path in self._paths.values()):
            return
        try:
            with self.lock(timeout=0):
                self._settle_locked()
        except (LockTimeoutError, PermissionError):
            return

    def judge(self, draft: Draft, entries: Sequence[str]) -> Plan | Refusal:
        """What a change would make of these entries, or why it may not be made."""
        planned = draft.plan(entries)
        if isinstance(planned, NoMatch | Ambiguous):
            return refusals.unmatched(draft.target, planned)
        if isinstance(planned, Refusal):
            return planned
        if not planned.edits:
            return planned
        return (
            self._refuse_unstorable(draft, planned)
            or self._refuse_unsafe(draft, planned)
            or self._refuse_oversize(draft, entries, planned)
            or planned
        )

    def _commit_locked(self, draft: Draft) -> Receipt | Refusal:
        last = self._settle_locked()
        state = self.readable_state(draft.target)
        if isinstance(state, Refusal):
            return state
        if draft.seen not in (None, state.fingerprint):
            return refusals.changed_meanwhile(draft.target, self.path(draft.target))
        noticed = self._notice_outside_change(draft, last, state)
        if isinstance(noticed, Refusal):
            return noticed
        self.note_seen(draft.target, state.fingerprint)
        planned = self.judge(draft, state.entries)
        if isinstance(planned, Refusal):
            return planned
        # A person who saw an odd file and left its entries as they are still wants it put right.
        mends = draft.seen is not None and isinstance(state, Readable) and not state.is_canonical
        if not planned.edits and not mends:
            return Receipt(draft.target, self.path(draft.target), draft.nothing)
        return self._write(draft, state, planned, last, noticed)

    def _write(
        self,
        draft: Draft,
        state: Missing | Readable,
        planned: Plan,
        last: Change | None,
        noticed: list[Change],
    ) -> Receipt:
        path = self.path(draft.target)
        text = serialise(planned.entries)
        content = text.encode()
        head = memory_file.fingerprint(content)
        # Only what others wrote can be anything but canonical.
        foreign = isinstance(state, Readable) and (noticed or draft.seen) and not state.is_canonical
        backup = keep_backup(state) if isinstance(state, Readable) and foreign else None
        change = next_change(
            noticed[-1] if noticed else last,
            draft.target, draft.action, draft.origin, planned.edits, head,
            refers_to=draft.refers_to, note=draft.note,
        )  # fmt: skip
        stage(path, content)
        try:
            if draft.allow:
                self._screening[draft.target].allow([edit.after for edit in planned.edits], draft.allow, draft.origin)
            self.journal.append([*noticed, change])
        except BaseException:
            discard_staged(path)
            raise
        self._publish(path)
        self.note_seen(draft.target, head)
        self._known[draft.target] = Readable(path, content, text, list(planned.entries), head)
        return Receipt(draft.target, path, draft.done, planned.edits, change.number, backup)

    def _publish(self, path: Path) -> None:
        try:
            publish(path)
        except OSError as error:
            if os.path.lexists(staged_path(path)):
                self._settle_locked()
                raise
            raise StorageError(
                f"{path} was written, but the disk did not confirm it ({error.strerror}). "
                "It may be lost if the power fails now; check the disk."
            ) from error

    def _settle_locked(self) -> Change | None:
        """Remove staged files; one that was journalled but never published makes its change void."""
        last = self.journal.last()
        for target in TARGETS:
            staged = staged_path(self.path(target))
            if not os.path.lexists(staged):
                continue
            state = self.read(target)
            if (
                last is not None
                and last.target == target
                and last.heads.get(target) == memory_file.fingerprint(Path(staged).read_bytes())
                and isinstance(state, Missing | Readable)
                and state.fingerprint != last.heads[target]
            ):
                last = next_change(last, target, "void", _MEMORANDA, (), state.fingerprint, refers_to=last.number)
                self.journal.append([last])
            os.unlink(staged)
        return last

    def readable_state(self, target: Target) -> Missing | Readable | Refusal:
        """The file as it is, or why it must not be written over."""
        path = self.path(target)
        state = self.read(target)
        if isinstance(state, Unreadable | Undecodable):
            return refusals.not_readable(target, state)
        if path.is_symlink():
            return refusals.symlink(target, path)
        return state

    def _notice_outside_change(
        self, draft: Draft, last: Change | None, state: Missing | Readable
    ) -> list[Change] | Refusal:
        """The journal lines for what others did to the file, or a refusal when the writer cannot know of it."""
        target, current = draft.target, state.fingerprint
        known = last.heads.get(target, memory_file.ABSENT) if last else memory_file.ABSENT
        if known == current:
            return []
        accepted = draft.seen == current
        if not accepted and isinstance(state, Readable) and state.is_odd(self._settings.limit(target)):
            return refusals.odd_file(target, self.path(target), keep_backup(state))
        base = self.journal.entries_after(target)
        edits = rewrite_edits(base, state.entries)
        action: Action = "outside" if last and target in last.heads else "found"
        record = next_change(last, target, action, _OUTSIDE, edits, current)
        seen = self._seen.get(target, current) == current
        if accepted or (seen and not _looks_appended(base, state.entries)):
            return [record]
        backup = keep_backup(state) if isinstance(state, Readable) else None
        self.journal.append([record])
        self.note_seen(target, current)
        return refusals.changed_outside(target, self.path(target), record.number, backup)

    def _refuse_unstorable(self, draft: Draft, planned: Plan) -> Refusal | None:
        # The entries that were there read back as themselves, so it is enough that each new one does between any two.
        new = [edit.after for edit in planned.edits if edit.after is not None]
        return None if all(map(keeps_apart, new)) else refusals.delimiter_in_text(draft.target)

    def _refuse_unsafe(self, draft: Draft, planned: Plan) -> Refusal | None:
        new = {edit.after for edit in planned.edits if edit.after is not None}
        found: set[str] = set()
        if new:
            for entry in self._screening[draft.target].screen(planned.entries):
                if entry.findings and entry.text in new:
                    found.update(entry.findings)
        found -= draft.allow
        return refusals.blocked(draft.target, tuple(sorted(found))) if found else None

    def _refuse_oversize(self, draft: Draft, entries: Sequence[str], planned: Plan) -> Refusal | None:
        limit, after = self._settings.limit(draft.target), size(planned.entries)
        if after <= limit or after <= size(entries):
            return None
        return refusals.over_budget(draft.target, after, limit)


def _looks_appended(known: Sequence[str], entries: Sequence[str]) -> bool:
    """Whether text was glued to the end of an entry, as `echo … >> MEMORY.md` does."""
    gone = set(known) - set(entries)
    return any(new.startswith(tuple(gone)) for new in set(entries) - set(known)) if gone else False
