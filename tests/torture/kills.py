"""Kills writers with -9 at random moments, after they have acknowledged something."""

import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.forked import Forked
from tests.torture.counts import Counts
from tests.torture.workload import acknowledged, find_faults, find_issues, prepare, write

_WRITERS = 2
_KILLS_PER_HOME = 50


def run(directory: Path, wanted: int, seed: int, progress: Callable[[int], object] = lambda done: None) -> Counts:
    """Kill `wanted` writers, two of them at work in one home at a time."""
    counts, chance = Counts("kills"), random.Random(seed)
    while counts.strikes < wanted:
        home = prepare(directory / f"home-{counts.strikes}")
        said: dict[str, bytes] = {}
        while len(said) < _KILLS_PER_HOME and counts.strikes < wanted:
            killed = _kill_writers(home, counts.strikes, chance)
            counts.strikes += len(killed)
            counts.acknowledged += sum(len(acknowledged(lines)) for lines in killed.values())
            counts.wrong += find_faults(home, killed)
            said |= killed
            progress(counts.strikes)
        # What an earlier writer wrote must have survived the death of the later ones too.
        counts.wrong += find_faults(home, said) + find_issues(home)
    return counts


def _kill_writers(home: Path, number: int, chance: random.Random) -> dict[str, bytes]:
    """Start writers, wait until each has acknowledged something, kill them; what each had said by its name."""
    writers = {
        f"writer {number + index}": Forked(
            partial(write, home, f"writer {number + index}", chance.randrange(1 << 30), None)
        )
        for index in range(_WRITERS)
    }
    said = {name: b"".join(writer.heard() for _ in range(chance.randint(1, 4))) for name, writer in writers.items()}
    for name, writer in writers.items():
        time.sleep(chance.uniform(0, 0.02))
        said[name] += writer.kill()
    return said
