"""Finds what can be imported on this machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoranda.cli.imports.summary_text import format_size
from memoranda.home.config import directory_from_variable
from memoranda.importers.reader_protocol import ConversationReader, ImportItem
from memoranda.importers.sources import SOURCES, ImportSource


@dataclass(frozen=True, slots=True)
class FoundSource:
    """A program and the items that its reader found."""

    source: ImportSource
    reader: ConversationReader
    path: Path | None
    items: Sequence[ImportItem]

    @property
    def description(self) -> str:
        count = len(self.items)
        return f"{count:,} file{'' if count == 1 else 's'}, {format_size(sum(item.size for item in self.items))}"

    def as_json(self) -> dict[str, Any]:
        return {"source": self.source.name, "files": len(self.items), "bytes": sum(item.size for item in self.items)}

    def rescan(self) -> "FoundSource":
        """Return the same program with its current items."""
        return FoundSource(self.source, self.reader, self.path, self.reader.scan(self.path))


def find_source(source: ImportSource, path: Path | None = None) -> FoundSource:
    """Find the items of a program under a path, or else in the program's own directories."""
    directory = path or directory_from_variable(source.variable)
    reader = source.load(directory_from_variable(source.settings_variable))
    return FoundSource(source, reader, directory, reader.scan(directory))


def find_all_sources() -> list[FoundSource]:
    """Return the programs that have items."""
    return [source for source in map(find_source, SOURCES.values()) if source.items]
