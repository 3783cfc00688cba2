"""Editors of one curated memory on a PostgreSQL server, killed with -9: additions, replacements, removals and undo.

Each editor has entries of its own in the memory that all share. It says which of its entries an edit would leave, and
then whether the edit was acknowledged. So its entries are known after its death, except for the last edit.
"""

import json
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import memoranda
from memoranda.memory.curated import change_history
from memoranda.memory.curated.operations import MemoryReceipt, MemoryRefusal, MemoryWriteResult
from memoranda.memory.curated.store import MemoryStore
from memoranda.support.home import Home
from memoranda.support.origin import Origin
from memoranda.upkeep import doctor
from tests.forked import Forked, Say
from tests.torture.counts import Counts
from tests.torture.server_strikes import Progress, new_home, running_server

_EDITORS = 4
_STRIKES_PER_HOME = 24
_LONGEST_ROUND = 600
# So many edits are acknowledged before an editor is killed: enough for replacements and undo.
_EDITS = 5
_ORIGIN = Origin("torture")


def kill_editors(directory: Path, wanted: int, seed: int, progress: Progress = lambda done: None) -> Counts:
    """Kill processes that edit the same curated memory, each after it has acknowledged something."""
    counts, chance = Counts("killed editors of memory"), random.Random(seed)
    with running_server() as server:
        while counts.strikes < wanted:
            with new_home(directory, server, counts.strikes) as home:
                said: dict[str, bytes] = {}
                while len(said) < _STRIKES_PER_HOME and counts.strikes < wanted:
                    said |= _kill_round(home, counts.strikes, min(_EDITORS, wanted - counts.strikes), chance)
                    counts.strikes += min(_EDITORS, wanted - counts.strikes)
                    progress(counts.strikes)
                counts.acknowledged += sum(lines.count(b"ok\n") for lines in said.values())
                counts.remark("refused", sum(lines.count(b"refused\n") for lines in said.values()))
                counts.wrong += find_faults(home, said)
    return counts


def _kill_round(home: Path, number: int, count: int, chance: random.Random) -> dict[str, bytes]:
    names = [f"editor {number}-{index}" for index in range(count)]
    editors = {name: Forked(partial(edit, home, name, chance.randrange(1 << 30)), _LONGEST_ROUND) for name in names}
    said = dict.fromkeys(names, b"")
    for name, editor in editors.items():
        while said[name].count(b"ok\n") < _EDITS:
            said[name] += editor.heard()
    for name, editor in editors.items():
        time.sleep(chance.uniform(0, 0.05))
        said[name] += editor.kill()
    return said


def edit(home: Path, name: str, seed: int, say: Say) -> None:
    """Edit the memory of a home for ever: only entries that name this editor."""
    chance, entries, number = random.Random(seed), list[str](), 0
    undoable: tuple[int, list[str]] | None = None
    with memoranda.open(home) as memory:
        while True:
            number += 1
            text = f"note {number} of {name}."
            after, run = _choose(memory.curated, entries, text, undoable, chance)
            say(f"try {json.dumps(after)}\n".encode())
            result = run()
            if isinstance(result, MemoryReceipt):
                undoable = None if result.change is None else (result.change, entries)
                entries = after
                say(b"ok\n")
            else:
                undoable = None
                say(b"refused\n")


def _choose(
    store: MemoryStore, entries: list[str], text: str, undoable: tuple[int, list[str]] | None, chance: random.Random
) -> tuple[list[str], Callable[[], MemoryWriteResult | MemoryRefusal]]:
    """An edit, and the entries of this editor after it."""
    kind = chance.choice(("add", "replace", "remove", "undo"))
    if kind == "undo" and undoable is not None:
        change, before = undoable
        return before, lambda: change_history.undo(store, change, _ORIGIN)
    if kind in ("replace", "remove") and entries:
        old = chance.choice(entries)
        if kind == "remove":
            return [each for each in entries if each != old], lambda: store.remove("memory", old, _ORIGIN)
        after = [text if each == old else each for each in entries]
        return after, lambda: store.replace("memory", old, text, _ORIGIN)
    return [*entries, text], lambda: store.add("memory", text, _ORIGIN)


def find_faults(home: Path, said: dict[str, bytes]) -> list[str]:
    """What is wrong with the memory: lost or repeated edits, and a history that does not lead to the entries."""
    faults = []
    with memoranda.open(home) as memory:
        stored = list(memory.curated.entries("memory"))
    for name, lines in said.items():
        found = sorted(entry for entry in stored if entry.endswith(f" of {name}."))
        if found not in possible_entries(lines):
            faults.append(f"{name}: found {found}, expected one of {possible_entries(lines)}")
    for issue in doctor.examine(Home.at(home), lambda *_: None):
        if "history" in issue.problem or "outside" in issue.problem or "lines" in issue.problem:
            faults.append(f"{issue.path}: {issue.problem}")
    return faults


def possible_entries(said: bytes) -> list[list[str]]:
    """The entries after the last acknowledged edit, and after one that was begun and not answered."""
    entries, begun = list[str](), None
    for line in said.decode().splitlines(keepends=True):
        if line == "ok\n":
            assert begun is not None
            entries, begun = begun, None
        elif line == "refused\n":
            begun = None
        elif line.endswith("\n"):
            begun = json.loads(line.removeprefix("try "))
    return [sorted(each) for each in (entries, begun) if each is not None]
