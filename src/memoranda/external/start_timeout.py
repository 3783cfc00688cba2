"""How long a new session waits for its provider to start: only briefly if the provider was late the last time.

Whether it was late is remembered in this process, and across processes in the provider's status file.
"""

import logging
from pathlib import Path

from memoranda.errors import ProviderError
from memoranda.external.status_file import read_status
from memoranda.storage.files.fork_lock import ForkLock

_log = logging.getLogger(__name__)

# Enough for a provider that works again, and hardly noticeable with one that does not.
_TIMEOUT_AFTER_LATE_START = 0.2
_lock = ForkLock()
_late: dict[tuple[Path, str], bool] = {}


def start_timeout(home: Path, name: str, timeout: float) -> float:
    """Seconds to wait for a provider: `timeout`, or less if it was late the last time."""
    with _lock:
        late = _late.get((home, name))
    if late is None:
        try:
            late = read_status(home, name).late_start
        except ProviderError as error:
            _log.warning("%s", error)
            late = False
    return min(timeout, _TIMEOUT_AFTER_LATE_START) if late else timeout


def remember_start(home: Path, name: str, *, late: bool) -> None:
    """Remember whether a provider was ready in time."""
    with _lock:
        _late[home, name] = late
