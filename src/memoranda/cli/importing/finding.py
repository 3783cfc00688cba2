"""What is there to import on this machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoranda.cli.importing.text import size
from memoranda.config import directory_from_variable
from memoranda.importers.shape import Item, Reader
from memoranda.importers.sources import SOURCES, Source


@dataclass(frozen=True, slots=True)
class Finding:
    """A program, and what there is of it."""

    source: Source
    reader: Reader
    where: Path | None
    items: Sequence[Item]

    @property
    def summary(self) -> str:
        count = len(self.items)
        return f"{count:,} file{'' if count == 1 else 's'}, {size(sum(item.size for item in self.items))}"

    def as_json(self) -> dict[str, Any]:
        return {"source": self.source.name, "files": len(self.items), "bytes": sum(item.size for item in self.items)}

    def again(self) -> "Finding":
        """The same program, looked at once more."""
        return Finding(self.source, self.reader, self.where, self.reader.scan(self.where))


def found_by(source: Source, where: Path | None = None) -> Finding:
    """What there is of a program: at a place that was named, else where the program itself would look."""
    place = where or directory_from_variable(source.variable)
    reader = source.load(directory_from_variable(source.settings_variable))
    return Finding(source, reader, place, reader.scan(place))


def everything() -> list[Finding]:
    """The programs of which there is something."""
    return [finding for finding in map(found_by, SOURCES.values()) if finding.items]
