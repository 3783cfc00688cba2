"""Notices that the program was changed, moved or removed while this process runs."""

import os
import sys

_Version = tuple[int, int, int, int] | None


class LoadedFiles:
    """The files that this process has loaded its modules from, as they were then."""

    def __init__(self) -> None:
        self._versions: dict[str, _Version] = {sys.executable: _version_of(sys.executable)}
        self.have_changed()

    def have_changed(self) -> bool:
        """Whether any of them is another file now; modules that were loaded since the last call are added."""
        changed = any(_version_of(path) != version for path, version in self._versions.items())
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None)
            if path is not None and path not in self._versions:
                self._versions[path] = _version_of(path)
        return changed


def _version_of(path: str) -> _Version:
    try:
        status = os.stat(path)
    except OSError:
        return None
    # An installer may give each version of a file the same time and size; the time of the entry is always new.
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
