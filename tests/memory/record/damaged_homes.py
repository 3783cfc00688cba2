"""Homes for tests, and what can happen to the `state.db` of one: each damage takes the path of the file and a seed."""

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import memoranda
from memoranda.home.session_db import SessionDB
from memoranda.memory.record.scope import Scope

Damage = Callable[[Path, random.Random], object]

_BLOCK = 4096


def fill_home(home: Path, sessions: int = 8, messages: int = 15, *, indexed: bool = True) -> Path:
    """Create a home with curated memory, sessions, messages of many lengths and an index; returns its `state.db`."""
    words = random.Random(home.name).choices(_WORDS, k=5000)
    with memoranda.open(home) as memory:
        memory.remember("The staging database is called heron.")
        for session in range(sessions):
            memory.sessions.create_session(f"s{session}", "cli", system_prompt="You are helpful. " * 20)
            memory.sessions.append_messages(
                f"s{session}",
                [
                    {
                        "role": "user" if number % 2 == 0 else "assistant",
                        # Some messages are longer than a page.
                        "content": f"zebra {session} {number} "
                        + " ".join(words[(session * 97 + number * 13) % 900 :][: 20 + 2600 * (number % 14 == 5)]),
                    }
                    for number in range(messages)
                ],
            )
        if indexed:
            memory.sessions.index.catch_up()
    return home / "state.db"


def read_messages(path: Path) -> dict[int, tuple[str, str, str]]:
    """The messages of an undamaged store by id: session, role and content."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT id, session_id, role, content FROM messages").fetchall()
    return {number: (session, role, content) for number, session, role, content in rows}


def append_messages(path: Path, count: int = 5) -> None:
    """Let the store continue, as another process of the home would."""
    with SessionDB(path) as db:
        for number in range(count):
            db.scoped(Scope.everyone()).append_message("s0", "user", f"later {number}")


def flip_bytes(path: Path, chosen: random.Random, count: int = 64) -> None:
    """Change bytes at a random place, as a failing disk does."""
    with path.open("rb+") as file:
        start = chosen.randrange(100, max(101, path.stat().st_size - count))
        file.seek(start)
        old = file.read(count)
        file.seek(start)
        file.write(bytes(byte ^ chosen.randrange(1, 256) for byte in old))


def flip_bit(path: Path, chosen: random.Random) -> None:
    """Change one bit at a random place."""
    with path.open("rb+") as file:
        start = chosen.randrange(100, path.stat().st_size)
        file.seek(start)
        (old,) = file.read(1)
        file.seek(start)
        file.write(bytes([old ^ (1 << chosen.randrange(8))]))


def _write(path: Path, offset: int, content: bytes) -> None:
    with path.open("rb+") as file:
        file.seek(offset)
        file.write(content)


def zero_block(path: Path, chosen: random.Random) -> None:
    """Set a block to zeros, not the first one."""
    _write(path, _BLOCK * chosen.randrange(1, path.stat().st_size // _BLOCK), bytes(_BLOCK))


def truncate(path: Path, chosen: random.Random) -> None:
    """Cut the file somewhere."""
    os.truncate(path, chosen.randrange(_BLOCK, path.stat().st_size - 1))


def swap(path: Path, chosen: random.Random) -> None:
    """Put the store of another home in its place."""
    other = path.parent.parent / f"{path.parent.name}-other"
    shutil.copy(fill_home(other, 2, 3, indexed=False), path)
    shutil.rmtree(other)


RANDOM_DAMAGES: dict[str, Damage] = {
    "64 bytes flipped": flip_bytes,
    "one bit": flip_bit,
    "4 kB zeroed": zero_block,
    "truncated": truncate,
}
"""Damages whose effect depends on where they hit."""

HEADER_DAMAGES: dict[str, Damage] = {
    "header": lambda path, chosen: _write(path, 0, b"\xff" * 16),
    "page size": lambda path, chosen: _write(path, 16, b"\x00\x07"),
    "first 4 kB zeroed": lambda path, chosen: _write(path, 0, bytes(_BLOCK)),
    "application id": lambda path, chosen: _write(path, 68, b"\x00\x00\x00\x00"),
    "application id of another program": lambda path, chosen: _write(path, 68, b"GPKG"),
}
"""Damages of the first page, after which every row still exists."""

HARMLESS_DAMAGES: dict[str, Damage] = {
    "schema cookie": lambda path, chosen: _write(path, 40, b"\x00\x00\x77\x77"),
    "user version": lambda path, chosen: _write(path, 60, b"\x00\x00\x77\x77"),
}
"""Changes of fields that decide nothing: all rows are read as before."""

LOST_FILES: dict[str, Damage] = {
    "emptied": lambda path, chosen: os.truncate(path, 0),
    "deleted": lambda path, chosen: path.unlink(),
    "swapped": swap,
}
"""Damages after which no row of the store exists any more."""

_WORDS = [
    *("deadlock", "locks", "order", "sorted", "test", "failed", "pytest", "fixture", "timeout", "retry", "index"),
    *("cache", "journal", "salvage", "page", "leaf", "overflow", "grüße", "naïve", "数据库", "emoji", "🦓"),
]
