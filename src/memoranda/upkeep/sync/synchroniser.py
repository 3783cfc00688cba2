"""Synchronises a home with the other machines of a shared folder.

A run collects what changed here since the last one, reads the bundles of other machines that it has not read yet, and
writes one bundle with what changed here. A run that is killed is continued by the next one: what it did is durable in
small steps, and doing a step again changes nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from memoranda.errors import SyncError
from memoranda.home.session_db import SessionDB
from memoranda.memory.curated.store import MemoryStore
from memoranda.storage.files.file_lock import FileLock
from memoranda.upkeep.forgetting.sessions import DeletedSessions, erase
from memoranda.upkeep.sync.bundle_files import MAX_PART_BYTES, BundleFile, FolderKey, SharedFolder, encode_record
from memoranda.upkeep.sync.delivery import last_number, lost_bundles, note_stored, report_waits, unread_bundles
from memoranda.upkeep.sync.entries import collect_entries, entry_records, merge_entries
from memoranda.upkeep.sync.forgotten_texts import forget_here, take_note
from memoranda.upkeep.sync.record_check import check_records
from memoranda.upkeep.sync.run import Run, SyncReport
from memoranda.upkeep.sync.session_changes import collect_items, collect_sessions, item_records, session_records
from memoranda.upkeep.sync.session_merge import merge_items, merge_sessions
from memoranda.upkeep.sync.session_order import link_sessions, note_unordered, order_sessions
from memoranda.upkeep.sync.things import (
    NOUNS,
    arrange_entries,
    collect_facts,
    collect_order,
    collect_things,
    merge_things,
    thing_records,
)
from memoranda.upkeep.sync_state import SyncState

LOCK_NAME = "sync.lock"
_LOCK_TIMEOUT = 10.0
_NAMES = {
    "session": "sessions",
    "message": "messages",
    "deleted": "deleted sessions",
    "item": "items",
    "entry": "entries",
} | {f"thing {kind}": noun for kind, noun in NOUNS.items()}

Record = dict[str, Any]


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

    With `rewrite`, everything that no bundle of another machine contains is written again. Raises SyncError when the
    folder cannot be used, or not with this passphrase. A bundle that cannot be used is reported, and has no effect.
    """
    if not directory.is_dir():
        raise SyncError(f"{directory} is not a directory. Create it first, in the folder that your machines share.")
    folder = SharedFolder(directory, FolderKey(directory, passphrase))
    folder.verify_key()
    with FileLock(root / LOCK_NAME, _LOCK_TIMEOUT), closing(SyncState(root)) as state:
        run = Run(root, db, memory, state, progress)
        run.report.dry_run = dry_run
        _synchronise(run, folder, dry_run, rewrite)
        run.commit()
    return run.report


def _synchronise(run: Run, folder: SharedFolder, dry_run: bool, rewrite: bool) -> None:
    run.start()
    if any(not run.tables.is_known(bundle.name) for bundle in folder.bundles(run.machine)):
        # A copy of this home writes here, too: from now on this one is another machine.
        run.become_another()
    run.report.machine = run.machine
    run.must_rewrite |= rewrite
    if lost := lost_bundles(run.tables, run.machine, folder):
        run.must_rewrite = True
        run.report.notes.append(f"Bundles of this machine were lost or damaged ({len(lost)}); all are written again.")
    if not dry_run:
        take_note(run)
    _collect(run)
    if dry_run:
        _preview(run, folder)
        return
    link_sessions(run)
    run.commit()
    for bundle, records in _arrived(run, folder):
        _merge(run, bundle, records)
    report_waits(run, folder)
    order_sessions(run)
    arrange_entries(run)
    if forget_here(run):
        # It may have changed what was not sent yet.
        take_note(run)
        _collect(run)
    if run.has_forgotten:
        erased = DeletedSessions()
        erase(run.db, erased)
        run.report.notes += erased.problems
    _publish(run, folder)
    run.report.conflicts = len(run.tables.conflicts())


def _collect(run: Run) -> None:
    collect_sessions(run)
    collect_items(run)
    collect_entries(run)
    collect_order(run)
    collect_facts(run)
    collect_things(run)


