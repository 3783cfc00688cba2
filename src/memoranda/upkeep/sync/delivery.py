"""What this machine has written to shared folders, and what it waits for from others.

Programs that copy folders lose, cut and rename files, and people restore old copies of a folder. Only the machine that
wrote a bundle can write it again, so it notes what it has written, and compares all bytes in every run. If something is
missing or damaged, it writes everything again, as a new generation.

A reader waits for a part that has not arrived; after `MAX_WAIT_SECONDS` the run reports an error that says what to do,
and so does the doctor.
"""

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from memoranda.errors import StorageError, SyncError
from memoranda.storage.home_database import FILE_NAME
from memoranda.support.health_issues import HealthIssue
from memoranda.upkeep.sync.bundle_files import BundleHead, BundlePart, IncompleteError, SharedFolder
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync_state import SyncState, SyncTables

MAX_WAIT_SECONDS = 3_600.0
_WRITTEN = "written "
_READ = "read "
_FOLDER = "folder "
_WAITS = "waits"


class Written(NamedTuple):
    """What a generation of this machine's bundle has: its bytes, and how far it goes; `begun` is its first run."""

    size: int
    checksum: str
    begun: int
    run: int
    message: int


def written(tables: SyncTables, generation: str) -> Written | None:
    """Return what this home has written as a generation; None if another one wrote it."""
    stored = tables.value(f"{_WRITTEN}{generation}")
    return Written(*json.loads(stored)) if stored else None


def note_written(tables: SyncTables, folder: SharedFolder, generation: str, now: Written) -> None:
    """Note what is written next; a run that is killed before it is written writes everything again."""
    tables.set_value(f"{_WRITTEN}{generation}", json.dumps(now))
    tables.set_value(f"{_FOLDER}{folder.root}", generation)


def has_written(tables: SyncTables, folder: SharedFolder) -> bool:
    """Return whether this home has a bundle in a folder, or had one."""
    return bool(tables.value(f"{_FOLDER}{folder.root}"))


def is_foreign(tables: SyncTables, folder: SharedFolder, machine: str) -> bool:
    """Return whether a copy of this home has written to the bundle of this machine."""
    try:
        head = folder.head(machine)
        known, content = written(tables, head.generation), folder.content(machine)
        if known is None:
            return True
        is_longer = len(content) > known.size and _checksum(content[: known.size]) == known.checksum
        return is_longer and next(folder.parts(head, known.size), None) is not None
    except (IncompleteError, SyncError):
        return False


def is_whole(tables: SyncTables, folder: SharedFolder, machine: str) -> bool:
    """Return whether the bundle of this machine is there as this home has written it."""
    content = folder.content(machine)
    known = written(tables, tables.value(f"{_FOLDER}{folder.root}"))
    return known is not None and len(content) == known.size and _checksum(content) == known.checksum


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def unread_parts(run: Run, folder: SharedFolder) -> list[tuple[BundleHead, BundlePart]]:
    """Return the parts of other machines that were not read yet, in the order in which they were written."""
    found: list[tuple[BundleHead, BundlePart]] = []
    for machine in folder.machines():
        if machine == run.machine:
            continue
        try:
            head = folder.head(machine)
            run.tables.set_value(f"name {machine}", head.name)
            position = int(run.tables.value(f"{_READ}{head.generation}") or head.end)
            size = len(folder.content(machine))
            if size < position:
                raise IncompleteError("is shorter than it was")
            for part in folder.parts(head, position):
                found.append((head, part))
        except IncompleteError as error:
            run.waits[machine] = f"{folder.path(machine).name} {error}"
        except SyncError as error:
            run.report.refused.append(str(error))
    return sorted(found, key=lambda each: (each[1].at, each[0].machine, each[1].start))


def note_read(run: Run, head: BundleHead, part: BundlePart) -> None:
    """Note that a part was read."""
    run.tables.set_value(f"{_READ}{head.generation}", str(part.end))


def report_waits(run: Run, folder: SharedFolder) -> None:
    """Report what this run waits for: as an error if earlier runs have waited for it too long."""
    now = time.time()
    waits = _waits(run.tables)
    since = {machine: min(waits.get(machine, now), now) for machine in run.waits}
    run.tables.set_value(_WAITS, json.dumps(since))
    for machine, text in run.waits.items():
        name = run.tables.value(f"name {machine}") or machine
        if now - since[machine] < MAX_WAIT_SECONDS:
            run.report.waiting.append(f"{name}: {text}")
        else:
            run.report.overdue.append(
                f"{name}: {text} since {_show(since[machine])}. Run 'memoranda sync' on {name}: it writes again "
                f"what the folder has lost. If that machine is gone, delete {folder.path(machine)} and run "
                f"'memoranda sync --rewrite {folder.root}' on a machine that has its data."
            )


def check_sync(home: Path) -> Iterator[HealthIssue]:
    """Yield what is wrong with the bundles that this machine has in folders, and overdue waits."""
    with closing(SyncState(home)) as state:
        try:
            tables = state.read() if state.exists() else None
        except StorageError:
            # The check of the database has reported it.
            return
    if tables is None:
        return
    for root in map(Path, tables.names(_FOLDER)):
        # A drive that is not mounted has lost nothing.
        if root.is_dir() and not is_whole(tables, SharedFolder(root), tables.value("machine")):
            problem = "the bundle of this machine is missing or damaged"
            yield HealthIssue("warning", root, problem, f"run 'memoranda sync {root}', which writes it again")
    for machine, since in _waits(tables).items():
        if time.time() - since >= MAX_WAIT_SECONDS:
            name = tables.value(f"name {machine}") or machine
            problem = f"the last run waited for the bundle of {name}, which has not arrived since {_show(since)}"
            yield HealthIssue("warning", home / FILE_NAME, problem, "run 'memoranda sync', which says what to do")


def _waits(tables: SyncTables) -> dict[str, float]:
    return dict(json.loads(tables.value(_WAITS, "{}")))


def _show(timestamp: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(timestamp))
