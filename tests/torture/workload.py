"""Writes to a home until it is stopped, and says of each write that it was acknowledged; then compares.

`python -m tests.torture.workload HOME NAME SEED COUNT` prints one line per write: its kind and number, or `refused` and
its number if it raised.
"""

import os
import random
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import memoranda
from memoranda.errors import MemorandaError
from memoranda.home import config
from memoranda.support.home import Home
from memoranda.upkeep import doctor

MESSAGE, BATCH, ENTRY, REFUSED = "message", "batch", "entry", "refused"
_BATCH_SIZE = 3


def prepare(home: Path) -> Path:
    """A home whose curated memory has room for everything."""
    config.set_value(Home.at(home), "memory.memory_char_limit", "1000000")
    return home


def write(home: Path, name: str, seed: int, count: int | None, say: Callable[[bytes], object]) -> None:
    """Write `count` times, or for ever, to a session of this name and to curated memory."""
    chance = random.Random(seed)
    with memoranda.open(home) as memory:
        memory.sessions.create_session(name, "cli")
        number = 0
        while count is None or number < count:
            number += 1
            kind = chance.choices((MESSAGE, BATCH, ENTRY), (6, 3, 1))[0]
            try:
                done = _write_one(memory, name, kind, number)
            except MemorandaError:
                done = False
            say(f"{kind if done else REFUSED} {number}\n".encode())


def _write_one(memory: memoranda.Memory, name: str, kind: str, number: int) -> bool:
    texts = _texts(name, kind, number)
    if kind == ENTRY:
        return bool(memory.remember(texts[0])["success"])
    memory.sessions.append_messages(name, [{"role": "user", "content": text} for text in texts])
    return True


def _texts(name: str, kind: str, number: int) -> list[str]:
    text = f"{kind} {number} of {name}"
    return [f"{text}, part {part}" for part in range(_BATCH_SIZE)] if kind == BATCH else [text]


def acknowledged(said: bytes) -> list[tuple[str, int]]:
    """The writes that were acknowledged; the last line may be incomplete."""
    lines = [line.split() for line in said.decode().splitlines(keepends=True) if line.endswith("\n")]
    return [(kind, int(number)) for kind, number in lines if kind != REFUSED]


def find_faults(home: Path, said: Mapping[str, bytes]) -> list[str]:
    """What is wrong with a home to which writers of these names wrote, and said this; empty if nothing is.

    Every acknowledged write must be there once, in order. What was not acknowledged may be there, once.
    """
    faults = []
    with memoranda.open(home) as memory:
        entries = memory.curated.entries("memory")
        for name, lines in said.items():
            messages = [str(row["content"]) for row in memory.sessions.get_messages(name)]
            expected = [text for kind, number in acknowledged(lines) for text in _texts(name, kind, number)]
            wanted = set(expected)
            faults += [f"lost: {text}" for text in wanted.difference(messages, entries)]
            faults += [f"repeated: {text}" for text in set(messages) if messages.count(text) > 1]
            found = [text for text in messages if text in wanted]
            if found != [text for text in expected if not text.startswith(ENTRY)]:
                faults.append(f"not in order: {name}")
        faults += [f"repeated: {text}" for text in set(entries) if entries.count(text) > 1]
    return faults


def find_issues(home: Path) -> list[str]:
    """The errors that the doctor finds in a home, after it repaired what can be repaired without a decision."""
    for issue in doctor.examine(Home.at(home)):
        if issue.severity != "note" and issue.repair is not None:
            issue.repair()
    return [
        f"{issue.path.name}: {issue.problem}" for issue in doctor.examine(Home.at(home)) if issue.severity == "error"
    ]


if __name__ == "__main__":
    _home, _name, _seed, _count = sys.argv[1:]
    write(Path(_home), _name, int(_seed), int(_count), lambda said: os.write(1, said))
