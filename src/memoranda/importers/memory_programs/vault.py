"""Reads vaults of Markdown notes: those of Obsidian and of basic-memory, or any directory."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from memoranda.importers.chat_messages import dicts_in, get_text
from memoranda.importers.notes import find_markdown, markdown_events
from memoranda.importers.reader_protocol import ImportItem, ReadEvent
from memoranda.importers.source_files import item_at, read_json_file, settings_directories

_PROGRAM = "obsidian"


class Vault:
    name = _PROGRAM

    def __init__(self, settings: Path | None = None) -> None:
        self._settings = settings

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the notes of a vault; without a path, of the vaults that Obsidian and basic-memory know."""
        if path is None:
            return [item for vault in self._known_vaults() for item in find_markdown(vault)]
        single = item_at(path, str(path.parent))
        return [single] if single else find_markdown(path)

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """Yield the note in a file; all notes of a vault are one session."""
        vault = Path(item.label).name
        return markdown_events(item, _PROGRAM, vault, f"Notes of {vault}")

    def _known_vaults(self) -> list[Path]:
        found = [Path.home() / "basic-memory"]
        for settings in settings_directories(self._settings):
            item = item_at(settings / "obsidian" / "obsidian.json", "vaults")
            value = read_json_file(item) if item else None
            vaults = value.get("vaults") if isinstance(value, dict) else None
            if isinstance(vaults, dict):
                found += [Path(path) for vault in dicts_in(list(vaults.values())) if (path := get_text(vault, "path"))]
        return found
