"""A journal file keeps every line, passes over damaged ones, and knows what was taken back."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memoranda.storage.files.journal import Journal, undone_numbers
from memoranda.storage.files.journal_file import LineFile

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class _Line:
    number: int
    action: str = "add"
    refers_to: int | None = None


def _journal(path: Path) -> Journal[_Line]:
    def read(record: Any) -> _Line | None:
        return _Line(**record)

    return Journal(LineFile(path), read)


def test_lines_are_read_back_in_order(tmp_path: Path) -> None:
    """By the one who wrote them and by another."""
    journal = _journal(tmp_path / "journal.jsonl")
    journal.append([_Line(1), _Line(2)])
    journal.append([_Line(3)])
    assert [line.number for line in _journal(tmp_path / "journal.jsonl").changes()] == [1, 2, 3]
    assert journal.last() == _Line(3)


def test_void_lines_and_what_they_void_are_left_out(tmp_path: Path) -> None:
    """As if it had never been."""
    journal = _journal(tmp_path / "journal.jsonl")
    journal.append([_Line(1), _Line(2), _Line(3, "void", 2)])
    assert [line.number for line in journal.changes()] == [1]


def test_a_torn_line_spoils_nothing_but_itself(tmp_path: Path) -> None:
    """The next line begins on its own."""
    path = tmp_path / "journal.jsonl"
    journal = _journal(path)
    journal.append([_Line(1)])
    path.write_bytes(path.read_bytes() + b'{"number": 2, "act')
    journal.append([_Line(2)])
    assert [line.number for line in journal.changes()] == [1, 2]
    assert journal.damaged_lines() == [2]


def test_an_undo_that_was_undone_counts_no_more() -> None:
    """The change stands again."""
    lines = [_Line(1), _Line(2, "undo", 1), _Line(3, "undo", 2)]
    assert undone_numbers(lines[:2]) == {1}
    assert undone_numbers(lines) == {2}
