"""The journal of curated memory for pages: lines that a page has read before are not decoded again."""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path

from memoranda.memory.curated.journal import MemoryChange
from memoranda.memory.curated.settings import Target
from memoranda.memory.curated.store import MemoryStore
from memoranda.storage.files.journal import without_void

# The journals of the users who looked at pages last; the others are decoded again.
_MAX_JOURNALS = 16
_lock = threading.Lock()
_decoded: OrderedDict[Path, Mapping[bytes, MemoryChange]] = OrderedDict()


def read_changes(store: MemoryStore, target: Target | None = None) -> list[MemoryChange]:
    """The changes to a memory directory, oldest first. Lines that were forgotten meanwhile are not kept either."""
    with _lock:
        known = _decoded.get(store.directory, {})
    lines = store.journal.decode_lines(known)
    with _lock:
        _decoded[store.directory] = lines
        _decoded.move_to_end(store.directory)
        while len(_decoded) > _MAX_JOURNALS:
            _decoded.popitem(last=False)
    return [change for change in without_void(lines.values()) if target in (None, change.target)]
