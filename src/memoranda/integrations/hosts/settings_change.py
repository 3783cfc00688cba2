"""A change to another program's settings file: shown first, backed up, and refused if the file changed in between.

There is one backup of each file, from before the last change. Settings contain account data and keys, so older copies
are removed with each change, and the last one when Memoranda is uninstalled. Only the owner can read a copy.

`created.json` beside the backups of a host lists the settings files and directories that an installation created.
Without it, uninstalling could not tell an empty settings file that it created from one that the user had before; the
record has the text of those too.
"""

import contextlib
import difflib
import json
import logging
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.support.canonical_text import digest
from memoranda.support.durable_files import (
    discard_staged,
    make_private_directory,
    publish,
    read_file,
    stage,
    staged_path,
    sync_directory,
    write_private,
)
from memoranda.support.lazy_dataclass import dataclass

BLANK = " \t\r\n\ufeff"
_FILE_NAME = "created.json"
_MAX_RECORD_BYTES = 1_000_000
_log = logging.getLogger(__name__)
_STAMP = r"\d{8}T\d{6}\.\d{6}"
_MAX_SETTINGS_BYTES = 64 * 1024 * 1024
_PRIVATE_MODE, _SHARED_MODE = 0o600, 0o644


class SettingsError(StorageError):
    """A host's settings file could not be read or changed; nothing was written."""


@dataclass(frozen=True, slots=True)
class HostFileChange:
    """A file before and after; None for a file that does not exist. A `shared` file belongs to a project."""

    file: Path
    before: bytes | None
    after: bytes | None
    shared: bool = False
    directory: Path | None = None
    """The directory of our plugin, for a file in it; a removal of its last file removes the directory."""

    @property
    def is_needed(self) -> bool:
        return self.after != (self.before if self.after is None else self.before or b"")

    def diff(self) -> str:
        """Returns what changes, line by line."""
        before, after = ((text or b"").decode("utf-8", "replace").splitlines() for text in (self.before, self.after))
        name = str(self.file)
        names = ("(new file)" if self.before is None else name, "(removed file)" if self.after is None else name)
        if self.directory is not None:
            # The user did not write it, so its lines say less than its name.
            return f"--- {names[0]}\n+++ {names[1]}\n(a file of the plugin, {len(after or before)} lines)"
        return "\n".join(difflib.unified_diff(before, after, *names, lineterm=""))


def read_settings(file: Path) -> bytes | None:
    """Returns the content of a settings file; None when it does not exist."""
    try:
        content = read_file(file, _MAX_SETTINGS_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror or error}. Nothing was written.") from error
    if len(content) > _MAX_SETTINGS_BYTES:
        raise SettingsError(f"{file} is too large for a settings file. Nothing was written.")
    return content


def apply_changes(changes: Sequence[HostFileChange], backups: Path) -> list[Path | None]:
    """Applies all changes or none. Returns the path of each file's backup; None for a new file and for a removed one.

    If one change fails, the earlier ones are reverted, and the error names those that could not be. The files and
    directories that are created here are listed beside the backups, so that uninstalling removes them.
    """
    copies: list[Path | None] = []
    created = {change.file: _missing_directories(change.file) for change in changes if change.before is None}
    empty = {change.file: text for change in changes if (text := _empty_text(change.before)) is not None}
    for index, change in enumerate(changes):
        try:
            copies.append(apply_change(change, backups))
        except SettingsError as error:
            problems = [_revert(*applied) for applied in zip(changes[:index], copies, strict=True)]
            not_reverted = " ".join(filter(None, problems))
            _remove_empty(directory for directories in created.values() for directory in directories)
            raise SettingsError(f"{error} {not_reverted or 'Nothing was changed.'}") from error
    record = CreatedFiles(backups)
    restored = [change.file for change in changes if change.after is None or _empty_text(change.after) is not None]
    record.add(created, {file: text for file, text in empty.items() if file not in restored})
    _remove_empty({parent for change in changes for parent in _own_directories(change)})
    record.remove(restored)
    return copies


def _own_directories(change: HostFileChange) -> list[Path]:
    """Returns our directories that may be empty without a removed file."""
    if change.directory is None or change.after is not None:
        return []
    return [parent for parent in change.file.parents if parent.is_relative_to(change.directory)]


def apply_change(change: HostFileChange, backups: Path) -> Path | None:
    """Applies a change. Returns the path of the file's backup; None for a new file and for a removed one.

    A symbolic link stays, and the file it points to is changed. A file that changed after it was shown is refused.
    """
    if _is_read_only(change.file):
        # A rename would replace it nevertheless, but its owner protected it.
        raise SettingsError(f"{change.file} is read-only. Make it writable, or change it by hand.")
    try:
        backup = _back_up(change, backups)
    except OSError as error:
        raise SettingsError(f"{change.file} cannot be backed up to {backups}: {error.strerror or error}.") from error
    _write(change)
    return backup


def _write(change: HostFileChange) -> None:
    target = Path(os.path.realpath(change.file))
    try:
        if change.after is None:
            _remove(change)
            return
        make_private_directory(target.parent)
        stage(target, change.after)
        try:
            os.chmod(staged_path(target), _mode(target, change))
            if read_settings(target) != change.before:
                raise SettingsError(f"{change.file} changed in the meantime; try again.")
            publish(target)
        except BaseException:
            discard_staged(target)
            raise
    except OSError as error:
        raise SettingsError(f"{change.file} cannot be written: {error.strerror or error}.") from error


