"""How long the beginning of a session waits for a provider: not at all long for one that was late the last time.

That is remembered in this process, and across processes in the provider's status file.
"""

import logging
import threading
from pathlib import Path

from memoranda.errors import ProviderError
from memoranda.providers.status_file import read_status

_log = logging.getLogger(__name__)

# Time enough for one that has come back, and hardly noticed for one that has not.
_LITTLE = 0.2
_lock = threading.Lock()
_late: dict[tuple[Path, str], bool] = {}


def start_timeout(home: Path, name: str, most: float) -> float:
    """How many seconds to wait for a provider, at most."""
    with _lock:
        late = _late.get((home, name))
    if late is None:
        try:
            late = read_status(home, name).late_start
        except ProviderError as error:
            _log.warning("%s", error)
            late = False
    return min(most, _LITTLE) if late else most


def remember_start(home: Path, name: str, *, late: bool) -> None:
    """Note whether a provider was ready in time."""
    with _lock:
        _late[home, name] = late