def _arrived(run: Run, folder: SharedFolder) -> Iterator[tuple[BundleFile, list[Record]]]:
    """The bundles to read, each with its checked records, in the order in which they were written."""
    queues = [list(unread_bundles(run, folder, machine)) for machine in folder.machines() if machine != run.machine]
    heads: dict[int, tuple[Record, list[Record]]] = {}
    while True:
        for number, queue in enumerate(queues):
            if queue and number not in heads:
                opened = _open(run, folder, queue[0])
                if opened is None:
                    queue.clear()
                else:
                    heads[number] = opened
        if not heads:
            return
        first = min(heads, key=lambda number: (heads[number][0]["at"], number))
        head, records = heads.pop(first)
        run.sender = head["name"]
        yield queues[first].pop(0), records


def _open(run: Run, folder: SharedFolder, bundle: BundleFile) -> tuple[Record, list[Record]] | None:
    run.progress(f"Reading {bundle.name[:20]}")
    try:
        records = folder.read(bundle)
        head = next(records)
        if not isinstance(head.get("at"), int) or not isinstance(head.get("name"), str):
            raise SyncError(f"{bundle.path} is not a bundle of its machine.")
        return head | {"name": head["name"][:60]}, check_records(records, bundle.path)
    except SyncError as error:
        run.report.refused.append(str(error))
        return None


def _merge(run: Run, bundle: BundleFile, records: list[Record]) -> None:
    run.bundle = bundle.name
    run.progress(f"Merging {len(records):,} records of {run.sender}")
    merge_sessions(run, records)
    merge_items(run, records)
    # The facts of an entry are known when it is written.
    merge_things(run, records)
    merge_entries(run, records)
    link_sessions(run)
    note_unordered(run)
    run.tables.add_bundle(bundle.name)
    run.tables.set_value(f"name {bundle.machine}", run.sender)
    run.bundle = ""
    run.commit()


def _publish(run: Run, folder: SharedFolder) -> None:
    """Write what changed here; after something was forgotten or lost, everything again, and delete what was before."""
    own = folder.bundles(run.machine)
    last = max((bundle.number for bundle in own), default=0)
    through = max((bundle.through for bundle in own), default=0)
    if run.must_rewrite:
        # Others may have read bundles that are lost.
        last = max(last, last_number(run.tables, run.machine))
    rewrites = run.must_rewrite and last > 0
    others = frozenset(
        bundle.name for machine in folder.machines() if machine != run.machine for bundle in folder.bundles(machine)
    )
    counts: Counter[str] = Counter()
    parts = _parts(_records(run, 0 if rewrites else through, others), counts)
    part = next(parts, None)
    if part is None and rewrites:
        part = []
    number = last
    while part is not None:
        following = next(parts, None)
        number += 1
        # Only the last part says how far it goes: without it, all are written again.
        numbers = (number, through if following is not None else run.number, last if rewrites else 0)
        bundle, content = folder.prepare(run.machine, numbers, part, run.clock.last)
        run.tables.add_bundle(bundle.name)
        run.commit()
        folder.store(bundle, content)
        run.report.bundles_written += 1
        part = following
    folder.remove_replaced(run.machine)
    note_stored(run.tables, run.machine, folder)
    run.must_rewrite = False
    run.report.sent = _named(counts)


def _records(run: Run, after: int, bundles: frozenset[str]) -> Iterator[Record]:
    yield from session_records(run, after, bundles)
    yield from item_records(run, after, bundles)
    yield from entry_records(run, after, bundles)
    yield from thing_records(run, after, bundles)


def _named(counts: Counter[str]) -> dict[str, int]:
    return {_NAMES[kind]: count for kind, count in counts.items() if _NAMES[kind]}


def _kind_of(record: Record) -> str:
    return f"thing {record['kind']}" if record["t"] == "thing" else str(record["t"])


def _parts(records: Iterator[Record], counts: Counter[str]) -> Iterator[list[bytes]]:
    """The lines of each bundle."""
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
    own = folder.bundles(run.machine)
    through = max((bundle.through for bundle in own), default=0)
    counts = Counter(_kind_of(record) for record in _records(run, through, frozenset()))
    run.report.sent = _named(counts)
    received: Counter[str] = Counter()
    for _, records in _arrived(run, folder):
        received.update(map(_kind_of, records))
    report_waits(run, folder)
    run.report.received = _named(received)
