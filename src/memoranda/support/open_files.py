"""Which other processes have a file open, where the system tells."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_PROC = "/proc"
_UNLINKED = " (deleted)"


def processes_with(files: Iterable[Path]) -> list[int]:
    """The numbers of those that can be seen from here; none where the system does not tell, as only Linux does."""
    names = {os.path.realpath(file) for file in files}
    try:
        numbers = sorted(int(name) for name in os.listdir(_PROC) if name.isdecimal())
    except FileNotFoundError:
        return []
    return [number for number in numbers if number != os.getpid() and not names.isdisjoint(_open_in(number))]


def _open_in(number: int) -> set[str]:
    directory, found = f"{_PROC}/{number}/fd", set()
    # It may have ended, or belong to somebody else.
    with suppress(OSError):
        for name in os.listdir(directory):
            # Closed in the meantime.
            with suppress(FileNotFoundError):
                # The name alone: to look at the file itself would mean to wait for a network drive that is gone.
                found.add(os.readlink(f"{directory}/{name}").removesuffix(_UNLINKED))
    return found
