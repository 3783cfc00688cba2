"""Heals what a shared folder loses: a machine writes its own bundles again, and a wait that does not end is an error.

Programs that copy folders lose, cut and rename files, and people restore old copies of a folder. Only the machine that
wrote a bundle can write it again, so it notes which bundles it has stored in a folder, and compares all their bytes in
every run. If one is missing or damaged, it writes everything again, in bundles that replace all before.

A reader needs only what it has not read. It waits for a bundle that has not arrived; after `MAX_WAIT_SECONDS` the run
reports an error that says what to do, and so does the doctor.
"""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from memoranda.errors import StorageError, SyncError
from memoranda.storage.home_database import FILE_NAME
from memoranda.support.health_issues import HealthIssue
from memoranda.upkeep.sync.bundle_files import BundleFile, FolderKey, SharedFolder, parse_name
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync_state import SyncState, SyncTables

MAX_WAIT_SECONDS = 3_600.0
_STORED = "stored in "
_WAITS = "waits"


def lost_bundles(tables: SyncTables, machine: str, folder: SharedFolder) -> list[str]:
    """The bundles that this machine has stored in the folder, and that are not there any more as they were."""
    own = [name for name in _stored(tables, folder.root) if name.startswith(f"{machine}/")]
    present = {bundle.name: bundle for bundle in folder.bundles(machine)}
    lost = [name for name in own if name not in present or not _is_whole(folder, present[name])]
    return own if not lost and own and not folder.has_key(machine, own[-1]) else lost


def note_stored(tables: SyncTables, machine: str, folder: SharedFolder) -> None:
    """Note which bundles this machine has in the folder now."""
    tables.set_value("machine", machine)
    names = [bundle.name for bundle in folder.bundles(machine)]
    tables.set_value(f"{_STORED}{folder.root}", json.dumps(names))


def last_number(tables: SyncTables, machine: str) -> int:
    """The highest number that a bundle of a machine has had, as far as this home knows."""
    return max((bundle.number for bundle in _known(tables, machine)), default=0)


def unread_bundles(run: Run, folder: SharedFolder, machine: str) -> Iterator[BundleFile]:
    """The bundles of a machine that were not read yet, up to the first that has not arrived."""
    bundles, known = folder.bundles(machine), _known(run.tables, machine)
    read = {bundle.number for bundle in known}
    expected = max((bundle.replaces for bundle in (*bundles, *known)), default=0) + 1
    for bundle in bundles:
        missing = next((number for number in range(expected, bundle.number) if number not in read), None)
        if missing is not None:
            run.waits[f"{machine}/{missing}"] = f"bundle {missing} has not arrived"
            return
        expected = bundle.number + 1
        if run.tables.is_known(bundle.name):
            continue
        try:
            complete = folder.is_complete(bundle)
        except SyncError as error:
            run.report.refused.append(str(error))
            return
        if not complete:
            run.waits[f"{machine}/{bundle.number}"] = f"{bundle.name} has not arrived completely, or is damaged"
            return
        yield bundle


def report_waits(run: Run, folder: SharedFolder) -> None:
    """Report what this run waits for: as an error if earlier runs have waited for it too long."""
    now = time.time()
    waits = _waits(run.tables)
    since = {bundle: min(waits.get(bundle, now), now) for bundle in run.waits}
    run.tables.set_value(_WAITS, json.dumps(since))
    for bundle, text in run.waits.items():
        machine = bundle.partition("/")[0]
        name = run.tables.value(f"name {machine}") or machine
        if now - since[bundle] < MAX_WAIT_SECONDS:
            run.report.waiting.append(f"{name}: {text}")
        else:
            run.report.overdue.append(f"{name}: {text} since {_show(since[bundle])}. {_way_out(name, machine, folder)}")


def _way_out(name: str, machine: str, folder: SharedFolder) -> str:
    return (
        f"Run 'memoranda sync' on {name}: it writes again what the folder has lost. If that machine is gone, delete "
        f"{folder.root / machine} and run 'memoranda sync --rewrite {folder.root}' on a machine that has its data."
    )


def check_sync(home: Path) -> Iterator[HealthIssue]:
    """What is wrong with the bundles that this machine has stored in folders, and overdue waits."""
    with closing(SyncState(home)) as state:
        try:
            tables = state.read() if state.exists() else None
        except StorageError:
            # The check of the database has reported it.
            return
    if tables is not None:
        yield from _check_tables(tables, home / FILE_NAME)


def _check_tables(tables: SyncTables, path: Path) -> Iterator[HealthIssue]:
    for root in map(Path, tables.names(_STORED)):
        folder = SharedFolder(root, FolderKey(root, None))
        # A drive that is not mounted has lost nothing.
        lost = lost_bundles(tables, tables.value("machine"), folder) if root.is_dir() else []
        if lost:
            problem = f"{len(lost)} bundles of this machine are missing or damaged, beginning with {lost[0]}"
            yield HealthIssue("warning", root, problem, f"run 'memoranda sync {root}', which writes them again")
    for bundle, since in _waits(tables).items():
        if time.time() - since >= MAX_WAIT_SECONDS:
            problem = f"the last run waited for bundle {bundle}, which has not arrived since {_show(since)}"
            yield HealthIssue("warning", path, problem, "run 'memoranda sync', which says what to do")


def _stored(tables: SyncTables, root: Path) -> list[str]:
    return list(json.loads(tables.value(f"{_STORED}{root}", "[]")))


def _waits(tables: SyncTables) -> dict[str, float]:
    return dict(json.loads(tables.value(_WAITS, "{}")))


def _known(tables: SyncTables, machine: str) -> list[BundleFile]:
    """The bundles of a machine that were read or written here, wherever they are now."""
    parsed = (parse_name(Path(), name) for name in tables.bundles() if name.startswith(f"{machine}/"))
    return [bundle for bundle in parsed if bundle is not None]


def _is_whole(folder: SharedFolder, bundle: BundleFile) -> bool:
    try:
        return folder.is_complete(bundle)
    except SyncError:
        return False


def _show(timestamp: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(timestamp))
