"""Cuts the power: from recorded system calls, what the disk may hold at many moments, opened as a home."""

import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.torture.counts import Counts
from tests.torture.recorded_disk import CALLS, RecordedDisk, read_calls
from tests.torture.workload import acknowledged, find_faults, find_issues, prepare

_WRITES = 40
_CUTS_PER_RUN = 20


def run(directory: Path, wanted: int, seed: int, progress: Callable[[int], object] = lambda done: None) -> Counts:
    """Cut the power `wanted` times."""
    counts, chance = Counts("power cuts"), random.Random(seed)
    while counts.strikes < wanted:
        home, log = prepare(directory / f"home-{counts.strikes}"), directory / f"log-{counts.strikes}"
        disk = RecordedDisk(home)
        trace = ["strace", "-f", "-qq", "-y", "-xx", "-s", "100000000", "-o", str(log), "-e", f"trace={CALLS}"]
        worker = ["-m", "tests.torture.workload", str(home), "writer", str(chance.randrange(1 << 30)), str(_WRITES)]
        subprocess.run([*trace, sys.executable, *worker], stdout=subprocess.DEVNULL, check=True)
        calls = [call for call in read_calls(log) if call.name != "openat" or call.opened.startswith(str(home))]
        number = min(_CUTS_PER_RUN, wanted - counts.strikes)
        moments = set(chance.sample(range(len(calls)), min(number, len(calls))))
        for index, call in enumerate(calls):
            disk.apply(call)
            if index in moments:
                _cut(disk, directory / "found", counts, chance)
                progress(counts.strikes)
        log.unlink()
        shutil.rmtree(home)
    return counts


def _cut(disk: RecordedDisk, found: Path, counts: Counts, chance: random.Random) -> None:
    disk.after_cut(found, chance)
    said = acknowledged(disk.printed)
    counts.strikes += 1
    counts.acknowledged += len(said)
    counts.wrong += find_issues(found)
    if said:
        counts.wrong += find_faults(found, {"writer": disk.printed})
    shutil.rmtree(found)
