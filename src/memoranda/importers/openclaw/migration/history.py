"""What was taken over before, so that a second move adds nothing, not even what has been removed here since."""

import json
from collections.abc import Iterable
from pathlib import Path

from memoranda.support.canonical_text import digest
from memoranda.support.durable_files import make_private_directory, write_private
from memoranda.support.text_file import TextFile, read_text

DIRECTORY = Path("migration") / "openclaw"
_FILE = "taken.json"


class MigrationHistory:
    """Digests of entries that were added or left, and of texts that were archived; the texts are not in it."""

    def __init__(self, root: Path) -> None:
        self.directory = root / DIRECTORY
        state = read_text(self.directory / _FILE)
        try:
            stored = json.loads(state.text) if isinstance(state, TextFile) else {}
        except ValueError:
            # Then everything is looked at once more: what is there already is found by its text.
            stored = {}
        self._known = {
            kind: set(filter(_is_text, stored.get(kind, ()))) for kind in ("added", "left", "archived")
        }  # fmt: skip

    def was_added(self, target: str, text: str) -> bool:
        return _mark(target, text) in self._known["added"]

    def was_left(self, target: str, text: str) -> bool:
        return _mark(target, text) in self._known["left"]

    def was_archived(self, name: str, text: str) -> bool:
        return _mark(name, text) in self._known["archived"]

    def note_entries(self, target: str, added: Iterable[str], left: Iterable[str]) -> None:
        """Note what became of some entries; what was left may be added another time."""
        self._known["added"] |= {_mark(target, text) for text in added}
        self._known["left"] |= {_mark(target, text) for text in left}
        self._known["left"] -= self._known["added"]
        self._write()

    def note_archived(self, name: str, text: str) -> None:
        self._known["archived"].add(_mark(name, text))
        self._write()

    def _write(self) -> None:
        make_private_directory(self.directory)
        content = {kind: sorted(marks) for kind, marks in self._known.items()}
        write_private(self.directory / _FILE, json.dumps(content, indent=1).encode() + b"\n")


def _mark(kind: str, text: str) -> str:
    return digest(f"{kind}\n{text}")[:32]


def _is_text(value: object) -> bool:
    return isinstance(value, str)
