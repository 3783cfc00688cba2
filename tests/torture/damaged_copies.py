"""Damages many copies of a home, lets the doctor find and repair the damage, and counts what became of every message.

For every copy the messages are compared with those of the undamaged home, before and after `doctor --fix`. A message is
*intact*, *marked* as damaged, or *lost*; none may be *altered* without a mark. A copy is *detected* if it is refused
when it is opened or if the doctor reports an error; otherwise all of its messages must be intact. The same holds for
the waiting deliveries and the lines of journals, if the damage is in one of their files.
"""

import logging
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from memoranda.errors import CorruptStoreError, StorageError
from memoranda.home.session_db import SessionDB
from memoranda.memory.record.message_rows import DAMAGED
from memoranda.support.home import Home
from memoranda.upkeep.doctor import examine
from tests.memory.record.damaged_homes import (
    HARMLESS_DAMAGES,
    HEADER_DAMAGES,
    LOST_FILES,
    RANDOM_DAMAGES,
    Damage,
    fill_home,
    read_messages,
)
from tests.torture.counts import Counts
from tests.torture.damaged_parts import PART_DAMAGES, Parts, fill_parts, read_parts

ALL_DAMAGES: dict[str, Damage] = RANDOM_DAMAGES | HEADER_DAMAGES | HARMLESS_DAMAGES | LOST_FILES
_ALL_KINDS = [*ALL_DAMAGES, *PART_DAMAGES]
# Most copies have a damage whose effect depends on where it hits.
_WEIGHTS = {name: 40 if name in RANDOM_DAMAGES else 8 if name in PART_DAMAGES else 1 for name in _ALL_KINDS}
COLUMNS = ("copies", "detected", "refused", "messages", "intact", "marked", "lost", "altered", "undetected")

Messages = dict[int, tuple[str, str, str]]


def run(directory: Path, wanted: int, seed: int, progress: Callable[[int], object] = lambda done: None) -> Counts:
    """Damage `wanted` copies of a home."""
    totals = damage_copies(wanted, directory, seed=seed, workers=2, progress=progress)
    every = sum(totals.values(), Counter())
    counts = Counts(
        "damaged copies", strikes=every["copies"], acknowledged=every["messages"], table=format_table(totals)
    )
    for kind, found in totals.items():
        for fate in ("altered", "undetected"):
            counts.wrong += [f"{kind}: {fate} {found[fate]}"] if found[fate] else []
    return counts


def examine_copy(path: Path, said: Messages) -> Counter[str]:
    """Let the doctor check and repair a damaged home; returns how many messages had which fate."""
    counts = Counter({"copies": 1, "messages": len(said)})
    before = _compare(path, said)
    counts["refused"] = before is None
    counts["altered"] += (before or Counter())["altered"]
    home = Home.at(path.parent)
    errors = [issue for issue in examine(home) if issue.severity == "error"]
    counts["detected"] = bool(errors) or before is None
    for issue in errors:
        if issue.repair is not None:
            issue.repair()
    after = _compare(path, said)
    counts.update(Counter({"lost": len(said)}) if after is None else after)
    if not counts["detected"] and (after is None or after["intact"] < len(said)):
        counts["undetected"] = 1
    return counts


def _compare(path: Path, said: Messages) -> Counter[str] | None:
    """Read every message as a program does; None if the store is refused."""
    found: dict[int, dict[str, object]] = {}
    try:
        with SessionDB(path) as db:
            for session in sorted({session for session, _, _ in said.values()}):
                try:
                    found |= {message["id"]: message for message in db.get_messages(session)}
                except CorruptStoreError:
                    # Its messages cannot be read until the repair.
                    continue
    except StorageError:
        return None
    return Counter(_fate(message, found.get(number)) for number, message in said.items())


def _fate(said: tuple[str, str, str], found: dict[str, object] | None) -> str:
    if found is None:
        return "lost"
    if found.get(DAMAGED):
        return "marked"
    return "intact" if (found["session_id"], found["role"], found["content"]) == said else "altered"


def examine_parts(root: Path, said: Parts) -> Counter[str]:
    """Let the doctor check a home whose queue or journals are damaged; returns what became of their content."""
    reported = [issue for issue in examine(Home.at(root), lambda *_: None) if issue.severity != "note"]
    found = read_parts(root)
    counts = Counter({"copies": 1, "messages": len(said), "detected": int(bool(reported))})
    counts["intact"] = sum(found.get(name) == text for name, text in said.items())
    counts["altered"] = sum(said.get(name) != text for name, text in found.items())
    counts["lost"] = sum(name not in found for name in said)
    counts["undetected"] = int(not reported and counts["intact"] < len(said))
    return counts


def _damage_copy(kind: str, seed: int, original: Path, said: Messages, parts: Parts) -> tuple[str, Counter[str]]:
    """Copy a home, damage it, and count."""
    logging.disable()
    with tempfile.TemporaryDirectory(prefix="memoranda-damaged-", dir=original.parent) as directory:
        home = Path(directory) / "home"
        shutil.copytree(original, home)
        if kind in PART_DAMAGES:
            PART_DAMAGES[kind](home, random.Random(seed))
            return kind, examine_parts(home, parts)
        ALL_DAMAGES[kind](home / "state.db", random.Random(seed))
        return kind, examine_copy(home / "state.db", said)


def choose_kinds(count: int, seed: int) -> Iterator[str]:
    """Every kind at least once if there are enough copies, then at random by their weights."""
    yield from _ALL_KINDS[:count]
    names, weights = list(_WEIGHTS), list(_WEIGHTS.values())
    yield from random.Random(seed).choices(names, weights, k=max(0, count - len(names)))


def damage_copies(
    count: int,
    directory: Path,
    *,
    seed: int = 1,
    workers: int = 1,
    sessions: int = 30,
    progress: Callable[[int], object] = lambda done: None,
) -> dict[str, Counter[str]]:
    """Damage `count` copies of a home with 40 messages in each session; returns the counts by kind of damage."""
    original = directory / "original"
    said = read_messages(fill_home(original, sessions, 40))
    fill_parts(original)
    shutil.copytree(original, directory / "read")
    parts = read_parts(directory / "read")
    totals: dict[str, Counter[str]] = {}
    kinds = list(choose_kinds(count, seed))
    seeds = [seed * 1_000_003 + number for number in range(count)]
    with ProcessPoolExecutor(workers) as pool:
        for done, counts in pool.map(partial(_damage_copy, original=original, said=said, parts=parts), kinds, seeds):
            totals.setdefault(done, Counter()).update(counts)
            progress(sum(found["copies"] for found in totals.values()))
    return totals


def format_table(totals: dict[str, Counter[str]]) -> str:
    rows = [*totals.items(), ("all", sum(totals.values(), Counter()))]
    lines = ["damage".ljust(36) + "".join(name.rjust(11) for name in COLUMNS)]
    lines += [name.ljust(36) + "".join(f"{counts[column]:,}".rjust(11) for column in COLUMNS) for name, counts in rows]
    return "\n".join(lines)
