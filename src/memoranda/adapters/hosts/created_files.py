"""Remembers which settings files and directories an installation created, so that uninstalling removes them.

The record is `created.json` beside the backups of a host. Without it, uninstalling could not tell an empty settings
file that it created from one that the user had before.
"""

import contextlib
import json
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from memoranda.support.durable_files import make_private_directory, read_file, write_private

_FILE_NAME = "created.json"
_MAX_BYTES = 1_000_000
_log = logging.getLogger(__name__)


class CreatedFiles:
    """The files that installing created for one host, each with the directories that were created for it."""

    def __init__(self, backups: Path) -> None:
        self._path = backups / _FILE_NAME
        self._directories = _read(self._path)

    def __contains__(self, file: object) -> bool:
        # A symbolic link was put there later, and its target is not ours.
        return isinstance(file, Path) and str(file) in self._directories and not file.is_symlink()

    def add(self, created: Mapping[Path, list[Path]]) -> None:
        if created:
            self._save(self._directories | {str(file): list(map(str, made)) for file, made in created.items()})

    def remove(self, files: Iterable[Path]) -> None:
        """Forgets files that were removed, and removes the directories created for them that are empty now."""
        names = [str(file) for file in files if str(file) in self._directories]
        if names:
            remove_empty(Path(made) for name in names for made in self._directories[name])
            self._save({file: made for file, made in self._directories.items() if file not in names})

    def _save(self, directories: dict[str, list[str]]) -> None:
        self._directories = directories
        try:
            if directories:
                make_private_directory(self._path.parent)
                write_private(self._path, json.dumps(directories, indent=2).encode())
            else:
                self._path.unlink(missing_ok=True)
                remove_empty([self._path.parent])
        except OSError as error:
            # The installation is complete; only an empty file may stay when it is removed.
            _log.warning("%s cannot be written: %s", self._path, error)


def missing_directories(file: Path) -> list[Path]:
    """Returns the directories that have to be created for a file."""
    target = Path(os.path.realpath(file))
    return [directory for directory in target.parents if not directory.exists()]


def remove_empty(directories: Iterable[Path]) -> None:
    """Removes the directories that are empty, the deepest first."""
    for directory in sorted(directories, key=lambda path: -len(path.parts)):
        with contextlib.suppress(OSError):
            directory.rmdir()


def _read(path: Path) -> dict[str, list[str]]:
    try:
        value = json.loads(read_file(path, _MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    return {
        file: [name for name in made if isinstance(name, str)] for file, made in value.items() if isinstance(made, list)
    }
