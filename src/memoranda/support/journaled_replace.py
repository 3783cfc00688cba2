"""Replacing a file so that a journal knows of it: recorded first, done second, taken back when the second fails.

Until the journal's line is on disk nothing has happened; after the rename everything has. A writer that is killed
between the two leaves its staged file behind, by which the next one knows that the line is void.
"""

import os
from collections.abc import Callable
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.support.durable_files import publish, stage, staged_path
from memoranda.support.text_file import has_content


def replace_with_journal(
    path: Path,
    content: bytes,
    *,
    record: Callable[[], None],
    still_wanted: Callable[[], bool],
    settle: Callable[[], None],
    staged_for: Path | None = None,
) -> bool:
    """Stage the content, record it, ask once more, publish; False when it was no longer wanted and was taken back.

    `settle` removes what was staged and voids a line that was recorded for it. `staged_for` names another file beside
    which to stage, on the same disk. The caller holds the lock.
    """
    staged_for = staged_for or path
    try:
        stage(staged_for, content)
        record()
        if not still_wanted():
            settle()
            return False
        publish(staged_for, path)
    except BaseException as error:
        _recover(path, content, staged_for, settle, error)
        raise
    return True


def _recover(path: Path, content: bytes, staged_for: Path, settle: Callable[[], None], error: BaseException) -> None:
    """After a failure: take everything back, unless the file is in place and only its confirmation is missing."""
    if os.path.lexists(staged_path(staged_for)) or not _is_there(path, content):
        settle()
    elif isinstance(error, OSError):
        raise StorageError(
            f"{path} was written, but the disk did not confirm it ({error}). "
            "It may be lost if the power fails now; check the disk."
        ) from error


def _is_there(path: Path, content: bytes) -> bool:
    try:
        return has_content(path, content)
    except OSError:
        # Unreadable, so not what we wrote.
        return False
