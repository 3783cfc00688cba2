"""The checksum of a message, by which a change of stored bytes that no program made is noticed.

Column `checksum` holds the CRC-32 of everything that says what was said, by whom and when: the session and all columns
that `encode` fills. It does not cover the id, whose order SQLite checks itself, nor the flags of rewound and compressed
messages, which say nothing about the message. Its input is these columns in the order of COVERED as UTF-8, separated by
NUL, up to the last that is filled: a null counts as an empty text, and the time as a hexadecimal number, which takes
less time to print. A column that a later version adds at the end changes no checksum of a message without it.

A message without a checksum was recorded by an earlier version or by another program, or another program changed it
with SQL (a trigger removes the checksum then). `fill_checksums` adds what is missing. The store's own edits go through
`resealed`. A damaged message is still returned, with the field `memoranda_damaged`, and a warning is logged once.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from memoranda.memory.record.message_rows import DAMAGED, WRITTEN, checksum_of_row, decode_json, dump_json, matches
from memoranda.storage.connection import Connection
from memoranda.storage.sqlite.stored_texts import readable_rows

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
