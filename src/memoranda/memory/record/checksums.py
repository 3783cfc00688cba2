"""The checksum of a message, by which a change of stored bytes that no program made is noticed.

Column `checksum` holds the CRC-32 of everything that says what was said, by whom and when: the session and all columns
that `encode` fills. It does not cover the id, whose order SQLite checks itself, nor the flags of rewound and compressed
messages, which say nothing about the message. Its input is these columns in the order of COVERED as UTF-8, separated by
NUL, up to the last that is filled: a null counts as an empty text, and the time as a hexadecimal number, which takes
less time to print. A column that a later version adds at the end changes no checksum of a message without it.

A message without a checksum was recorded by another program, such as Hermes, or another program changed it with SQL (a
trigger removes the checksum then). `StoredChecksums` compares all messages with theirs, and adds what is missing.
The store's own edits go through `resealed`. A damaged message is still returned, with the field `memoranda_damaged`,
and a warning is logged once.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, NamedTuple

from memoranda.memory.record.message_rows import DAMAGED, WRITTEN, checksum_of_row, decode_json, dump_json, matches
from memoranda.memory.record.store_part import StorePart
from memoranda.storage.connection import Connection
from memoranda.storage.engine import readable_rows
from memoranda.support.lazy_dataclass import dataclass

_log = logging.getLogger(__name__)

CHECKSUM = "checksum"
COVERED = ("session_id", *WRITTEN)
"""The columns that a checksum covers, in the order of its input."""

_SELECT = f"SELECT id, {', '.join(COVERED)}, {CHECKSUM} FROM messages"
_EXTRA = COVERED.index("extra")
_MAX_REPORTED = 1000
# Messages for which the warning was logged.
_reported: set[tuple[str, int]] = set()


def is_damaged(row: Mapping[str, Any]) -> bool | None:
    """Whether a row of `messages`, with its columns as stored, does not match its checksum; None if it has none.

    For a salvage, which reads rows without SQLite. A damaged row that is inserted with its checksum stays recognisable:
    every read and the doctor report it. `mark_damaged` marks a row without a checksum, or one that was cut.
    """
    stored = row.get(CHECKSUM)
    return None if stored is None else not matches([row.get(name) for name in COVERED], stored)


def report_damage(session_id: str, message_id: int) -> None:
    """Log that a message was read that does not match its checksum; once for each message."""
    if (session_id, message_id) not in _reported and len(_reported) < _MAX_REPORTED:
        _reported.add((session_id, message_id))
        _log.warning(
            "Message %d of session %s does not match its checksum: a part of it has changed on the disk. It is marked "
            "as damaged. 'memoranda doctor' lists all such messages and says what to do.", message_id, session_id,
        )  # fmt: skip


def matches_checksum(session_id: str, message_id: int, covered: Sequence[Any], stored: int | None) -> bool:
    """Whether a row that was read is as it was stored, as far as its checksum says; logs a warning if it is not."""
    if stored is None or matches(covered, stored):
        return True
    report_damage(session_id, message_id)
    return False


def read_covered(connection: Connection, condition: str, values: Sequence[Any]) -> Iterator[tuple[int, list[Any], Any]]:
    """The id, the columns in COVERED, and the checksum of the messages that meet a condition."""
    for number, *covered, stored in readable_rows(connection, f"{_SELECT} WHERE {condition}", values):
        yield number, covered, stored


def seal(connection: Connection, ids: Iterable[int], damaged: frozenset[int] = frozenset()) -> None:
    """Store the checksums of messages that the store has changed; those in `damaged` get the field DAMAGED first."""
    for number in ids:
        for _, covered, _ in list(read_covered(connection, "id = ?", (number,))):
            if number in damaged:
                covered[_EXTRA] = mark_damaged(covered[_EXTRA])
            connection.execute(
                f"UPDATE messages SET extra = ?, {CHECKSUM} = ? WHERE id = ?",
                (covered[_EXTRA], checksum_of_row(covered[0], covered[1:]), number),
            )


def find_damaged(connection: Connection, ids: Iterable[int]) -> frozenset[int]:
    """Those of the messages that do not match their checksum."""
    return frozenset(
        number
        for one in ids
        for number, covered, stored in read_covered(connection, "id = ?", (one,))
        if stored is not None and not matches(covered, stored)
    )


@contextmanager
def resealed(connection: Connection, ids: Sequence[int]) -> Iterator[None]:
    """Change columns of messages in the block; then their checksums are right, and earlier damage stays visible."""
    damaged = find_damaged(connection, ids)
    yield
    seal(connection, ids, damaged)


def mark_damaged(extra: str | None) -> str:
    """The JSON of extra fields with the field DAMAGED added."""
    fields = decode_json(extra) if extra else {}
    # The extra fields themselves may be damaged.
    return dump_json({**(fields if isinstance(fields, dict) else {"extra": extra}), DAMAGED: True})


_PAGE_MESSAGES = 500
_PAGE_CHARACTERS = 4_000_000
# A transaction of so many messages takes a few milliseconds; then other writers have a chance.
_FILLED_TOGETHER = 100
_PAUSE = 0.005
_ROLE, _TIMESTAMP = map(COVERED.index, ("role", "timestamp"))


class DamagedMessage(NamedTuple):
    """A message that does not match its checksum, as far as its columns can be trusted."""

    id: int
    session_id: str
    role: str
    timestamp: float


@dataclass(slots=True)
class ChecksumReport:
    """The result of `check_messages`."""

    messages: int = 0
    without_checksum: int = 0
    """Messages that another program wrote or changed, until `fill_checksums`."""
    known_damaged: int = 0
    """Messages whose damage was accepted or that a salvage could save only in part; they carry the mark for ever."""
    damaged: list[DamagedMessage] = field(default_factory=list)


class StoredChecksums(StorePart):
    """The checksums of all messages, for the doctor, which sees the sessions of all users."""

    def damaged_messages(self, progress: Callable[[int, int], object] | None = None) -> list[DamagedMessage]:
        """The messages that do not match their checksum, in the order of their ids; reads the whole record."""
        return self.check_messages(progress).damaged

    def check_messages(self, progress: Callable[[int, int], object] | None = None) -> ChecksumReport:
        """Compare every message with its checksum; `progress` gets the last id that was read and the highest id.

        Call `check_integrity` first: a file whose pages are damaged raises CorruptStoreError here. The read takes many
        short views, so that no writer waits for it, and sees what others append meanwhile.
        """
        self._require_everyone()
        report = ChecksumReport()
        last_id = 0
        while True:
            with self._engine.reading() as connection:
                (highest,) = connection.execute("SELECT COALESCE(max(id), 0) FROM messages").fetchone()
                page = list(_read_page(connection, last_id))
            for number, covered, stored in page:
                _add_to_report(report, number, covered, stored)
                last_id = number
            if progress is not None:
                progress(last_id, highest)
            if not page:
                return report

    def accept_damage(self, ids: list[int]) -> None:
        """Keep damaged messages as they are: they carry the field `memoranda_damaged` for ever, and match again."""
        self._require_everyone()
        for start in range(0, len(ids), _FILLED_TOGETHER):
            some = ids[start : start + _FILLED_TOGETHER]
            with self._engine.writing() as connection:
                seal(connection, some, damaged=frozenset(some))

    def fill_checksums(self, stopped: Callable[[], bool] = lambda: False) -> int:
        """Add the checksums that are missing in the whole record, and return how many; continues until `stopped`.

        What is stored now counts as right: damage from before cannot be noticed. Few messages at a time are changed, so
        that other writers never wait long.
        """
        self._require_everyone()
        count = last_id = 0
        while not stopped():
            with self._engine.reading() as connection:
                page = [(number, stored) for number, _, stored in _read_page(connection, last_id)]
            if not page:
                break
            missing = [number for number, stored in page if stored is None]
            for start in range(0, len(missing), _FILLED_TOGETHER):
                count += self._fill_some(missing[start : start + _FILLED_TOGETHER])
                time.sleep(_PAUSE)
            last_id = page[-1][0]
        return count

    def _fill_some(self, ids: list[int]) -> int:
        with self._engine.writing() as connection:
            count = 0
            for number in ids:
                # Another process may have changed the message meanwhile.
                for _, covered, _ in list(read_covered(connection, f"id = ? AND {CHECKSUM} IS NULL", (number,))):
                    checksum = checksum_of_row(str(covered[0]), covered[1:])
                    count += connection.execute(
                        f"UPDATE messages SET {CHECKSUM} = ? WHERE id = ?", (checksum, number)
                    ).rowcount
            return count


def _read_page(connection: Connection, after: int) -> Iterator[tuple[int, list[object], int | None]]:
    """The next messages after an id, fewer if they are long."""
    room = _PAGE_CHARACTERS
    for number, covered, stored in read_covered(connection, "id > ? ORDER BY id LIMIT ?", (after, _PAGE_MESSAGES)):
        yield number, covered, stored
        room -= sum([len(value) for value in covered if isinstance(value, str)])
        if room <= 0:
            return


def _add_to_report(report: ChecksumReport, number: int, covered: list[object], stored: int | None) -> None:
    report.messages += 1
    extra = covered[_EXTRA]
    if stored is None:
        report.without_checksum += 1
    elif not matches(covered, stored):
        timestamp = covered[_TIMESTAMP]
        report.damaged.append(
            DamagedMessage(
                number, str(covered[0]), str(covered[_ROLE]), timestamp if isinstance(timestamp, float) else 0.0
            )
        )
    elif isinstance(extra, str) and DAMAGED in extra:
        report.known_damaged += 1
