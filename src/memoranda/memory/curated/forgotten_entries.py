"""Which entries were forgotten, by hash, so that no migration from another program adds them again."""

import json
from collections.abc import Iterable

from memoranda.storage.files.named_texts import Document
from memoranda.support.canonical_text import canonical, digest
from memoranda.support.json_object import parse_list


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
        stored = parse_list(forgotten.read())
    except FileNotFoundError:
        return set()
    # A person may have damaged it; it only prevents that a migration adds an entry again.
    return {text for text in stored or () if isinstance(text, str)}
