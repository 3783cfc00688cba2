"""The one write path of curated memory: every change of every caller goes through `Writer.commit`.

In order: take the lock, settle what a killed writer left, read the file, refuse what must not be written over,
notice what others changed, judge the request (round trip, scan, budget), then stage the file, journal the change, look
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
from memoranda.curated.entry_format import serialise, serialise_to_bytes
from memoranda.curated.entry_scanner import EntryScanner
from memoranda.curated.journal import MemoryAction, MemoryChange, MemoryJournal, next_change
from memoranda.curated.memory_file import (
    MemoryFileState,
    MissingMemoryFile,
    ReadableMemoryFile,
    UndecodableFile,
    UnreadableFile,
    WritableState,
)
from memoranda.curated.operations import EntryPlan, rewrite_edits
from memoranda.curated.settings import FILE_NAMES, TARGETS, CuratedSettings, Target
from memoranda.curated.write_request import WriteRequest, validate_request
from memoranda.curated.write_result import MemoryReceipt, MemoryRefusal, Origin
from memoranda.errors import LockTimeoutError, StorageError
from memoranda.support.durable_files import make_private_directory, staged_path
from memoranda.support.file_lock import FileLock
from memoranda.support.journaled_replace import replace_with_journal

_OUTSIDE = Origin(actor="outside")
_MEMORANDA = Origin(actor="memoranda")


class MemoryWriter:
    """Writes the two files of one memory directory and their journal."""

    def __init__(self, directory: Path, settings: CuratedSettings, screening: Mapping[Target, EntryScanner]) -> None:
        self.journal = MemoryJournal(directory / "journal.jsonl")
        self._directory = directory
        self._settings = settings
        self._screening = screening
        self._paths = {target: directory / FILE_NAMES[target] for target in TARGETS}
        self._staged = {target: staged_path(path) for target, path in self._paths.items()}
        # What each file held when it was last read: equal bytes need not be parsed again.
        self._known: dict[Target, ReadableMemoryFile] = {}
        # The fingerprint of each file as this store last saw it; what it has not seen it does not write over.
        self._seen: dict[Target, str] = {}

    def path(self, target: Target) -> Path:
        return self._paths[target]

    def read(self, target: Target) -> MemoryFileState:
        """What a file holds at this moment."""
        state = memory_file.read(self._paths[target], self._known.get(target))
        if isinstance(state, ReadableMemoryFile):
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

    def commit(self, request: WriteRequest) -> MemoryReceipt | MemoryRefusal:
        """Carry out a change, or say why not; the file is then as it was."""
        try:
            with self.exclusive():
                return self._commit(request)
        except LockTimeoutError as error:
            return MemoryRefusal(request.target, "locked", str(error))
        except StorageError as error:
            return MemoryRefusal(request.target, "storage", str(error))
        except OSError as error:
            return refusals.disk(request.target, self.path(request.target), error)

    def validate_request(self, request: WriteRequest, entries: Sequence[str]) -> EntryPlan | MemoryRefusal:
        """What a request would make of these entries, or why it may not be made."""
        return validate_request(request, entries, self._screening[request.target], self._settings.limit(request.target))

    def writable_state(self, target: Target) -> WritableState | MemoryRefusal:
        """The file as it is, or why it must not be written over."""
        path = self.path(target)
        state = self.read(target)
        if isinstance(state, UnreadableFile | UndecodableFile):
            return refusals.not_readable(target, state)
        if isinstance(state, ReadableMemoryFile):
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                return refusals.symlink(target, path)
            # Who took the owner's write permission away means it, though a rename would not need it.
            if not mode & stat.S_IWUSR:
                return refusals.read_only(target, path)
        return state

    def _commit(self, request: WriteRequest) -> MemoryReceipt | MemoryRefusal:
        state = self.writable_state(request.target)
        if isinstance(state, MemoryRefusal):
            return state
        if request.seen not in (None, state.fingerprint):
            return refusals.changed_meanwhile(request.target, self.path(request.target))
        noticed = self._notice_outside_change(request, state)
        if isinstance(noticed, MemoryRefusal):
            return noticed
        self.note_seen(request.target, state.fingerprint)
        planned = self.validate_request(request, state.entries)
        if isinstance(planned, MemoryRefusal):
            return planned
        # A person who saw an odd file and left its entries as they are still wants it put right.
        mends = request.seen is not None and isinstance(state, ReadableMemoryFile) and not state.is_canonical
        if not planned.edits and not mends:
            return MemoryReceipt(request.target, self.path(request.target), request.nothing)
        return self._write(request, state, planned, noticed)

    def _write(
        self, request: WriteRequest, state: WritableState, planned: EntryPlan, noticed: list[MemoryChange]
    ) -> MemoryReceipt | MemoryRefusal:
        path = self.path(request.target)
        text, content = serialise(planned.entries), serialise_to_bytes(planned.entries)
        head = memory_file.fingerprint(content)
        # Only what others wrote can be anything but canonical.
        foreign = isinstance(state, ReadableMemoryFile) and (noticed or request.seen) and not state.is_canonical
        backup = keep_backup(state) if isinstance(state, ReadableMemoryFile) and foreign else None
        change = next_change(
            noticed[-1] if noticed else self.journal.last(),
            request.target, request.action, request.origin, planned.edits, head,
            refers_to=request.refers_to, note=request.note,
        )  # fmt: skip

        def still_wanted() -> bool:
            if not memory_file.still_holds(state):
                return False
            if request.allow:
                texts = [edit.after for edit in planned.edits]
                self._screening[request.target].allowances.allow(texts, request.allow, request.origin)
            return True

        if not replace_with_journal(
            path,
            content,
            record=lambda: self.journal.append([*noticed, change]),
            still_wanted=still_wanted,
            settle=self._settle,
        ):
            return refusals.changed_while_writing(request.target, path)
        self.note_seen(request.target, head)
        self._known[request.target] = ReadableMemoryFile(path, content, text, head, list(planned.entries))
        return MemoryReceipt(request.target, path, request.done, planned.edits, change.number, backup)

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
                and isinstance(state, MissingMemoryFile | ReadableMemoryFile)
                and state.fingerprint != last.heads[target]
            ):
                self.journal.append([self.journal.void_of(last, _MEMORANDA)])
            os.unlink(staged)

    def _notice_outside_change(self, request: WriteRequest, state: WritableState) -> list[MemoryChange] | MemoryRefusal:
        """The journal lines for what others did to the file, or a refusal when the writer cannot know of it."""
        target, current, last = request.target, state.fingerprint, self.journal.last()
        known = last.heads.get(target, memory_file.ABSENT) if last else memory_file.ABSENT
        seen = self._seen.get(target, current) == current
        if known == current and (seen or last is not None):
            return []
        accepted = request.seen == current
        if not accepted and isinstance(state, ReadableMemoryFile) and state.is_odd(self._settings.limit(target)):
            return refusals.odd_file(target, self.path(target), keep_backup(state))
        base = self.journal.entries_after(target) if last and target in last.heads else None
        # Where the journal cannot tell what was there before, the entries are taken down as they are found.
        action: MemoryAction = "found" if base is None else "outside"
        record = next_change(last, target, action, _OUTSIDE, rewrite_edits(base or (), state.entries), current)
        if accepted or (seen and not _looks_appended(base or (), state.entries)):
            return [record]
        backup = keep_backup(state) if isinstance(state, ReadableMemoryFile) else None
        self.journal.append([record])
        self.note_seen(target, current)
        return refusals.changed_outside(target, self.path(target), record.number, backup)


def _looks_appended(known: Sequence[str], entries: Sequence[str]) -> bool:
    """Whether text was glued to the end of an entry, as `echo … >> MEMORY.md` does."""
    gone = set(known) - set(entries)
    return any(new.startswith(tuple(gone)) for new in set(entries) - set(known)) if gone else False
