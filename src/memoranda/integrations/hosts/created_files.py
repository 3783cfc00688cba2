"""Remembers which settings files and directories an installation created, so that uninstalling removes them.

The record is `created.json` beside the backups of a host. Without it, uninstalling could not tell an empty settings
file that it created from one that the user had before; the record has the text of those too.
"""

import contextlib
import json
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from memoranda.support.durable_files import make_private_directory, read_file, write_private

BLANK = " \t\r\n\ufeff"
_FILE_NAME = "created.json"
_MAX_BYTES = 1_000_000
_log = logging.getLogger(__name__)


class CreatedFiles:
    """The files that installing created for one host, each with the directories that were created for it.

    Files that existed without settings, such as those of zero bytes, are here too.
    """

    def __init__(self, backups: Path) -> None:
        self._path = backups / _FILE_NAME
        self._files = _read(self._path)

    def __contains__(self, file: object) -> bool:
        return isinstance(file, Path) and str(file) in self._files

    def original_content(self, file: Path, content: bytes | None) -> bytes | None:
        """Returns what a file had before the installation: None when it did not exist, `content` when that is unknown.

        A link that is in place of a created file was put there later, and what it points to is not ours.
        """
        before = self._files.get(str(file))
        if isinstance(before, str):
            return before.encode()
        return None if before is not None and not file.is_symlink() else content

    def add(self, created: Mapping[Path, list[Path]], empty: Mapping[Path, str]) -> None:
        """Adds new files with their new directories, and files without settings with their text."""
        added = {str(file): list(map(str, made)) for file, made in created.items()}
        if added or empty:
            self._save(self._files | added | {str(file): text for file, text in empty.items()})

    def remove(self, files: Iterable[Path]) -> None:
        """Removes files from the record, and those of their directories that are empty now from the disk."""
        names = [str(file) for file in files if str(file) in self._files]
        if names:
            remove_empty(Path(made) for name in names if isinstance(found := self._files[name], list) for made in found)
            self._save({file: made for file, made in self._files.items() if file not in names})

    def _save(self, files: dict[str, list[str] | str]) -> None:
        self._files = files
        try:
            if files:
                make_private_directory(self._path.parent)
                write_private(self._path, json.dumps(files, indent=2).encode())
            else:
                self._path.unlink(missing_ok=True)
                remove_empty([self._path.parent])
        except OSError as error:
            # The installation is complete; only an empty file may stay when it is removed.
            _log.warning("%s cannot be written: %s", self._path, error)


def is_empty_text(text: str) -> bool:
    """Whether a settings file with this text has no settings; a comment counts as content."""
    return text.strip(BLANK) in ("", "{}")


def missing_directories(file: Path) -> list[Path]:
    """Returns the directories that have to be created for a file."""
    target = Path(os.path.realpath(file))
    return [directory for directory in target.parents if not directory.exists()]


def remove_empty(directories: Iterable[Path]) -> None:
    """Removes the directories that are empty, the deepest first."""
    for directory in sorted(directories, key=lambda path: -len(path.parts)):
        with contextlib.suppress(OSError):
            directory.rmdir()


def _read(path: Path) -> dict[str, list[str] | str]:
    try:
        value = json.loads(read_file(path, _MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    found: dict[str, list[str] | str] = {}
    for file, made in value.items():
        if isinstance(made, list):
            found[file] = [name for name in made if isinstance(name, str)]
        elif isinstance(made, str) and is_empty_text(made):
            found[file] = made
    return found
