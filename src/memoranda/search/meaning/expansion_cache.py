"""The words that models suggested for queries, in a file of the home, so that a query is paid for once.

The file has no query in plain text, only a hash of each with the model and the user. It can be deleted at any time.
"""

import hashlib
import json
import logging
from pathlib import Path

from memoranda.storage.files.fork_lock import ForkLock
from memoranda.support.durable_files import make_private_directory, read_file, write_private

_log = logging.getLogger(__name__)

FILE_NAME = "expansions.json"
_MAX_ENTRIES = 1_000


class ExpansionCache:
    """Reads the file for every query, because other processes write it, too. The last writer wins."""

    def __init__(self, home: Path) -> None:
        self.path = home / FILE_NAME
        self._lock = ForkLock()

    def get(self, model: str, query: str, user: str) -> list[str] | None:
        words = self._read().get(_key(model, query, user))
        return [str(word) for word in words] if isinstance(words, list) else None

    def put(self, model: str, query: str, user: str, words: list[str]) -> None:
        """Remember the words of a query; a failure is logged, because the search has its answer."""
        with self._lock:
            entries = self._read()
            entries.pop(_key(model, query, user), None)
            entries[_key(model, query, user)] = words
            newest = dict(list(entries.items())[-_MAX_ENTRIES:])
            try:
                make_private_directory(self.path.parent)
                write_private(self.path, json.dumps(newest, ensure_ascii=False).encode())
            except OSError as error:
                _log.warning("The words for a query could not be kept in %s: %s", self.path, error)

    def count(self) -> int:
        return len(self._read())

    def remove(self) -> bool:
        """Delete the file; False if there is none."""
        existed = self.path.exists()
        self.path.unlink(missing_ok=True)
        return existed

    def _read(self) -> dict[str, object]:
        try:
            entries = json.loads(read_file(self.path))
        except (OSError, ValueError):
            # Missing or damaged: it is a cache.
            return {}
        return entries if isinstance(entries, dict) else {}


def _key(model: str, query: str, user: str) -> str:
    plain = " ".join(query.casefold().split())
    return hashlib.sha256(json.dumps([model, plain, user]).encode()).hexdigest()
