"""Files that other memories and agents wrote themselves, with what an import of them must bring; see README.md."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Sample:
    """One program's files: what they contain, and how to add something to them as the program does."""

    source: str
    messages: int
    """How many messages, notes, items and states the program stored."""
    sessions: dict[str, int]
    """How many of them each session gets."""
    known: tuple[str, str, str, str]
    """A message: its session, its id in the program or a part of it, its time in ISO 8601, its text."""
    grow: Callable[[Path], int]
    """Adds something to a copy of the files, and returns how many messages that is."""
    folder: str = ""
    skipped: dict[str, int] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return FOLDER / (self.folder or self.source)

    def __str__(self) -> str:
        return self.folder or self.source


def execute(file: Path, statement: str) -> int:
    """Run one statement in a database of a sample, and return how many rows it changed."""
    with closing(sqlite3.connect(file)) as connection, connection:
        return connection.execute(statement).rowcount
