"""A change to somebody else's settings file: shown before it is made, backed up, and made only to what was shown."""

import difflib
import logging
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.support.durable_files import (
    discard_staged,
    make_private_directory,
    publish,
    read_file,
    stage,
    staged_path,
    write_private,
)

_MOST_BACKUPS = 10
_MOST_BYTES = 64 * 1024 * 1024
_SHARED_FILE = 0o644
_log = logging.getLogger(__name__)


class SettingsError(StorageError):
    """A host's settings file could not be read or changed; it was left as it is."""


@dataclass(frozen=True, slots=True)
class HostFileChange:
    """A file before and after; `before` is None when there is none yet. `shared` is a file that others read too."""

    file: Path
    before: bytes | None
    after: bytes
    shared: bool = False

    @property
    def is_needed(self) -> bool:
        return self.after != (self.before or b"")

    def diff(self) -> str:
        """What changes, line by line."""
        before, after = (text.decode("utf-8", "replace").splitlines() for text in (self.before or b"", self.after))
        name = str(self.file)
        lines = difflib.unified_diff(
            before, after, name if self.before is not None else "(new file)", name, lineterm=""
        )
        return "\n".join(lines)


def read_settings(file: Path) -> bytes | None:
    """The content of a settings file; None when there is none."""
    try:
        content = read_file(file, _MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror or error}. It was left as it is.") from error
    if len(content) > _MOST_BYTES:
        raise SettingsError(f"{file} is too large for a settings file. It was left as it is.")
    return content


def apply_changes(changes: Sequence[HostFileChange], backups: Path) -> list[Path | None]:
    """Make all changes or none; where the copy of each file lies as it was before.

    What was written before one fails is put back, and the error names what could not be.
    """
    copies: list[Path | None] = []
    for place, change in enumerate(changes):
        try:
            copies.append(apply_change(change, backups))
        except SettingsError as error:
            tried = [_put_back(*made) for made in zip(changes[:place], copies, strict=True)]
            left = " ".join(filter(None, tried))
            raise SettingsError(f"{error} {left or 'Nothing was changed.'}") from error
    return copies


def apply_change(change: HostFileChange, backups: Path) -> Path | None:
    """Make a change; where the copy of the file lies as it was before, if there was one.

    A link stays a link: what it leads to is changed. If the file is no longer what was shown, nothing is done.
    """
    if _is_read_only(change.file):
        # A rename would replace it all the same, against the will of whoever made it so.
        raise SettingsError(f"{change.file} is read-only. Make it writable, or change it by hand.")
    try:
        backup = _back_up(change, backups)
    except OSError as error:
        raise SettingsError(f"No copy of {change.file} can be kept in {backups}: {error.strerror or error}.") from error
    _write(change)
    return backup


def _write(change: HostFileChange) -> None:
    target = Path(os.path.realpath(change.file))
    try:
        make_private_directory(target.parent)
        stage(target, change.after)
        try:
            os.chmod(staged_path(target), _mode(target, change))
            if read_settings(target) != change.before:
                raise SettingsError(f"{change.file} changed this moment; try again.")
            publish(target)
        except BaseException:
            discard_staged(target)
            raise
    except OSError as error:
        raise SettingsError(f"{change.file} cannot be written: {error.strerror or error}.") from error


def _put_back(change: HostFileChange, copy: Path | None) -> str:
    """Take a change back; what to say when that is not possible, else ""."""
    try:
        if change.before is not None:
            _write(HostFileChange(change.file, change.after, change.before, change.shared))
            return ""
        if read_settings(change.file) == change.after:
            os.unlink(os.path.realpath(change.file))
            return ""
    except (SettingsError, OSError) as error:
        _log.warning("%s could not be put back: %s", change.file, error)
    was = "it was not there before" if copy is None else f"as it was before: {copy}"
    return f"{change.file} stays changed ({was})."


def _is_read_only(file: Path) -> bool:
    """Whether there is such a file and it may not be written; root may write any, so its mode counts too."""
    try:
        return not os.stat(file).st_mode & stat.S_IWUSR or not os.access(file, os.W_OK)
    except OSError:
        return False


def _mode(target: Path, change: HostFileChange) -> int:
    """A new file is private, unless it is one that a project shares."""
    try:
        return stat.S_IMODE(os.stat(target).st_mode)
    except FileNotFoundError:
        return _SHARED_FILE if change.shared else 0o600


def _back_up(change: HostFileChange, backups: Path) -> Path | None:
    if change.before is None:
        return None
    make_private_directory(backups)
    name = change.file.name.lstrip(".")
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}"
    copy = backups / f"{stamp}-{name}"
    write_private(copy, change.before)
    older = sorted(backups.glob(f"*-{name}"))[:-_MOST_BACKUPS]
    for each in older:
        each.unlink(missing_ok=True)
    return copy
