"""The one write path of curated memory: every change of every caller goes through `Writer.commit`.

In order: take the lock, settle what a killed writer left, read the file, refuse what must not be written over,
notice what others changed, judge the draft (round trip, scan, budget), then stage the file, journal the change, look
once more that nobody else wrote meanwhile, and publish. Until the journal line is on disk nothing has happened; after
the rename everything has.
"""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from memoranda.curated import memory_file, refusals
from memoranda.curated.backups import keep_backup
from memoranda.curated.draft import Draft, judge
from memoranda.curated.entries import serialise, serialise_to_bytes
from memoranda.curated.journal import Action, Change, Journal, next_change
from memoranda.curated.memory_file import FileState, Missing, Readable, Undecodable, Unreadable
from memoranda.curated.operations import Plan, rewrite_edits
from memoranda.curated.outcome import Origin, Receipt, Refusal
from memoranda.curated.screening import Screening
from memoranda.curated.settings import FILE_NAMES, TARGETS, CuratedSettings, Target
from memoranda.errors import LockTimeoutError, StorageError
from memoranda.support.files import make_private_directory, staged_path
from memoranda.support.lock import FileLock
from memoranda.support.recorded import replace_recorded

_OUTSIDE = Origin(actor="outside")
_MEMORANDA = Origin(actor="memoranda")


class Writer:
    """Writes the two files of one memory directory and their journal."""

    def __init__(self, directory: Path, settings: CuratedSettings, screening: Mapping[Target, Screening]) -> None:
        self.journal = Journal(directory / "journal.jsonl")
        self._directory = directory
        self._settings = settings
        self._screening = screening
        self._paths = {target: directory / FILE_NAMES[target] for target in TARGETS}
        self._staged = {target: staged_path(path) for target, path in self._paths.items()}
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

    def note_seen(self, target: Target, fingerprint: str) -> None:
        self._seen[target] = fingerprint

    @contextmanager
    def exclusive(self, timeout: float | None = None) -> Iterator[None]:
        """Be the only one who writes in this directory, with nothing left over from a writer that was killed."""
        make_private_directory(self._directory)
        with FileLock(self._directory / ".lock", self._settings.lock_timeout if timeout is None else timeout):
            self._settle()
            yield

    def has_leftovers(self) -> bool:
        return any(map(os.path.lexists, self._staged.values()))

    def commit(self, draft: Draft) -> Receipt | Refusal:
        """Carry out a change, or say why not; the file is then as it was."""
        try:
            with self.exclusive():
                return self._commit(draft)
        except LockTimeoutError as error:
            return Refusal(draft.target, "locked", str(error))
        except StorageError as error:
            return Refusal(draft.target, "storage", str(error))
        except OSError as error:
            return refusals.disk(draft.target, self.path(draft.target), error)

    def judge(self, draft: Draft, entries: Sequence[str]) -> Plan | Refusal:
        """What a draft would make of these entries, or why it may not be made."""
        return judge(draft, entries, self._screening[draft.target], self._settings.limit(draft.target))

    def writable_state(self, target: Target) -> Missing | Readable | Refusal:
        """The file as it is, or why it must not be written over."""
        path = self.path(target)
        state = self.read(target)
        if isinstance(state, Unreadable | Undecodable):
            return refusals.not_readable(target, state)
        if isinstance(state, Readable):
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                return refusals.symlink(target, path)
            # Who took the owner's write permission away means it, though a rename would not need it.
            if not mode & stat.S_IWUSR:
                return refusals.read_only(target, path)
        return state

    def _commit(self, draft: Draft) -> Receipt | Refusal:
        state = self.writable_state(draft.target)
        if isinstance(state, Refusal):
            return state
        if draft.seen not in (None, state.fingerprint):
            return refusals.changed_meanwhile(draft.target, self.path(draft.target))
        noticed = self._notice_outside_change(draft, state)
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
        return self._write(draft, state, planned, noticed)

    def _write(
        self, draft: Draft, state: Missing | Readable, planned: Plan, noticed: list[Change]
    ) -> Receipt | Refusal:
        path = self.path(draft.target)
        text, content = serialise(planned.entries), serialise_to_bytes(planned.entries)
        head = memory_file.fingerprint(content)
        # Only what others wrote can be anything but canonical.
        foreign = isinstance(state, Readable) and (noticed or draft.seen) and not state.is_canonical
        backup = keep_backup(state) if isinstance(state, Readable) and foreign else None
        change = next_change(
            noticed[-1] if noticed else self.journal.last(),
            draft.target, draft.action, draft.origin, planned.edits, head,
            refers_to=draft.refers_to, note=draft.note,
        )  # fmt: skip

        def still_wanted() -> bool:
            if not memory_file.still_holds(state):
                return False
            if draft.allow:
                texts = [edit.after for edit in planned.edits]
                self._screening[draft.target].allowances.allow(texts, draft.allow, draft.origin)
            return True

        if not replace_recorded(
            path,
            content,
            record=lambda: self.journal.append([*noticed, change]),
            still_wanted=still_wanted,
            settle=self._settle,
        ):
            return refusals.changed_while_writing(draft.target, path)
        self.note_seen(draft.target, head)
        self._known[draft.target] = Readable(path, content, text, head, list(planned.entries))
        return Receipt(draft.target, path, draft.done, planned.edits, change.number, backup)

    def _settle(self) -> None:
        """Remove staged files; one that was journalled but never published makes its change void. Needs the lock."""
        for target, staged in self._staged.items():
            if not os.path.lexists(staged):
                continue
            last, state = self.journal.last(), self.read(target)
            if (
                last is not None
                and last.target == target
                and last.heads.get(target) == memory_file.fingerprint(Path(staged).read_bytes())
                and isinstance(state, Missing | Readable)
                and state.fingerprint != last.heads[target]
            ):
                self.journal.append([self.journal.void_of(last, _MEMORANDA)])
            os.unlink(staged)

    def _notice_outside_change(self, draft: Draft, state: Missing | Readable) -> list[Change] | Refusal:
        """The journal lines for what others did to the file, or a refusal when the writer cannot know of it."""
        target, current, last = draft.target, state.fingerprint, self.journal.last()
        known = last.heads.get(target, memory_file.ABSENT) if last else memory_file.ABSENT
        seen = self._seen.get(target, current) == current
        if known == current and (seen or last is not None):
            return []
        accepted = draft.seen == current
        if not accepted and isinstance(state, Readable) and state.is_odd(self._settings.limit(target)):
            return refusals.odd_file(target, self.path(target), keep_backup(state))
        base = self.journal.entries_after(target) if last and target in last.heads else None
        # Where the journal cannot tell what was there before, the entries are taken down as they are found.
        action: Action = "found" if base is None else "outside"
        record = next_change(last, target, action, _OUTSIDE, rewrite_edits(base or (), state.entries), current)
        if accepted or (seen and not _looks_appended(base or (), state.entries)):
            return [record]
        backup = keep_backup(state) if isinstance(state, Readable) else None
        self.journal.append([record])
        self.note_seen(target, current)
        return refusals.changed_outside(target, self.path(target), record.number, backup)


def _looks_appended(known: Sequence[str], entries: Sequence[str]) -> bool:
    """Whether text was glued to the end of an entry, as `echo … >> MEMORY.md` does."""
    gone = set(known) - set(entries)
    return any(new.startswith(tuple(gone)) for new in set(entries) - set(known)) if gone else False