def _remove(change: HostFileChange) -> None:
    if read_settings(change.file) != change.before:
        raise SettingsError(f"{change.file} changed in the meantime; try again.")
    change.file.unlink()
    sync_directory(change.file.parent)


def _revert(change: HostFileChange, copy: Path | None) -> str:
    """Reverts a change. Returns what to report when that is not possible, else ""."""
    try:
        if change.before is not None:
            _write(HostFileChange(change.file, change.after, change.before, change.shared))
            return ""
        if read_settings(change.file) == change.after:
            os.unlink(os.path.realpath(change.file))
            return ""
    except (SettingsError, OSError) as error:
        _log.warning("%s could not be reverted: %s", change.file, error)
    original = "it did not exist before" if copy is None else f"backup: {copy}"
    return f"{change.file} stays changed ({original})."


def _is_read_only(file: Path) -> bool:
    """Whether a file exists and may not be written. Root may write any file, so its mode counts too."""
    try:
        return not os.stat(file).st_mode & stat.S_IWUSR or not os.access(file, os.W_OK)
    except OSError:
        return False


def _mode(target: Path, change: HostFileChange) -> int:
    """Returns the mode of the file that is replaced; a new file is private unless a project shares it."""
    try:
        return stat.S_IMODE(os.stat(target).st_mode)
    except FileNotFoundError:
        return _SHARED_MODE if change.shared else _PRIVATE_MODE


def _back_up(change: HostFileChange, backups: Path) -> Path | None:
    if change.before is None or change.after is None:
        # A file is only removed when it contains nothing but our entries.
        return None
    return SettingsBackups(backups).add(change.file, change.before)


def _empty_text(content: bytes | None) -> str | None:
    """Returns the text of a file without settings; None for other files, and for a file that does not exist."""
    text = None if content is None else content.decode("utf-8", "replace")
    return text if text is not None and _is_empty_text(text) else None


class CreatedFiles:
    """The files that installing created for one host, each with the directories that were created for it.

    Files that existed without settings, such as those of zero bytes, are here too.
    """

    def __init__(self, backups: Path) -> None:
        self._path = backups / _FILE_NAME
        self._files = _read_record(self._path)

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
            _remove_empty(
                Path(made) for name in names if isinstance(found := self._files[name], list) for made in found
            )
            self._save({file: made for file, made in self._files.items() if file not in names})

    def _save(self, files: dict[str, list[str] | str]) -> None:
        self._files = files
        try:
            if files:
                make_private_directory(self._path.parent)
                write_private(self._path, json.dumps(files, indent=2).encode())
            else:
                self._path.unlink(missing_ok=True)
                _remove_empty([self._path.parent])
        except OSError as error:
            # The installation is complete; only an empty file may stay when it is removed.
            _log.warning("%s cannot be written: %s", self._path, error)


def _is_empty_text(text: str) -> bool:
    """Whether a settings file with this text has no settings; a comment counts as content."""
    return text.strip(BLANK) in ("", "{}")


def _missing_directories(file: Path) -> list[Path]:
    """Returns the directories that have to be created for a file."""
    target = Path(os.path.realpath(file))
    return [directory for directory in target.parents if not directory.exists()]


def _remove_empty(directories: Iterable[Path]) -> None:
    """Removes the directories that are empty, the deepest first."""
    for directory in sorted(directories, key=lambda path: -len(path.parts)):
        with contextlib.suppress(OSError):
            directory.rmdir()


def _read_record(path: Path) -> dict[str, list[str] | str]:
    try:
        value = json.loads(read_file(path, _MAX_RECORD_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    found: dict[str, list[str] | str] = {}
    for file, made in value.items():
        if isinstance(made, list):
            found[file] = [name for name in made if isinstance(name, str)]
        elif isinstance(made, str) and _is_empty_text(made):
            found[file] = made
    return found


class SettingsBackups:
    """The copies of one host's settings files, in a directory of the home."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def add(self, file: Path, content: bytes) -> Path:
        """Stores a copy of a file, deletes its earlier copies, and returns the path of the new one."""
        earlier = self.copies(file)
        make_private_directory(self._directory)
        stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}"
        copy = self._directory / f"{stamp}-{_file_id(file)}-{file.name.lstrip('.')}"
        write_private(copy, content)
        _delete(earlier)
        return copy

    def remove(self, files: Iterable[Path]) -> None:
        """Removes the copies of these files, and then the directory if it is empty."""
        for file in files:
            _delete(self.copies(file))
        _remove_empty([self._directory])

    def copies(self, file: Path) -> list[Path]:
        """Returns the copies of a file, the oldest first; a process that was killed may leave two."""
        name = re.compile(rf"{_STAMP}-{_file_id(file)}-{re.escape(file.name.lstrip('.'))}")
        return sorted(path for path in self._directory.glob("*") if name.fullmatch(path.name))


def _delete(copies: Iterable[Path]) -> None:
    for path in copies:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            _log.warning("the settings backup %s cannot be removed: %s", path, error)


def _file_id(file: Path) -> str:
    """Returns an id for a path, because two projects may have settings files of the same name."""
    return digest(str(file))[:8]
