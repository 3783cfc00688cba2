"""Folders are copied by other programs: in any order, in parts, late, with copies of their own, or by git."""

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memoranda.upkeep.sync.bundle_files import SUFFIX
from tests.search.past import BEGIN, tell
from tests.upkeep.sync.machines import Machine, sync_all
from tests.upkeep.sync.operations import append, change_fact, compress, put_item, remember, start, write_skill

_SOURCE = Path(__file__).parents[3]


class Courier:
    """Copies the bundles that machines write to the folders of the others, as Syncthing does."""

    def __init__(self, machines: list[Machine], seed: int) -> None:
        self._machines = machines
        self._random = random.Random(seed)

    def deliver_some(self) -> None:
        """Some bundles: complete, cut, under the names of unfinished and of conflicting files."""
        for source, target in self._ways():
            if source.exists() and self._random.random() < 0.7:
                content, place = source.read_bytes(), target
                name = self._random.choice(["{}", "{}", "{}", ".syncthing.{}.tmp", "{} (conflicted copy)", "~{}"])
                cut = content[: self._random.randint(0, len(content))] if self._random.random() < 0.3 else content
                complete = place.exists() and place.read_bytes() == content
                if name != "{}" or not complete:
                    place.with_name(name.format(place.name)).write_bytes(cut)

    def deliver_all(self) -> None:
        """Everything."""
        for source, target in self._ways():
            shutil.copy(source, target)

    def _ways(self) -> list[tuple[Path, Path]]:
        own = [(machine, machine.folder / f"{machine.machine_id()}{SUFFIX}") for machine in self._machines]
        return [
            (source, other.folder / source.name)
            for machine, source in own
            for other in self._machines
            if other is not machine and source.is_file()
        ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_files_arrive_late_in_parts_and_in_any_order(tmp_path: Path, seed: int) -> None:
    """Nothing that has not arrived is used, nothing is refused, and in the end all machines have the same."""
    machines = [Machine(tmp_path / name, tmp_path / f"{name}-folder") for name in ("a", "b", "c")]
    for machine in machines:
        machine.folder.mkdir()
        machine.sync()
    courier, chance = Courier(machines, seed), random.Random(seed)
    for _ in range(12):
        machine = chance.choice(machines)
        chance.choice([start, append, append, compress, put_item, remember, write_skill, change_fact])(
            machine, chance.randrange(1000)
        )
        assert machine.sync().refused == []
        courier.deliver_some()
    for _ in range(3):
        courier.deliver_all()
        sync_all(machines, 1)
    courier.deliver_all()
    sync_all(machines, 1)
    contents = [machine.contents() for machine in machines]
    assert contents[0] == contents[1] == contents[2]
    assert all(machine.sync().waiting == [] for machine in machines)
    for machine in machines:
        machine.close()


def _git(folder: Path, *arguments: str) -> None:
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@localhost", "-C", str(folder), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_git_repository_is_a_folder(tmp_path: Path) -> None:
    """Both machines commit at the same time, and git never finds two versions of a file."""
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(tmp_path / "bare")], check=True)
    machines = []
    for name in ("a", "b"):
        subprocess.run(["git", "clone", "-q", str(tmp_path / "bare"), str(tmp_path / f"{name}-folder")], check=True)
        machines.append(Machine(tmp_path / name, tmp_path / f"{name}-folder"))
    (machines[0].folder / "README").write_text("Memory of two machines\n")
    _git(machines[0].folder, "add", "-A")
    _git(machines[0].folder, "commit", "-qm", "start")
    _git(machines[0].folder, "push", "-q", "origin", "HEAD:main")
    _git(machines[1].folder, "pull", "-q", "origin", "main")
    tell(machines[0].db, "s1", ["one", "two"])
    tell(machines[1].db, "s2", ["three"], at=BEGIN + 9)
    for _ in range(3):
        for machine in machines:
            assert machine.sync().refused == []
            _git(machine.folder, "add", "-A")
            _git(machine.folder, "commit", "-q", "--allow-empty", "-m", "sync")
        for machine in machines:
            _git(machine.folder, "pull", "-q", "--rebase", "origin", "main")
            _git(machine.folder, "push", "-q", "origin", "HEAD:main")
    assert machines[0].contents() == machines[1].contents()
    assert set(machines[0].contents()["sessions"]) == {"s1", "s2"}
    for machine in machines:
        machine.close()


_KILLED = """
import os, signal, sys
from pathlib import Path
from memoranda.storage.sqlite.database import Database
from tests.upkeep.sync.machines import Machine

home, folder, limit = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
steps = 0

def count():
    global steps
    steps += 1
    if steps == limit:
        os.kill(os.getpid(), signal.SIGKILL)

def counting(call):
    def run(*args, **options):
        count()
        result = call(*args, **options)
        count()
        return result
    return run

def end_of(database_writing):
    from contextlib import contextmanager
    @contextmanager
    def writing(*args, **options):
        with database_writing(*args, **options) as connection:
            yield connection
            count()
        count()
    return writing

machine = Machine(home, folder)
Database.writing = end_of(Database.writing)
for name in ("rename", "replace", "unlink"):
    setattr(os, name, counting(getattr(os, name)))
machine.sync()
"""


@pytest.mark.slow
def test_runs_that_are_killed_lose_nothing_and_double_nothing(tmp_path: Path, folder: Path) -> None:
    """Three machines have used the same session at once; one is killed at ever later steps until a run completes."""
    machines = [Machine(tmp_path / name, folder) for name in ("a", "b", "c")]
    tell(machines[0].db, "s1", ["one", "two"])
    sync_all(machines, 2)
    for number, machine in enumerate(machines):
        at = BEGIN + 1000 + number
        machine.db.append_messages("s1", [{"role": "user", "content": f"from {number}", "timestamp": at}])
        machine.memory.remember(f"Entry of {number}.")
        machine.db.items.put(("n",), "k", {"value": number})
        machine.db.update_token_counts("s1", input_tokens=10)
        write_skill(machine, number)
        change_fact(machine, number)
    sync_all(machines[:2], 2)
    machines[2].close()
    step, code, kills = 1, -signal.SIGKILL, 0
    while code == -signal.SIGKILL:
        command = [sys.executable, "-c", _KILLED, str(machines[2].home), str(folder), str(step)]
        code = subprocess.run(command, cwd=_SOURCE, env=os.environ, check=False).returncode
        step, kills = step * 3, kills + 1
    assert code == 0
    assert kills > 3
    machines[2] = Machine(machines[2].home, folder)
    sync_all(machines, 3)
    contents = [machine.contents() for machine in machines]
    assert contents[0] == contents[1] == contents[2]
    session = contents[0]["sessions"]["s1"]
    assert [message[2] for message in session["messages"]] == ["one", "two", "from 0", "from 1", "from 2"]
    assert (session["input_tokens"], len(contents[0]["entries"]["memory"])) == (10, 3)
    for machine in machines:
        machine.close()
