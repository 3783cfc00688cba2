"""Kills with -9 in every part of a home: processes that write to it, and processes that sync, forget, copy or move it.

Whatever was acknowledged must be in the home after every kill, and in the other machine, the restored backup and the
server after the run that completes what was killed. What must be forgotten is then in no file.
"""

import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import memoranda
from memoranda.errors import StorageError
from memoranda.home import config
from memoranda.support.home import Home
from memoranda.upkeep.backup.archive import BackupOptions, verify, write_backup
from memoranda.upkeep.backup.restore import restore_backup
from memoranda.upkeep.migration.migrate import migrate_to_server
from memoranda.upkeep.sync.synchroniser import synchronise
from tests.forked import Forked, Say
from tests.storage.postgres.servers import Server
from tests.torture.counts import Counts
from tests.torture.home_parts import PARTS, new_home
from tests.torture.server_strikes import Progress, running_server
from tests.torture.workload import find_issues
from tests.upkeep.forgetting.filled_home import occurrences

_KILLS_OF_EACH = 4
_LONGEST = 300
_MARKER = "zorblaxquint"
# Skills stay on the machine that has files; the provider's own file is no part of a home.
_ON_SERVER = ("record", "curated", "items", "checkpoints")
_ON_OTHER_MACHINE = ("record", "curated", "items", "skills")


@dataclass
class Round:
    """One home, what was acknowledged in each of its parts, and how often a process was killed in each area."""

    root: Path
    server: Server | None
    chance: random.Random
    texts: dict[str, list[str]] = field(default_factory=lambda: {part: [] for part in PARTS})
    kills: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def beside(self, name: str) -> Path:
        return self.root.with_name(f"{self.root.name}-{name}")

    def kill(self, area: str, process: Forked, after: float) -> bytes:
        """Kill a process once it has begun; what it said. One that had ended by itself does not count."""
        said = process.heard()
        time.sleep(after)
        said += process.kill()
        if not said.endswith(b"ended\n"):
            if process.wait() != -signal.SIGKILL:
                self.faults.append(f"{area}: a process failed by itself")
            self.kills[area] = self.kills.get(area, 0) + 1
        return said

    def compare(self, when: str, root: Path | None = None, parts: tuple[str, ...] = tuple(PARTS)) -> None:
        """Every acknowledged text must be in its part of a home, once."""
        with memoranda.open(root or self.root) as memory:
            for part in parts:
                found = PARTS[part].read(memory)
                self.faults += [f"{when}: lost in {part}: {text}" for text in set(self.texts[part]) - set(found)]
                self.faults += [f"{when}: repeated in {part}: {text}" for text in set(found) if found.count(text) > 1]


def run(directory: Path, wanted: int, seed: int, progress: Progress = lambda done: None) -> Counts:
    """Kill at least `wanted` processes, in each area equally often."""
    counts, chance = Counts("kills in every part of a home"), random.Random(seed)
    with running_server() as server:
        while counts.strikes < wanted:
            current = Round(new_home(directory / f"home-{counts.strikes}"), server, chance)
            for strike in (_write, _sync, _forget, _back_up, _restore, _migrate):
                strike(current)
                progress(counts.strikes + sum(current.kills.values()))
            current.compare("in the end")
            counts.wrong += current.faults + find_issues(current.root)
            counts.strikes += sum(current.kills.values())
            counts.acknowledged += sum(map(len, current.texts.values()))
            for area, number in current.kills.items():
                counts.remark(area, number)
    return counts


def _write(current: Round) -> None:
    """Kill writers of every part, in a random order, each after it has acknowledged something."""
    areas = list(PARTS) * _KILLS_OF_EACH
    current.chance.shuffle(areas)
    for number, part in enumerate(areas):
        process = Forked(partial(_write_for_ever, current.root, part, number), _LONGEST)
        said = current.kill(part, process, current.chance.uniform(0, 0.05))
        current.texts[part] += [line.decode() for line in said.split(b"\n")[:-1]]
        # Reading the outbox delivers it, so only the end of the writing shows that.
        current.compare(f"after a killed writer of {part}", parts=tuple(each for each in PARTS if each != "outbox"))
    current.compare("after all writers")


