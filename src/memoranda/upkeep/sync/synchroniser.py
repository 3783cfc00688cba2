"""Synchronises a home with the other machines of a shared folder.

A run collects what changed here since the last one, reads what other machines have appended to their bundles, and
appends what changed here to its own. A run that is killed is continued by the next one: what it did is durable in small
steps, and doing a step again changes nothing.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from memoranda.errors import SyncError
from memoranda.home.session_db import SessionDB
from memoranda.memory.curated.store import MemoryStore
from memoranda.storage.files.file_lock import FileLock
from memoranda.upkeep.forgetting.sessions import DeletedSessions, erase
from memoranda.upkeep.sync.bundle_files import (
    MAX_PART_BYTES,
    BundleHead,
    BundlePart,
    Record,
    SharedFolder,
    encode_head,
    encode_record,
)
from memoranda.upkeep.sync.delivery import (
    Written,
    has_written,
    is_foreign,
    is_whole,
    note_read,
    note_written,
    report_waits,
    unread_parts,
    written,
)
from memoranda.upkeep.sync.forgotten_texts import forget_here, take_note
from memoranda.upkeep.sync.record_check import check_records
from memoranda.upkeep.sync.run import Run, SyncReport
from memoranda.upkeep.sync.session_changes import Since, collect_items, collect_sessions, item_records, session_records
from memoranda.upkeep.sync.session_merge import link_sessions, merge_items, merge_sessions
from memoranda.upkeep.sync.things import NOUNS, collect_things, merge_things, thing_records
from memoranda.upkeep.sync_state import SyncState

LOCK_NAME = "sync.lock"
_LOCK_TIMEOUT = 10.0
_NAMES = {"session": "sessions", "message": "messages", "deleted": "deleted sessions", "item": "items"} | NOUNS


def synchronise(
    root: Path,
    db: SessionDB,
    memory: MemoryStore,
    directory: Path,
    *,
    passphrase: str | None = None,
    dry_run: bool = False,
    rewrite: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> SyncReport:
    """Synchronise the home at `root`; `db` is the sessions of one user, `memory` the same user's curated memory.

    With `rewrite`, everything that this home has is written again, wherever it came from. Raises SyncError when the
    folder cannot be used, or not with this passphrase. A part of a bundle that cannot be used is reported, and has no
    effect.
    """
    if not directory.is_dir():
        raise SyncError(f"{directory} is not a directory. Create it first, in the folder that your machines share.")
    folder = SharedFolder(directory, passphrase)
    folder.verify()
    with FileLock(root / LOCK_NAME, _LOCK_TIMEOUT), closing(SyncState(root)) as state:
        run = Run(root, db, memory, state, progress)
        run.report.dry_run = dry_run
        _synchronise(run, folder, dry_run, rewrite)
        run.commit()
    return run.report


def collect(run: Run) -> None:
    """Give a stamp to everything that changed here since the last run."""
    collect_sessions(run)
    collect_items(run)
    collect_things(run)


def _synchronise(run: Run, folder: SharedFolder, dry_run: bool, rewrite: bool) -> None:
    run.start()
    if is_foreign(run.tables, folder, run.machine):
        # A copy of this home writes here, too: from now on this one is another machine.
        run.become_another()
    run.report.machine = run.machine
    run.tables.set_value("machine", run.machine)
    if rewrite:
        run.versions.set_value("everything", str(run.number))
    if not dry_run:
        take_note(run)
    collect(run)
    if dry_run:
        _preview(run, folder)
        return
    link_sessions(run)
    run.commit()
    for head, part, records in _arrived(run, folder):
        _merge(run, records)
        note_read(run, head, part)
        run.commit()
    run.sender = run.sender_name = ""
    report_waits(run, folder)
    if forget_here(run):
        # It may have changed what was not sent yet.
        take_note(run)
        collect(run)
    if run.has_forgotten:
        erased = DeletedSessions()
        erase(run.db, erased)
        run.report.notes += erased.problems
    _publish(run, folder)
    run.report.conflicts = sum(each.undecided for each in run.tables.log())


def _arrived(run: Run, folder: SharedFolder) -> Iterator[tuple[BundleHead, BundlePart, list[Record]]]:
    """Yield the parts to read with their checked records; nothing of a machine after a part that cannot be used."""
    refused: set[str] = set()
    for head, part in unread_parts(run, folder):
        if head.machine in refused:
            continue
        run.progress(f"Reading {head.name}")
        try:
            records = check_records(folder.read(head, part), folder.path(head.machine))
        except SyncError as error:
            run.report.refused.append(str(error))
            refused.add(head.machine)
            continue
        run.sender, run.sender_name = head.machine, head.name
        yield head, part, records


def _merge(run: Run, records: list[Record]) -> None:
    run.progress(f"Merging {len(records):,} records of {run.sender_name}")
    merge_sessions(run, records)
    merge_items(run, records)
    merge_things(run, records)
    link_sessions(run)


def _publish(run: Run, folder: SharedFolder) -> None:
    """Append what changed here; after something was forgotten or lost, write everything again."""
    whole = is_whole(run.tables, folder, run.machine)
    if not whole and has_written(run.tables, folder):
        run.report.notes.append("The bundle of this machine was lost or damaged; all of it is written again.")
    known = written(run.tables, folder.head(run.machine).generation) if whole else None
    reasons = [int(run.versions.value(name) or 0) for name in ("rewrite", "everything")]
    counts: Counter[str] = Counter()
    if known is not None and known.begun >= max(reasons):
        _append(run, folder, known, counts)
    else:
        _write_all(run, folder, counts, everything=reasons[1] > (known.begun if known else 0))
    run.report.sent = _named(counts)


def _append(run: Run, folder: SharedFolder, known: Written, counts: Counter[str]) -> None:
    head, content = folder.head(run.machine), folder.content(run.machine)
    digest, size = hashlib.sha256(content), known.size
    parts = list(_parts(_records(run, Since(known.run, known.message, None)), counts))
    for lines in parts:
        part = folder.encode_part(head, lines, run.clock.last)
        digest.update(part)
        size += len(part)
        # Only the last part says how far it goes: without it, all are written again.
        is_last = lines is parts[-1]
        reached = (run.number, run.versions.position()) if is_last else (known.run, known.message)
        before = written(run.tables, head.generation)
        note_written(run.tables, folder, head.generation, Written(size, digest.hexdigest(), known.begun, *reached))
        run.commit()
        try:
            folder.append(run.machine, part)
        except SyncError:
            if before is not None:
                note_written(run.tables, folder, head.generation, before)
                run.commit()
            raise
        run.report.parts_written += 1


def _write_all(run: Run, folder: SharedFolder, counts: Counter[str], *, everything: bool) -> None:
    head = folder.new_head(run.machine)
    others = frozenset() if everything else frozenset(folder.machines()) - {run.machine}
    digest, size = hashlib.sha256(), 0

    def chunks() -> Iterator[bytes]:
        yield encode_head(head)
        for lines in _parts(_records(run, Since(-1, 0, others)), counts):
            run.report.parts_written += 1
            yield folder.encode_part(head, lines, run.clock.last)

    def measured() -> Iterator[bytes]:
        nonlocal size
        for chunk in chunks():
            digest.update(chunk)
            size += len(chunk)
            yield chunk

    # From now on this generation is known as this home's own, also if the run is killed.
    note_written(run.tables, folder, head.generation, Written(0, "", 0, -1, 0))
    run.commit()
    folder.replace(head, measured())
    folder.remove_copies(run.machine)
    now = Written(size, digest.hexdigest(), run.number, run.number, run.versions.position())
    note_written(run.tables, folder, head.generation, now)
    run.commit()


def _records(run: Run, since: Since) -> Iterator[Record]:
    yield from session_records(run, since)
    yield from item_records(run, since)
    yield from thing_records(run, since)


def _named(counts: Counter[str]) -> dict[str, int]:
    return {_NAMES[kind]: count for kind, count in counts.items() if _NAMES[kind]}


def _kind_of(record: Record) -> str:
    return str(record["kind"] if record["t"] == "thing" else record["t"])


def _parts(records: Iterator[Record], counts: Counter[str]) -> Iterator[list[bytes]]:
    """Yield the lines of each part."""
    part: list[bytes] = []
    size = 0
    for record in records:
        counts[_kind_of(record)] += 1
        part.append(encode_record(record))
        size += len(part[-1])
        if size >= MAX_PART_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def _preview(run: Run, folder: SharedFolder) -> None:
    """Count what a run would send and receive."""
    whole = is_whole(run.tables, folder, run.machine)
    known = written(run.tables, folder.head(run.machine).generation) if whole else None
    since = Since(known.run, known.message, None) if known else Since(-1, 0, frozenset(folder.machines()))
    run.report.sent = _named(Counter(_kind_of(record) for record in _records(run, since)))
    received: Counter[str] = Counter()
    for _, _, records in _arrived(run, folder):
        received.update(map(_kind_of, records))
    report_waits(run, folder)
    run.report.received = _named(received)
