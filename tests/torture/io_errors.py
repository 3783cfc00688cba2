"""Lets system calls on the files of a home fail while a process writes: the disk is full, or answers with an error.

`strace` makes the kernel's answer an error, so the whole program is tested as it runs, SQLite included.
"""

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.torture.counts import Counts
from tests.torture.workload import acknowledged, find_faults, find_issues, prepare

_WRITES = 120
_CALLS = ("pwrite64", "write", "fsync", "fdatasync", "ftruncate", "openat", "rename")
# Those that are called often fail often.
_WEIGHTS = (4, 2, 1, 4, 1, 1, 1)
_ERRORS = ("EIO", "ENOSPC", "EDQUOT")
_FILES = (
    "state.db", "state.db-wal", "state.index.db", "state.index.db-wal", "memories/journal.jsonl",
    "memories/.MEMORY.md.tmp", "memories/MEMORY.md",
)  # fmt: skip


def run(directory: Path, wanted: int, seed: int, progress: Callable[[int], object] = lambda done: None) -> Counts:
    """Inject at least `wanted` errors, several into each of many processes."""
    counts, chance = Counts("injected errors"), random.Random(seed)
    number = 0
    while counts.strikes < wanted:
        number += 1
        home, log = prepare(directory / f"home-{number}"), directory / f"log-{number}"
        call, error = chance.choices(_CALLS, _WEIGHTS)[0], chance.choice(_ERRORS)
        when = f"{chance.randint(1, 30)}+{chance.randint(5, 40)}"
        said = _write_with_errors(home, log, f"inject={call}:error={error}:when={when}", chance.randrange(1 << 30))
        injected = log.read_text(errors="replace").count("(INJECTED)")
        counts.strikes += injected
        counts.remark(call, injected)
        counts.remark("refused writes", said.count(b"refused"))
        counts.acknowledged += len(acknowledged(said))
        counts.wrong += [f"{call} {error} {when}: {fault}" for fault in _find_all_faults(home, said)]
        progress(counts.strikes)
    return counts


def _write_with_errors(home: Path, log: Path, injection: str, seed: int) -> bytes:
    paths = [argument for name in _FILES for argument in ("-P", str(home / name))]
    trace = ["strace", "-f", "-qq", "-o", str(log), "-e", f"trace={','.join(_CALLS)}", "-e", injection, *paths]
    worker = [sys.executable, "-m", "tests.torture.workload", str(home), "writer", str(seed), str(_WRITES)]
    # A process that cannot open its home ends with an error, which is right.
    return subprocess.run([*trace, *worker], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout


def _find_all_faults(home: Path, said: bytes) -> list[str]:
    issues = find_issues(home)
    return issues + find_faults(home, {"writer": said}) if acknowledged(said) else issues


def can_inject() -> bool:
    """Whether strace is installed and may trace."""
    try:
        traced = subprocess.run(["strace", "-qq", "-o", os.devnull, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return traced.returncode == 0
