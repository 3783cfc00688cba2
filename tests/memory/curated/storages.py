"""Opens curated memory in files or in tables, as the test's parameter says, so that one test runs on both."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any, ClassVar

from memoranda.memory.curated.settings import CuratedSettings
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.table_storage import TableStorage, TableTexts
from memoranda.storage.engine import Engine
from memoranda.storage.files.named_texts import Document


class Tables:
    """The tables that `open_store` uses in place of directories: every directory is a user of its own."""

    engine: Engine | None = None
    _users: ClassVar[dict[str, str]] = {}

    @classmethod
    def storage(cls, directory: Path) -> TableStorage:
        assert cls.engine is not None
        user = cls._users.setdefault(str(directory), secrets.token_hex(8))
        engine = cls.engine
        storage = TableStorage(lambda: engine, user)
        cls._users[str(storage.directory)] = user
        storage.directory = RowPath(storage.directory)
        for texts, folder in ((storage.texts, ""), (storage.backups, ""), (storage.proposals, "pending")):
            assert isinstance(texts, TableTexts)
            texts.directory = storage.directory / folder
        return storage

    @classmethod
    def document(cls, path: Path) -> Document:
        """The row that has what a file at this path would have."""
        parent = path.parent
        name = path.name
        while parent.name in ("pending", "rejected"):
            name, parent = (f"rejected/{name}" if parent.name == "rejected" else name), parent.parent
        storage = cls.storage(parent)
        if "pending" in path.parts:
            return Document(storage.proposals, name)
        if name in ("allowed.json", "forgotten.json"):
            return storage.allowances if name == "allowed.json" else storage.forgotten
        return Document(storage.backups if ".bak." in name else storage.texts, name)


class RowPath(type(Path())):  # type: ignore[misc]
    """A path in place of which there is a row: tests read and write it as another program would a file."""

    def read_bytes(self) -> bytes:
        if self.name == "journal.jsonl":
            return b"".join(line + b"\n" for line in Tables.storage(self.parent).lines.read())
        return Tables.document(self).read()

    def read_text(self, *_: Any, **__: Any) -> str:
        return self.read_bytes().decode()

    def write_bytes(self, data: bytes) -> int:
        if self.name == "journal.jsonl":
            lines = data.split(b"\n")
            Tables.storage(self.parent).lines.replace(lines if lines[-1] else lines[:-1])
        else:
            Tables.document(self).write(data)
        return len(data)

    def write_text(self, data: str, *_: Any, **__: Any) -> int:
        return self.write_bytes(data.encode())

    def exists(self, **_: Any) -> bool:
        try:
            self.read_bytes()
        except FileNotFoundError:
            return False
        return True

    def unlink(self, missing_ok: bool = False) -> None:
        storage = Tables.storage(self.parent)
        (storage.backups if ".bak." in self.name else storage.texts).remove(self.name)

    def mkdir(self, *_: Any, **__: Any) -> None:
        """Rows need no directory."""

    def chmod(self, *_: Any, **__: Any) -> None:
        """Rows have no permissions of their own."""

    def glob(self, pattern: str, **_: Any) -> Iterator["RowPath"]:
        """The proposals that wait, or the backups of a file."""
        pending = self.name == "pending"
        storage = Tables.storage(self.parent if pending else self)
        names = (storage.proposals if pending else storage.backups).names()
        yield from (self / name for name in names if Path(name).match(pattern) and "/" not in name)

    @contextmanager
    def open(self, mode: str = "r", **_: Any) -> Iterator[BytesIO | StringIO]:
        assert mode in ("ab", "a"), "only appending is needed"
        file = BytesIO(self.read_bytes()) if mode == "ab" else StringIO(self.read_text())
        file.seek(0, os.SEEK_END)
        yield file
        content = file.getvalue()
        self.write_bytes(content if isinstance(content, bytes) else content.encode())


def open_store(directory: Path, settings: CuratedSettings | None = None) -> MemoryStore:
    """The memory that a directory has, or that the rows in its place have."""
    if Tables.engine is None:
        return MemoryStore(directory, settings)
    return MemoryStore.over(Tables.storage(directory), settings)


def small_store(directory: Path, limit: int) -> MemoryStore:
    """A store whose two texts may hold `limit` characters each."""
    made = open_store(directory, CuratedSettings(memory_char_limit=limit, user_char_limit=limit))
    made.load_from_disk()
    return made
