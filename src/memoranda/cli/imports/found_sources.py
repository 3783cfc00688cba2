"""What is there to import on this machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoranda.cli.imports.summary_text import size
from memoranda.config import directory_from_variable
from memoranda.importers.reader_protocol import ConversationReader, ImportItem
from memoranda.importers.sources import SOURCES, ImportSource


@dataclass(frozen=True, slots=True)
class FoundSource:
    """A program, and what there is of it."""

    source: ImportSource
    reader: ConversationReader
    where: Path | None
    items: Sequence[ImportItem]

    @property
    def summary(self) -> str:
        count = len(self.items)
        return f"{count:,} file{'' if count == 1 else 's'}, {size(sum(item.size for item in self.items))}"

    def as_json(self) -> dict[str, Any]:
        return {"source": self.source.name, "files": len(self.items), "bytes": sum(item.size for item in self.items)}

    def again(self) -> "FoundSource":
        """The same program, looked at once more."""
        return FoundSource(self.source, self.reader, self.where, self.reader.scan(self.where))


def find_source(source: ImportSource, where: Path | None = None) -> FoundSource:
    """What there is of a program: at a place that was named, else where the program itself would look."""
    place = where or directory_from_variable(source.variable)
    reader = source.load(directory_from_variable(source.settings_variable))
    return FoundSource(source, reader, place, reader.scan(place))


def find_all_sources() -> list[FoundSource]:
    """The programs of which there is something."""
    return [finding for finding in map(find_source, SOURCES.values()) if finding.items]