def _write_for_ever(root: Path, part: str, process: int, say: Say) -> None:
    number = 0
    with memoranda.open(root) as memory:
        while True:
            number += 1
            text = f"{part} {process} {number}"
            PARTS[part].write(memory, text)
            say(f"{text}\n".encode())


def _kill_and_complete(current: Round, area: str, operate: Callable[[], object], check: Callable[[], object]) -> None:
    """Run an operation and kill it at any time of its usual duration, some times; then let it end."""
    longest = 0.5
    killed = 0
    while killed < _KILLS_OF_EACH:
        process = Forked(partial(_operate, operate), _LONGEST)
        began = time.monotonic()
        said = current.kill(area, process, current.chance.uniform(0, longest))
        assert said.startswith(b"begun")
        if said.endswith(b"ended\n"):
            # It was faster: kill earlier.
            longest = (time.monotonic() - began) / 2
        else:
            killed += 1
            current.compare(f"after a killed {area}", parts=_ON_SERVER)
    if Forked(partial(_operate, operate), _LONGEST).wait():
        current.faults.append(f"{area}: the run after the kills failed")
    check()


def _operate(operate: Callable[[], object], say: Say) -> None:
    say(b"begun\n")
    operate()
    say(b"ended\n")


def _sync(current: Round) -> None:
    """Kill either of two machines."""
    folder, other = current.beside("shared"), new_home(current.beside("other"))
    folder.mkdir()

    def synchronise_both() -> None:
        for root in (current.root, other, current.root):
            with memoranda.open(root) as memory:
                refused = synchronise(root, memory.sessions, memory.curated, folder).refused
                assert not refused, refused

    _kill_and_complete(
        current, "sync", synchronise_both, lambda: current.compare("on the other machine", other, _ON_OTHER_MACHINE)
    )


def _forget(current: Round) -> None:
    """What is forgotten stands in several parts beside what stays."""
    with memoranda.open(current.root) as memory:
        for part in ("record", "curated", "items"):
            PARTS[part].write(memory, f"{part} knows {_MARKER}")

    def forget() -> None:
        with memoranda.open(current.root) as memory:
            memory.forget(_MARKER)

    def check() -> None:
        current.faults += [f"not forgotten: {name}" for name in occurrences(current.root, _MARKER)]

    _kill_and_complete(current, "forget", forget, check)


def _back_up(current: Round) -> None:
    """A file with the name of the backup is a whole backup."""
    archive = current.beside("backup.zip")

    def back_up() -> None:
        if archive.exists():
            verify(archive)
            archive.unlink()
        write_backup(current.root, archive, BackupOptions())

    _kill_and_complete(current, "backup", back_up, lambda: verify(archive))


def _restore(current: Round) -> None:
    """A home that is there is a whole one: the restored one, or the one that was there before."""
    archive, target = current.beside("backup.zip"), current.beside("restored")

    def restore() -> None:
        restore_backup(archive, Home(target), replace=True)

    def check() -> None:
        for home in target.parent.glob(f"{target.name}*"):
            current.compare(f"in the restored {home.name}", home, (*_ON_SERVER, "skills"))

    _kill_and_complete(current, "restore", restore, check)


def _migrate(current: Round) -> None:
    """The home stays as it is, and the server has all of it."""
    node = current.beside("node")
    server = current.server
    assert server is not None
    with server.schema() as url:

        def migrate() -> None:
            try:
                migrate_to_server(Home.at(current.root), url, lambda *_: None)
            except StorageError as error:
                # An earlier run was complete: begin anew.
                assert "is not empty" in str(error)
                server.admin(f"DROP SCHEMA {url.rpartition('=')[2]} CASCADE")
                migrate_to_server(Home.at(current.root), url, lambda *_: None)

        def check() -> None:
            config.set_value(Home.at(node), "store.url", url)
            current.compare("on the server", node, _ON_SERVER)

        _kill_and_complete(current, "migration", migrate, check)
