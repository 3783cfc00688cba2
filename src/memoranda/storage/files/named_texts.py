"""Private texts with names, each replaced as a whole: files of a directory here, rows of a table elsewhere."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from memoranda.support.durable_files import make_private_directory, read_file, sync_directory, write_private
from memoranda.support.lazy_dataclass import dataclass


class NamedTexts(Protocol):
    """Texts of one kind, by name. Changing them needs the lock of what they belong to."""

    def names(self) -> list[str]:
        """The names of all texts, sorted."""

    def path(self, name: str) -> Path:
        """The name of a text in messages; a file has it, a row of a table does not."""

    def read(self, name: str) -> bytes:
        """The content of a text; raises FileNotFoundError if there is none."""

    def write(self, name: str, content: bytes, modified: float | None = None) -> None:
        """Create or replace a text durably; `modified` is its time, now if there is none."""

    def modified_at(self, name: str) -> float:
        """When a text was last written, in seconds since 1970; raises FileNotFoundError if there is none."""

    def rename(self, name: str, new_name: str) -> None:
        """Rename a text durably; raises FileNotFoundError if there is none."""

    def remove(self, name: str) -> None:
        """Remove a text durably, if it exists."""


@dataclass(frozen=True, slots=True)
class Document:
    """One named text."""

    texts: NamedTexts
    name: str

    @property
    def path(self) -> Path:
        return self.texts.path(self.name)

    def read(self) -> bytes:
        return self.texts.read(self.name)

    def write(self, content: bytes) -> None:
        self.texts.write(self.name, content)


class NamedFiles:
    """The files of a directory that match some patterns; a name may have a folder in it, which may be elsewhere."""

    def __init__(self, directory: Path, *patterns: str, folders: Mapping[str, Path] | None = None) -> None:
        """`folders` says where the folders are that are not in the directory."""
        self.directory = directory
        self._patterns = patterns
        self._folders = folders or {}

    def names(self) -> list[str]:
        found = set()
        for pattern in self._patterns:
            folder, _, rest = pattern.partition("/")
            if rest and folder in self._folders:
                base = self._folders[folder]
                found |= {f"{folder}/{path.relative_to(base).as_posix()}" for path in base.glob(rest)}
            else:
                found |= {path.relative_to(self.directory).as_posix() for path in self.directory.glob(pattern)}
        return sorted(found)

    def path(self, name: str) -> Path:
        folder, _, rest = name.partition("/")
        return self._folders[folder] / rest if rest and folder in self._folders else self.directory / name

    def read(self, name: str) -> bytes:
        return read_file(self.path(name))

    def write(self, name: str, content: bytes, modified: float | None = None) -> None:
        path = self.path(name)
        make_private_directory(path.parent)
        write_private(path, content)
        if modified is not None:
            os.utime(path, (modified, modified))

    def modified_at(self, name: str) -> float:
        return self.path(name).stat().st_mtime

    def rename(self, name: str, new_name: str) -> None:
        old_path, new_path = self.path(name), self.path(new_name)
        make_private_directory(new_path.parent)
        old_path.replace(new_path)
        for directory in {old_path.parent, new_path.parent}:
            sync_directory(directory)

    def remove(self, name: str) -> None:
        path = self.path(name)
        path.unlink(missing_ok=True)
        if path.parent.is_dir():
            sync_directory(path.parent)
