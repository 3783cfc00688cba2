"""Records what earlier migrations added, so that the next one adds none of it again, even if it was removed here."""

import json
from collections.abc import Iterable
from pathlib import Path

from memoranda.support.canonical_text import digest
from memoranda.support.durable_files import make_private_directory, write_private
from memoranda.support.text_file import TextFile, read_text

DIRECTORY = Path("migration") / "openclaw"
_FILE = "taken.json"


class MigrationHistory:
    """Digests of entries that were added or omitted, and of texts that were archived; it contains no text."""

    def __init__(self, root: Path) -> None:
        self.directory = root / DIRECTORY
        state = read_text(self.directory / _FILE)
        try:
            stored = json.loads(state.text) if isinstance(state, TextFile) else {}
        except ValueError:
            # Without it, entries that are here already are recognized by their text.
            stored = {}
        self._known = {
            kind: set(filter(_is_string, stored.get(kind, ()))) for kind in ("added", "left", "archived")
        }  # fmt: skip

    def was_added(self, target: str, text: str) -> bool:
        return _entry_digest(target, text) in self._known["added"]

    def was_omitted(self, target: str, text: str) -> bool:
        return _entry_digest(target, text) in self._known["left"]

    def was_archived(self, name: str, text: str) -> bool:
        return _entry_digest(name, text) in self._known["archived"]

    def record_entries(self, target: str, added: Iterable[str], omitted: Iterable[str]) -> None:
        """Record which entries were added and which were omitted; those may be added later."""
        self._known["added"] |= {_entry_digest(target, text) for text in added}
        self._known["left"] |= {_entry_digest(target, text) for text in omitted}
        self._known["left"] -= self._known["added"]
        self._write()

    def record_archived(self, name: str, text: str) -> None:
        self._known["archived"].add(_entry_digest(name, text))
        self._write()

    def _write(self) -> None:
        make_private_directory(self.directory)
        content = {kind: sorted(digests) for kind, digests in self._known.items()}
        write_private(self.directory / _FILE, json.dumps(content, indent=1).encode() + b"\n")


def _entry_digest(kind: str, text: str) -> str:
    return digest(f"{kind}\n{text}")[:32]


def _is_string(value: object) -> bool:
    return isinstance(value, str)
