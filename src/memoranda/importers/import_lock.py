"""One import into a home at a time: two at once would add nothing twice, but each would count what the other added."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from memoranda.errors import LockTimeoutError
from memoranda.support.durable_files import make_private_directory
from memoranda.support.file_lock import FileLock, lock_holder

LOCK = "imports.lock"


@contextmanager
def import_lock(root: Path, wait: float, waiting: Callable[[str], None] = lambda other: None) -> Iterator[str]:
    """Be the only import as long as this lasts; gives "", or who else is importing when it took longer than `wait`.

    `waiting` is told who that is before anything is waited for.
    """
    make_private_directory(root)
    path, other = root / LOCK, ""
    with ExitStack() as held:
        for patience in dict.fromkeys((0.0, wait)):
            try:
                held.enter_context(FileLock(path, patience))
            except LockTimeoutError:
                other = lock_holder(path)
                if patience < wait:
                    waiting(other)
            else:
                other = ""
                break
        yield other
