"""A change to another program's settings file: shown first, backed up, and refused if the file changed in between."""

import difflib
import logging
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.integrations.hosts.created_files import CreatedFiles, is_empty_text, missing_directories, remove_empty
from memoranda.integrations.hosts.settings_backups import SettingsBackups
from memoranda.support.durable_files import (
    discard_staged,
    make_private_directory,
    publish,
    read_file,
    stage,
    staged_path,
    sync_directory,
)

_MAX_BYTES = 64 * 1024 * 1024
_PRIVATE_MODE, _SHARED_MODE = 0o600, 0o644
_log = logging.getLogger(__name__)


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
        content = read_file(file, _MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror or error}. Nothing was written.") from error
    if len(content) > _MAX_BYTES:
        raise SettingsError(f"{file} is too large for a settings file. Nothing was written.")
    return content


def apply_changes(changes: Sequence[HostFileChange], backups: Path) -> list[Path | None]:
    """Applies all changes or none. Returns the path of each file's backup; None for a new file and for a removed one.

    If one change fails, the earlier ones are reverted, and the error names those that could not be. The files and
    directories that are created here are listed beside the backups, so that uninstalling removes them.
    """
    copies: list[Path | None] = []
    created = {change.file: missing_directories(change.file) for change in changes if change.before is None}
    empty = {change.file: text for change in changes if (text := _empty_text(change.before)) is not None}
    for index, change in enumerate(changes):
        try:
            copies.append(apply_change(change, backups))
        except SettingsError as error:
            problems = [_revert(*applied) for applied in zip(changes[:index], copies, strict=True)]
            not_reverted = " ".join(filter(None, problems))
            remove_empty(directory for directories in created.values() for directory in directories)
            raise SettingsError(f"{error} {not_reverted or 'Nothing was changed.'}") from error
    record = CreatedFiles(backups)
    restored = [change.file for change in changes if change.after is None or _empty_text(change.after) is not None]
    record.add(created, {file: text for file, text in empty.items() if file not in restored})
    remove_empty({parent for change in changes for parent in _own_directories(change)})
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
    return text if text is not None and is_empty_text(text) else None
