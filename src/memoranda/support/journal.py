"""A journal: numbered lines of JSON, each durable before the change that it describes is carried out.

This module knows only that lines are numbered, that a `void` line cancels the line it refers to, and that an `undo`
line undoes it. A line that cannot be read is skipped, and the other lines stay usable. Where the lines are stored is
the part of `JournalLines`.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Generic, Protocol, TypeVar


class NumberedLine(Protocol):
    """What every line of a journal has: it is a dataclass whose fields are written as JSON."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def number(self) -> int: ...
    @property
    def action(self) -> str: ...
    @property
    def refers_to(self) -> int | None: ...


Line = TypeVar("Line", bound=NumberedLine)
_Decoded = TypeVar("_Decoded")


class JournalLines(Protocol):
    """Stores the lines of a journal, as bytes without line ends; changes need the lock of what it describes."""

    def last(self, decode: Callable[[bytes], _Decoded | None]) -> _Decoded | None:
        """The newest line that `decode` can read."""

    def read(self) -> list[bytes]:
        """Every line, oldest first, including damaged and empty ones."""

    def contains(self, part: bytes) -> bool:
        """Whether any line has these bytes."""

    def append(self, lines: Sequence[bytes]) -> None:
        """Add lines durably, all of them or none."""

    def replace(self, lines: Sequence[bytes]) -> None:
        """Store these lines instead of those that exist, in one step."""


class Journal(Generic[Line]):
    """The lines of one journal. Appending and purging need the lock of what the journal describes."""

    OPTIONAL_FIELDS: ClassVar[frozenset[str]] = frozenset()
    """Fields that a line has only if they are not empty."""

    def __init__(self, lines: JournalLines, from_record: Callable[[Any], Line | None]) -> None:
        self._lines = lines
        self._from_record = from_record

    def last(self) -> Line | None:
        """The newest line."""
        return self._lines.last(self._decode)

    def append(self, lines: Sequence[Line]) -> None:
        """Add lines durably, all of them or none."""
        self._lines.append(self._encode(lines))

    def changes(self) -> Iterator[Line]:
        """Every change from the oldest to the newest, without void ones."""
        return without_void(self.decode_lines({}).values())

    def decode_lines(self, known: Mapping[bytes, Line]) -> dict[bytes, Line]:
        """Every line that can be read by its bytes, oldest first; those in `known` are not decoded again."""
        return {raw: line for raw in self._lines.read() if (line := known.get(raw) or self._decode(raw))}

    def damaged_lines(self) -> list[int]:
        """The numbers of lines that cannot be read, for the doctor."""
        lines = enumerate(self._lines.read(), start=1)
        return [number for number, line in lines if line and self._decode(line) is None]

    def purge(self, through: int, base: Sequence[Line]) -> int:
        """Drop all changes up to a number, and void ones; the lines of `base` replace them."""
        if not self._lines.read():
            return 0
        changes = list(self.changes())
        kept = [change for change in changes if change.number > through]
        self._lines.replace(self._encode([*base, *kept]))
        return len(changes) - len(kept)

    def raw_lines(self) -> list[bytes]:
        """Every line as it is stored."""
        return [line for line in self._lines.read() if line]

    def rewrite(self, change: Callable[[bytes], bytes | None]) -> int:
        """Replace lines, as they are stored, or drop those for which `change` returns None; returns how many."""
        lines = self._lines.read()
        changed = [change(line) if line else line for line in lines]
        count = sum(new != old for new, old in zip(changed, lines, strict=True))
        if count:
            self._lines.replace([line for line in changed if line is not None])
        return count

    def _encode(self, lines: Sequence[Line]) -> list[bytes]:
        records = [
            {name: value for name, value in asdict(line).items() if value or name not in self.OPTIONAL_FIELDS}
            for line in lines
        ]
        texts = (json.dumps(record, ensure_ascii=False, separators=(",", ":")) for record in records)
        # A session id of another program may contain half a surrogate pair, which UTF-8 cannot encode.
        return [text.encode("utf-8", "backslashreplace") for text in texts]

    def _decode(self, raw: bytes) -> Line | None:
        try:
            return self._from_record(json.loads(raw))
        except (ValueError, TypeError, KeyError, RecursionError):
            return None


def without_void(lines: Iterable[Line]) -> Iterator[Line]:
    """The lines that describe a change: without those that were cancelled, and those that cancel them."""
    everything = list(lines)
    void = {line.refers_to for line in everything if line.action == "void"}
    return (line for line in everything if line.action != "void" and line.number not in void)


def undone_numbers(changes: Iterable[NumberedLine]) -> set[int | None]:
    """The numbers of the changes that were undone; a change whose undo was itself undone counts again."""
    undone: set[int | None] = set()
    for change in reversed(list(changes)):
        if change.action == "undo" and change.number not in undone:
            undone.add(change.refers_to)
    return undone


def find_undoable(changes: Sequence[Line], number: int | None, is_undoable: Callable[[Line], bool]) -> Line | None:
    """The change with this number, or the latest that is not an undo; None when it was undone or cannot be undone."""
    undone = undone_numbers(changes)
    candidates = [change for change in changes if change.number not in undone and is_undoable(change)]
    if number is not None:
        return next((change for change in candidates if change.number == number), None)
    return next((change for change in reversed(candidates) if change.action != "undo"), None)
