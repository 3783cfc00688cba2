"""Which entries were forgotten, by hash, so that no migration from another program adds them again."""

import json
from collections.abc import Iterable
from pathlib import Path

from memoranda.support.canonical_text import canonical, digest
from memoranda.support.durable_files import make_private_directory, read_file, write_private

FILE_NAME = "forgotten.json"


def is_forgotten(directory: Path, text: str) -> bool:
    """Whether an entry with exactly this text was forgotten here."""
    return digest(canonical(text)) in _read(directory / FILE_NAME)


def note_forgotten(directory: Path, texts: Iterable[str]) -> None:
    """Remember entries by their hashes, before they are removed. Needs the lock of the directory."""
    path = directory / FILE_NAME
    known = _read(path)
    hashes = known | {digest(canonical(text)) for text in texts}
    if hashes != known:
        make_private_directory(directory)
        write_private(path, json.dumps(sorted(hashes)).encode())


def _read(path: Path) -> set[str]:
    try:
        stored = json.loads(read_file(path))
    except FileNotFoundError:
        return set()
    except ValueError:
        # A person may have damaged it; it only prevents that a migration adds an entry again.
        return set()
    return {text for text in stored if isinstance(text, str)} if isinstance(stored, list) else set()
