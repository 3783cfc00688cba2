"""Compares curated memory with Hermes Agent: load, add and scan at 10, 1,000 and 10,000 entries.

Each program runs in a worker process of its own environment (`memoranda_worker.py`, `hermes_worker.py`).
The workers take turns, round by round, so that a busy machine is busy for both. See README.md beside this file.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PEER = "hermes-agent"
PEER_VERSION = "0.19.0"
PEER_ENVIRONMENT = ROOT / ".hermes-venv"
# How often a measurement is repeated in one round, by the number of entries.
REPETITIONS = {
    "load": {10: 20, 1_000: 4, 10_000: 1},
    "add": {10: 20, 1_000: 8, 10_000: 2},
    "scan": {10: 20, 1_000: 4, 10_000: 1},
    "add, store": {10: 20, 1_000: 20, 10_000: 8},
}
# Inside both programs, below the tool that a model calls: shown but not compared, because the two programs give
# different guarantees there (see README.md).
BELOW_THE_TOOL = "add, store"
ROUNDS, QUICK_ROUNDS = 7, 2
STARTS, QUICK_STARTS = 10, 3


class PeerMissingError(Exception):
    """The other program cannot be measured; the message says why."""


@dataclass
class Row:
    """One measurement: the durations of both sides in seconds (none for a missing peer)."""

    measure: str
    entries: int
    ours: list[float] = field(default_factory=list)
    peer: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float | None:
        """How many times faster Memoranda is; below 1 it is slower."""
        return median(self.peer) / median(self.ours) if self.peer else None

    def as_data(self) -> dict[str, Any]:
        return {
            "measure": self.measure,
            "entries": self.entries,
            "ours_ms": median(self.ours) * 1000,
            "peer_ms": median(self.peer) * 1000 if self.peer else None,
            "ratio": self.ratio,
            "repetitions": len(self.ours),
        }


class Worker:
    """A process that measures one program on request."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def measure(self, measure: str, entries: int, repetitions: int, seed: int) -> list[float]:
        durations: list[float] = self.ask(measure=measure, entries=entries, repetitions=repetitions, seed=seed)
        return durations

    def ask(self, **request: Any) -> Any:
        """Send one request as a line of JSON, and wait for the answer."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            task = next(iter(request.values()))
            raise SystemExit(f"A worker ended while it measured {task!r}; its last output is above.")
        return json.loads(answer)


@contextmanager
def start_worker(python: Path, module: str, home: Path, *arguments: str) -> Iterator[Worker]:
    """Start a worker in the environment of `python`, with a temporary home."""
    command = [str(python), "-m", f"benchmarks.{module}", *arguments]
    process = subprocess.Popen(
        command, cwd=ROOT, env=clean_environment(home), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        yield Worker(process)


def clean_environment(home: Path) -> dict[str, str]:
    """Return the environment without variables that configure either program."""
    configuring = ("MEMORANDA_", "HERMES_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(configuring)}
    return kept | {
        "HOME": str(home),
        "USERPROFILE": str(home),
        "HERMES_HOME": str(home / "hermes"),
        "MEMORANDA_HOME": str(home / "memoranda"),
    }


def find_peer(peer_python: Path | None) -> Path:
    """Return the interpreter of the peer's environment, which is created when it is missing."""
    if peer_python is not None:
        if installed_version(peer_python) != PEER_VERSION:
            raise SystemExit(f"{peer_python} has no {PEER} {PEER_VERSION}. Omit --peer-python to create one.")
        return peer_python
    python = PEER_ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if installed_version(python) != PEER_VERSION:
        make_peer_environment(python)
    return python


def installed_version(python: Path) -> str | None:
    if not python.exists():
        return None
    code = f"import importlib.metadata as m; print(m.version({PEER!r}))"
    run = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
    return run.stdout.strip() if run.returncode == 0 else None


