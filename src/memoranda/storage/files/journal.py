"""A journal: numbered lines of JSON, each durable before the change that it describes is carried out.

This module knows only that lines are numbered, that a `void` line cancels the line it refers to, and that an `undo`
line undoes it. A line that cannot be read, or does not match its checksum, is skipped, and the other lines stay usable.
The checksum is the last field, over everything before it; a line that a person edited has none. Where the lines are
stored is the part of `JournalLines`. `check_journal` reports damage to the doctor.
"""

import json
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from memoranda.storage.files.marker_file import CHECKSUM_PATTERN, checksum
from memoranda.support.health_issues import HealthIssue


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
# What a process has decoded of the journals that it read last is kept; the others are decoded again.
_JOURNALS_KEPT = 16
_SEALED = re.compile(rb',"checksum":"(%s)"\}\Z' % CHECKSUM_PATTERN.encode())


class JournalLines(Protocol):
    """Stores the lines of a journal, as bytes without line ends; changes need the lock of what it describes."""

    @property
    def place(self) -> Hashable:
        """What tells this journal from others of the process."""

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

    def find_loss(self) -> str:
        """What was lost or changed since the last write, as far as the storage can know; "" if nothing was."""

    def accept(self) -> None:
        """Count the lines that exist as all lines from now on."""


class Journal(Generic[Line]):
    """The lines of one journal. Appending and purging need the lock of what the journal describes."""

    OPTIONAL_FIELDS: ClassVar[frozenset[str]] = frozenset()
    """Fields that a line has only if they are not empty."""

    def __init__(
        self, lines: JournalLines, from_record: Callable[[Any], Line | None], fields: Collection[str] = ()
    ) -> None:
        """`fields` are those that a line without a checksum may have; without them it may have any."""
        self._lines = lines
        self._from_record = from_record
        self._fields = frozenset(fields)

    def last(self) -> Line | None:
        """The newest line."""
        return self._lines.last(self._decode)

    def next_number(self) -> int:
        """The number of the next line."""
        last = self.last()
        return last.number + 1 if last else 1

    def append(self, lines: Sequence[Line]) -> None:
        """Add lines durably, all of them or none."""
        self._lines.append(self._encode(lines))

    def was_undone(self, number: int | None) -> bool:
        """Whether a change was undone, and its undo was not."""
        return number in undone_numbers(self.changes())

    def changes(self) -> Iterator[Line]:
        """Every change from the oldest to the newest, without void ones."""
        kept = _decoded_lines(self._lines.place)
        known = kept[0]
        # Lines that were purged or forgotten meanwhile are not kept.
        kept[0] = {raw: line for raw in self._lines.read() if (line := known.get(raw) or self._decode(raw))}
        return without_void(kept[0].values())

    def damaged_lines(self) -> list[int]:
        """The numbers of lines that cannot be read or have changed on the disk, for the doctor."""
        lines = enumerate(self._lines.read(), start=1)
        return [number for number, line in lines if line and self._decode(line) is None]

    def find_loss(self) -> str:
        """What was lost or changed since the last write, as far as it can be known; "" if nothing was."""
        return self._lines.find_loss()

    def accept(self) -> None:
        """Count the lines that exist as the whole history from now on."""
        self._lines.accept()

    def purge(self, through: int, base: Sequence[Line]) -> int:
        """Drop all changes up to a number, and void ones; the lines of `base` replace them."""
        if not self._lines.read():
            self._lines.accept()
            return 0
        changes = list(self.changes())
        kept = [change for change in changes if change.number > through]
        self._lines.replace(self._encode([*base, *kept]))
        self._lines.accept()
        return len(changes) - len(kept)

    def raw_lines(self) -> list[bytes]:
        """Every line as it is stored, without its checksum."""
        return [without_checksum(line) for line in self._lines.read() if line]

    def rewrite(self, change: Callable[[bytes], bytes | None]) -> int:
        """Replace lines, as they are stored without checksums, or drop those for which `change` returns None.

        Returns how many. A line that has changed on the disk stays recognisable as such.
        """
        lines = self._lines.read()
        changed = [_rewrite(line, change) if line else line for line in lines]
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
        return [with_checksum(text.encode("utf-8", "backslashreplace")) for text in texts]

    def _decode(self, raw: bytes) -> Line | None:
        try:
            record = json.loads(raw)
            if not self._is_intact(raw, record):
                return None
            record.pop("checksum", None)
            # A later version may write more fields, with a checksum; they are ignored.
            known = self._fields or record
            return self._from_record({name: value for name, value in record.items() if name in known})
        except (ValueError, TypeError, KeyError, RecursionError):
            return None

    def _is_intact(self, raw: bytes, record: Mapping[str, Any]) -> bool:
        if _SEALED.search(raw) is not None:
            return is_sealed(raw)
        # A person who edited the line removed the checksum. A damaged checksum has another name.
        return "checksum" not in record and (not self._fields or self._fields.issuperset(record))


@lru_cache(_JOURNALS_KEPT)
def _decoded_lines(place: Hashable) -> list[dict[bytes, Any]]:
    """One mapping from each line of the journal at a place that was read last to what it says."""
    return [{}]


def with_checksum(line: bytes) -> bytes:
    """A JSON object with its checksum as the last field."""
    return b'%s,"checksum":"%s"}' % (line[:-1], checksum(line).encode())


def without_checksum(line: bytes) -> bytes:
    """The same line without its checksum, if it has one."""
    return _SEALED.sub(b"}", line)


def is_sealed(line: bytes) -> bool:
    """Whether a line has a checksum that matches."""
    found = _SEALED.search(line)
    return found is not None and found[1].decode() == checksum(without_checksum(line))


def _rewrite(line: bytes, change: Callable[[bytes], bytes | None]) -> bytes | None:
    found, body = _SEALED.search(line), without_checksum(line)
    changed = change(body)
    if changed is None or changed == body:
        return None if changed is None else line
    if found is None or is_sealed(line):
        return with_checksum(changed) if found is not None else changed
    return changed[:-1] + found[0]


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


def check_journal(
    journal: Journal[Any], path: Path, purge: str, exclusive: Callable[[], AbstractContextManager[None]]
) -> Iterator[HealthIssue]:
    """The issues of one journal; `purge` is the command that starts a new history, `exclusive` takes its lock."""
    damaged, lost = journal.damaged_lines(), journal.find_loss()
    skipped = f"unreadable or changed lines ({', '.join(map(str, damaged))})"
    if not lost:
        if damaged:
            yield HealthIssue(
                "warning",
                path,
                f"has {skipped}, which are skipped",
                f"nothing to do; '{purge}' drops them with the history",
            )
        return

    def accept() -> str:
        with exclusive():
            journal.accept()
        return "what is left is the history from now on"

    yield HealthIssue(
        "error",
        path,
        lost + (f"; {skipped} are skipped" if damaged else ""),
        "put the file back from a backup while nothing uses the home; --fix accepts what is left of the history",
        accept,
    )
