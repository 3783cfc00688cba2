"""The manifest of a backup: which files it contains, with their sizes and checksums."""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from memoranda.errors import BackupError

NAME = "memoranda-backup.json"
FORMAT = 1
MAX_BYTES = 64_000_000
_DIGEST_LENGTH = 64


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file in a backup."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup contains, and of what it is."""

    created_at: str
    version: str
    profile: str
    files: tuple[StoredFile, ...]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    def to_json(self) -> str:
        data = {"format": FORMAT} | asdict(self)
        return json.dumps(data, ensure_ascii=False, indent=1)

    @classmethod
    def parse(cls, text: str) -> "Manifest":
        """Read a manifest; raises BackupError if this version cannot use it, or if a name leads out of the home."""
        try:
            data: dict[str, Any] = json.loads(text)
            if data["format"] != FORMAT:
                raise BackupError(
                    f"This backup has format {data['format']!r}, and this version reads format {FORMAT}. Upgrade "
                    "Memoranda."
                )
            files = tuple(
                StoredFile(str(each["name"]), int(each["bytes"]), str(each["sha256"])) for each in data["files"]
            )
            manifest = cls(str(data["created_at"]), str(data["version"]), str(data["profile"]), files)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BackupError(f"The manifest of the backup cannot be read: {error}.") from error
        manifest._check()
        return manifest

    def refreshed(self, directory: Path) -> "Manifest":
        """The manifest after files of the unpacked backup in `directory` were changed or removed."""
        files = []
        for file in self.files:
            path = directory / file.name
            if path.is_file():
                with open(path, "rb") as stream:
                    digest = hashlib.file_digest(stream, "sha256").hexdigest()
                files.append(StoredFile(file.name, path.stat().st_size, digest))
        return replace(self, files=tuple(files))

    def _check(self) -> None:
        names = set()
        for file in self.files:
            path = PurePosixPath(file.name)
            is_inside = path.parts and not path.is_absolute() and ".." not in path.parts and str(path) == file.name
            if not is_inside or any(char in file.name for char in "\\:\0") or file.name.lower() in names:
                raise BackupError(f"The backup contains a file with the name {file.name!r}, which no home has.")
            if file.bytes < 0 or len(file.sha256) != _DIGEST_LENGTH:
                raise BackupError(f"The manifest of the backup says nothing usable about {file.name!r}.")
            names.add(file.name.lower())