def make_peer_environment(python: Path) -> None:
    report(f"Installing {PEER} {PEER_VERSION} into {PEER_ENVIRONMENT.name} (once, about half a minute) …")
    try:
        venv.create(PEER_ENVIRONMENT, clear=True, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise PeerMissingError(f"{PEER_ENVIRONMENT.name} could not be created: {error}") from error
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run = subprocess.run([*install, f"{PEER}=={PEER_VERSION}"], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        lines = run.stderr.strip().splitlines() or ["pip gave no reason"]
        raise PeerMissingError(f"{PEER} {PEER_VERSION} could not be installed: {lines[-1]}")


def measure_rows(ours: Worker, peer: Worker | None, rounds: int) -> list[Row]:
    rows = [Row(measure, entries) for measure, sizes in REPETITIONS.items() for entries in sizes]
    for row in rows:
        report(f"{row.measure}, {row.entries:,} entries …")
        repetitions = REPETITIONS[row.measure][row.entries]
        for number in range(rounds):
            request = (row.measure, row.entries, repetitions, 1000 * (number + 1))
            row.ours += ours.measure(*request)
            if peer:
                row.peer += peer.measure(*request)
    return rows


def measure_start_up(home: Path, starts: int) -> float:
    """Measure `memoranda memory list` as a command, including the interpreter, in a home with ten entries."""
    command = [sys.executable, "-m", "memoranda", "memory"]
    environment = clean_environment(home)
    for number in range(10):
        text = f"The nightly build number {number} runs on the shared runner and takes {number + 5} minutes."
        subprocess.run([*command, "add", text], env=environment, check=True, capture_output=True)
    durations = []
    for _ in range(starts):
        start = time.perf_counter()
        subprocess.run([*command, "list"], env=environment, check=True, capture_output=True)
        durations.append(time.perf_counter() - start)
    return median(durations)


def run(peer_python: Path | None, quick: bool) -> dict[str, Any]:
    """Measure everything, and return it as data."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(TemporaryDirectory()))
        ours = stack.enter_context(start_worker(Path(sys.executable), "memoranda_worker", home))
        peer = stack.enter_context(start_worker(peer_python, "hermes_worker", home)) if peer_python else None
        rows = measure_rows(ours, peer, QUICK_ROUNDS if quick else ROUNDS)
        syncs = [int(worker.measure("syncs", 10, 1, 0)[0]) for worker in (ours, peer) if worker]
        start_up = measure_start_up(home, QUICK_STARTS if quick else STARTS)
    return {
        "peer": f"{PEER} {PEER_VERSION}" if peer_python else None,
        "python": platform.python_version(),
        "rows": [row.as_data() for row in rows],
        "syncs_per_add": syncs,
        "start_up_ms": start_up * 1000,
    }


def as_table(result: dict[str, Any]) -> str:
    compared = [row for row in result["rows"] if row["measure"] != BELOW_THE_TOOL]
    below_the_tool = [row for row in result["rows"] if row["measure"] == BELOW_THE_TOOL]
    lines = [f"{'':12} {'entries':>8} {'memoranda':>12} {'hermes':>12} {'ratio':>7}"]
    lines += [_line(row) for row in compared]
    if result["peer"]:
        behind = [f"{row['measure']} at {row['entries']:,}" for row in compared if row["ratio"] < 1]
        lines.append(f"Ours is behind on: {'; '.join(behind)}." if behind else "Ours is ahead on every row.")
    syncs = " and ".join(map(str, result["syncs_per_add"]))
    lines += [
        "",
        f"For the record, below the tool (one add waits for the disk {syncs} times), and start-up:",
        *[_line(row) for row in below_the_tool],
        f"{'start-up':12} {10:>8} {result['start_up_ms']:>9,.2f} ms {'-':>12} {'-':>7}",
        "",
        f"Medians, Python {result['python']}. The ratio is hermes / memoranda: above 1 ours is faster.",
    ]
    return "\n".join(lines)


def _line(row: dict[str, Any]) -> str:
    peer = f"{row['peer_ms']:,.2f} ms" if row["ratio"] else "-"
    ratio = f"{row['ratio']:.2f}" if row["ratio"] else "-"
    return f"{row['measure']:12} {row['entries']:>8,} {row['ours_ms']:>9,.2f} ms {peer:>12} {ratio:>7}"


def report(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=f"Measure curated memory against {PEER} {PEER_VERSION}.")
    parser.add_argument("--peer-python", type=Path, metavar="PATH", help="use this environment of the peer")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    try:
        peer_python = find_peer(arguments.peer_python)
    except PeerMissingError as error:
        report(f"{error}\nWithout the peer there is nothing to compare with; these are only our figures.")
        peer_python = None
    result = run(peer_python, arguments.quick)
    print(json.dumps(result, indent=1) if arguments.json else as_table(result))


if __name__ == "__main__":
    main()
