"""Private texts with names, each replaced as a whole: files of a directory here, rows of a table elsewhere."""

from pathlib import Path
from typing import Protocol

from memoranda.support.durable_files import make_private_directory, read_file, sync_directory, write_private


class Document(Protocol):
    """One text. Changing it needs the lock of what it belongs to."""

    @property
    def path(self) -> Path:
        """Its name in messages; a file has it, a row of a table does not."""

    def read(self) -> bytes:
        """The content; raises FileNotFoundError if there is none."""

    def write(self, content: bytes) -> None:
        """Replace the content durably."""


class NamedTexts(Protocol):
    """Texts of one kind, by name. Changing them needs the lock of what they belong to."""

    def names(self) -> list[str]:
        """The names of all texts, sorted."""

    def path(self, name: str) -> Path:
        """The name of a text in messages; a file has it, a row of a table does not."""

    def read(self, name: str) -> bytes:
        """The content of a text; raises FileNotFoundError if there is none."""

    def write(self, name: str, content: bytes) -> None:
        """Create or replace a text durably."""

    def rename(self, name: str, new_name: str) -> None:
        """Rename a text durably; raises FileNotFoundError if there is none."""

    def remove(self, name: str) -> None:
        """Remove a text durably, if it exists."""


class FileDocument:
    """A text in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> bytes:
        return read_file(self.path)

    def write(self, content: bytes) -> None:
        make_private_directory(self.path.parent)
        write_private(self.path, content)


class NamedFiles:
    """The files of a directory that match some patterns; a name may have a folder in it."""

    def __init__(self, directory: Path, *patterns: str) -> None:
        self.directory = directory
        self._patterns = patterns

    def names(self) -> list[str]:
        paths = {path for pattern in self._patterns for path in self.directory.glob(pattern)}
        return sorted(path.relative_to(self.directory).as_posix() for path in paths)

    def path(self, name: str) -> Path:
        return self.directory / name

    def read(self, name: str) -> bytes:
        return read_file(self.path(name))

    def write(self, name: str, content: bytes) -> None:
        path = self.path(name)
        make_private_directory(path.parent)
        write_private(path, content)

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
