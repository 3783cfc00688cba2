"""The queue and the journals of a home for tests: fills them, damages their files, and reads them as a program does."""

import os
import random
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.external.outbox.outbox import Outbox
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.skills.skill_text import with_front_matter
from memoranda.memory.skills.store import SkillStore
from memoranda.support.home import Home
from memoranda.support.origin import PERSON

Parts = dict[str, str]
"""What a provider would receive, and every change in the journals, by names."""
PartDamage = Callable[[Path, random.Random], object]


def fill_parts(root: Path, count: int = 30) -> None:
    """Queue deliveries, and change entries and skills."""
    home = Home.at(root)
    memory, skills = MemoryStore(home.memories()), SkillStore(home.skills())
    for number in range(count // 3):
        memory.add("memory", f"The heron {number} nests at the lake.")
        memory.remove("memory", f"heron {number}")
        content = with_front_matter(f"step-{number}", "How to do it.", f"1. Ask the heron {number}.")
        skills.create(f"step-{number}", content, PERSON)
    with closing(Outbox(root)) as outbox:
        for number in range(count):
            args = {"user_content": f"heron {number} " * 20, "assistant_content": "Noted."}
            outbox.put(
                "diary", "turn", f"s{number}", args, {"session_id": f"s{number}"}, key=f"k{number}", leased=False
            )


def read_parts(root: Path) -> Parts:
    """Deliver every job, and list every change."""
    home, found = Home.at(root), Parts()
    try:
        with closing(Outbox(root)) as outbox:
            outbox.catch_up("diary")
            while (job := outbox.claim("diary")) is not None:
                found[f"job {job.key}"] = repr((job.kind, job.session_id, job.args, job.facts))
                outbox.delivered(job)
    except StorageError:
        # The doctor reports why.
        pass
    for change in MemoryStore(home.memories()).journal.changes():
        found[f"change {change.number} {change.action}"] = repr(change)
    for skill_change in SkillStore(home.skills()).journal.changes():
        found[f"skill change {skill_change.number}"] = repr(skill_change)
    return found


def _flip_bit(path: Path, chosen: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[chosen.randrange(len(content))] ^= 1 << chosen.randrange(8)
    path.write_bytes(content)


def _change_letter(path: Path, chosen: random.Random) -> None:
    """Change a letter of a stored text, which leaves a valid file."""
    content = path.read_bytes()
    place = chosen.choice([at for at in range(len(content)) if content.startswith(b"heron", at)]) + chosen.randrange(5)
    path.write_bytes(content[:place] + bytes([chosen.choice(b"xyz")]) + content[place + 1 :])


def _truncate(path: Path, chosen: random.Random) -> None:
    os.truncate(path, chosen.randrange(path.stat().st_size))


_FILES = {
    "queue": "home.db",
    "notifications": "state.db",
    "journal": "memories/journal.jsonl",
    "skill journal": "skills/.journal.jsonl",
}
_HOW: dict[str, Callable[[Path, random.Random], object]] = {
    "one bit": _flip_bit,
    "one letter": _change_letter,
    "truncated": _truncate,
    "emptied": lambda path, chosen: os.truncate(path, 0),
    "deleted": lambda path, chosen: path.unlink(),
}


def _damage(name: str, how: str, root: Path, chosen: random.Random) -> None:
    _HOW[how](root / _FILES[name], chosen)


PART_DAMAGES: dict[str, PartDamage] = {
    f"{name}: {how}": partial(_damage, name, how)
    for name, file in _FILES.items()
    for how in _HOW
    # The texts of the queue are in the record, of which other tests damage the rest.
    if file not in ("home.db", "state.db") or (file == "state.db") == (how == "one letter")
}
"""What can happen to these files; each damage takes the home and a seed."""
