"""Which entries were forgotten, by hash, so that no migration from another program adds them again."""

import json
from collections.abc import Iterable

from memoranda.storage.files.named_texts import Document
from memoranda.support.canonical_text import canonical, digest


def is_forgotten(forgotten: Document, text: str) -> bool:
    """Whether an entry with exactly this text was forgotten here."""
    return digest(canonical(text)) in _read(forgotten)


def forgotten_hashes(forgotten: Document) -> frozenset[str]:
    """The hashes of all entries that were forgotten here."""
    return frozenset(_read(forgotten))


def note_forgotten(forgotten: Document, texts: Iterable[str]) -> None:
    """Remember entries by their hashes, before they are removed. Needs the lock of the memory."""
    known = _read(forgotten)
    hashes = known | {digest(canonical(text)) for text in texts}
    if hashes != known:
        forgotten.write(json.dumps(sorted(hashes)).encode())


def _read(forgotten: Document) -> set[str]:
    try:
        stored = json.loads(forgotten.read())
    except FileNotFoundError:
        return set()
    except ValueError:
        # A person may have damaged it; it only prevents that a migration adds an entry again.
        return set()
    return {text for text in stored if isinstance(text, str)} if isinstance(stored, list) else set()
