"""Homes that synchronise through one folder, for tests."""

from pathlib import Path
from typing import Any

import memoranda
from memoranda.api.memory import Memory
from memoranda.upkeep.sync.bundle_files import SUFFIX, SharedFolder
from memoranda.upkeep.sync.conflicts import Choice, list_conflicts, resolve_conflict
from memoranda.upkeep.sync.run import SyncReport
from memoranda.upkeep.sync.synchroniser import synchronise
from tests.upkeep.sync.home_contents import home_contents


class Machine:
    """One home, open until `close`; `report` is that of its last run."""

    report: SyncReport

    def __init__(self, home: Path, folder: Path) -> None:
        self.home, self.folder = home, folder
        self.memory: Memory = memoranda.open(home)

    @property
    def db(self) -> Any:
        return self.memory.sessions

    def sync(self, **options: Any) -> SyncReport:
        report = synchronise(self.home, self.db, self.memory.curated, self.folder, **options)
        self.report = report
        return report

    def machine_id(self) -> str:
        return self.report.machine

    def conflicts(self) -> list[Any]:
        return list_conflicts(self.home, self.db, self.memory.curated)

    def resolve(self, number: int, choice: Choice) -> Any:
        return resolve_conflict(self.home, self.db, self.memory.curated, number, choice)

    def entries(self, target: str = "memory") -> set[str]:
        return {entry.text for entry in self.memory.curated.view(target).entries}

    def contents(self) -> dict[str, Any]:
        """Everything that two machines must agree on."""
        return home_contents(self.memory)

    def close(self) -> None:
        self.memory.close()


def bundles(folder: Path) -> list[Path]:
    """The bundles of all machines."""
    return sorted(folder.glob(f"*{SUFFIX}"))


def sent_records(folder: Path) -> list[dict[str, Any]]:
    """All records in the plain bundles of a folder."""
    shared = SharedFolder(folder)
    heads = [shared.head(machine) for machine in shared.machines()]
    return [record for head in heads for part in shared.parts(head, head.end) for record in shared.read(head, part)]


def sync_all(machines: list[Machine], rounds: int = 3) -> None:
    """Enough rounds for everything to arrive everywhere."""
    for _ in range(rounds):
        for machine in machines:
            assert not machine.sync().refused, machine.report.refused
