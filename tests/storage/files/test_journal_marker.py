"""A journal notices lines that were lost or changed on the disk; whatever happens in normal use is no loss."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.storage.files.journal import Journal, with_checksum
from memoranda.storage.files.journal_file import JournalMarkerFile, LineFile

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class _Line:
    number: int
    action: str = "add"
    refers_to: int | None = None
    text: str = 'Grüße, "Zebra" \\ 数据.'


class _Journal(Journal[_Line]):
    def __init__(self, path: Path) -> None:
        super().__init__(LineFile(path), lambda record: _Line(**record), _Line.__dataclass_fields__)


def _written(path: Path, count: int = 4) -> _Journal:
    journal = _Journal(path)
    for number in range(1, count + 1):
        journal.append([_Line(number)])
    return journal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


class _Lines:
    """Lines in memory, to damage them many times."""

    def __init__(self, lines: list[bytes]) -> None:
        self._lines = lines

    def read(self) -> list[bytes]:
        return self._lines


def _damaged(line: bytes) -> list[int]:
    journal: Journal[_Line] = Journal(_Lines([line]), lambda record: _Line(**record), _Line.__dataclass_fields__)  # type: ignore[arg-type]
    return journal.damaged_lines()


_LINE = with_checksum('{"number":7,"action":"add","refers_to":null,"text":"Grüße, \\"Zebra\\" \\\\ 数据."}'.encode())


def test_a_line_is_intact_with_its_checksum_and_without_any() -> None:
    """A person who edits a line removes it; later versions may add fields."""
    assert _damaged(_LINE) == []
    assert _damaged(b'{"number":7,"action":"add"}') == []
    assert _damaged(with_checksum(b'{"number":7,"action":"add","colour":"red"}')) == []
    assert _damaged(b'{"number":7,"action":"add","checksun":"bcdfghjk"}') == [1]


@given(place=st.integers(0, len(_LINE) * 8 - 1))
def test_every_flipped_bit_of_a_line_is_noticed(place: int) -> None:
    """At whatever place, the checksum included."""
    line = bytearray(_LINE)
    line[place // 8] ^= 1 << place % 8
    assert _damaged(bytes(line)) == [1]


@given(place=st.integers(0, len(_LINE) - 1), byte=st.integers(0, 255))
def test_every_other_byte_in_a_line_is_noticed(place: int, byte: int) -> None:
    """Also one that leaves valid JSON."""
    line = _LINE[:place] + bytes([byte]) + _LINE[place + 1 :]
    assert (_damaged(line) == []) == (line == _LINE)


def test_normal_use_is_no_loss(path: Path) -> None:
    """Appending, cancelling, rewriting and purging."""
    journal = _written(path)
    journal.append([_Line(5), _Line(6, "void", 5)])
    assert _Journal(path).find_loss() == ""
    journal.rewrite(lambda line: line.replace(b"Zebra", b"[forgotten]"))
    assert (journal.find_loss(), journal.damaged_lines()) == ("", [])
    assert [line.text.count("[forgotten]") for line in journal.changes()] == [1] * 4
    journal.purge(2, [_Line(2)])
    assert (journal.find_loss(), [line.number for line in journal.changes()]) == ("", [2, 3, 4])
    journal.append([_Line(5)])
    assert journal.find_loss() == ""
    journal.purge(5, [])
    assert (journal.find_loss(), path.read_bytes()) == ("", b"")


_LOSSES: dict[str, tuple[Callable[[Path], object], str]] = {
    "deleted": (lambda path: path.unlink(), "is missing"),
    "emptied": (lambda path: os.truncate(path, 0), "has lost lines"),
    "without its end": (lambda path: _keep(path, slice(2)), "has lost lines"),
    "without its beginning": (lambda path: _keep(path, slice(2, None)), "has lost lines"),
    "without a line": (lambda path: path.write_bytes(b"".join(_lines(path)[:1] + _lines(path)[2:])), "has lost lines"),
    "in another order": (lambda path: path.write_bytes(b"".join(reversed(_lines(path)))), "does not begin with"),
    "changed and sealed again": (lambda path: _keep(path, slice(0, 0), with_checksum(b'{"number":1}') * 40), "begin"),
}


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def _keep(path: Path, part: slice, added: bytes = b"") -> None:
    path.write_bytes(b"".join(_lines(path)[part]) + added)


@pytest.mark.parametrize("appended", [0, 1, 9])
@pytest.mark.parametrize("how", _LOSSES)
def test_a_loss_is_noticed_until_it_is_accepted(path: Path, how: str, appended: int) -> None:
    """However much is written afterwards, and also by a rewrite."""
    damage, said = _LOSSES[how]
    _written(path)
    damage(path)
    journal = _Journal(path)
    if not appended:
        assert said in journal.find_loss()
    for number in range(appended):
        journal.append([_Line(50 + number)])
    assert journal.find_loss()
    journal.rewrite(lambda line: line.replace(b"Z", b"X"))
    assert journal.find_loss()
    journal.append([_Line(90)])
    assert journal.find_loss()
    journal.accept()
    journal.append([_Line(91)])
    assert journal.find_loss() == ""


@pytest.mark.parametrize("how", _LOSSES)
def test_a_purge_starts_a_new_history(path: Path, how: str) -> None:
    """Whatever was lost of the old one."""
    _written(path)
    _LOSSES[how][0](path)
    journal = _Journal(path)
    journal.purge(99, [])
    assert journal.find_loss() == ""


def test_a_journal_without_a_marker_gets_one_with_the_next_line(path: Path) -> None:
    """Without an alarm, and with all of its lines."""
    path.write_bytes(b'{"number":1,"action":"add"}\n{"number":2,"action":"add"}\n')
    journal = _Journal(path)
    assert (journal.find_loss(), journal.damaged_lines()) == ("", [])
    journal.append([_Line(3)])
    assert (journal.find_loss(), journal.damaged_lines()) == ("", [])
    path.write_bytes(path.read_bytes().replace(b'"number":1', b'"number":4'))
    assert "does not begin with" in journal.find_loss()


def test_a_marker_that_lags_behind_is_no_loss(path: Path) -> None:
    """A process was killed after it had written a line, and before the marker."""
    journal = _written(path)
    marker = JournalMarkerFile(path)._file.path
    lagging = marker.read_bytes()
    journal.append([_Line(5)])
    marker.write_bytes(lagging)
    assert journal.find_loss() == ""
    journal.append([_Line(6)])
    assert journal.find_loss() == ""
    _keep(path, slice(5))
    assert journal.find_loss()


@pytest.mark.parametrize("content", [b"", b"garbage", b"[]", b'{"size": 3}', b'{"checksum": 1}'])
def test_a_damaged_marker_is_ignored_and_written_again(path: Path, content: bytes) -> None:
    """Nothing but the alarm needs it."""
    journal = _written(path)
    marker = JournalMarkerFile(path)._file.path
    marker.write_bytes(content)
    assert journal.find_loss() == ""
    journal.append([_Line(5)])
    os.truncate(path, 0)
    assert journal.find_loss()


@given(place=st.integers(0, 255 * 8))
def test_a_flipped_bit_in_a_marker_is_no_alarm(tmp_path_factory: pytest.TempPathFactory, place: int) -> None:
    """The journal is what it was."""
    path = tmp_path_factory.getbasetemp() / "flipped.jsonl"
    journal = _Journal(path)
    if not path.exists():
        _written(path)
    marker = JournalMarkerFile(path)._file.path
    intact = marker.read_bytes()
    content = bytearray(intact)
    content[place // 8] ^= 1 << place % 8
    marker.write_bytes(content)
    assert journal.find_loss() == ""
    marker.write_bytes(intact)


def test_a_marker_that_cannot_be_written_disturbs_nothing(path: Path) -> None:
    """Lines are written as before."""
    JournalMarkerFile(path)._file.path.mkdir()
    journal = _written(path)
    assert (journal.find_loss(), len(list(journal.changes()))) == ("", 4)


def test_a_changed_line_stays_recognisable_when_lines_are_rewritten(path: Path) -> None:
    """Forgetting a text must not make a damaged line look right."""
    journal = _written(path)
    path.write_bytes(path.read_bytes().replace(b'"number":2', b'"number":8'))
    assert journal.damaged_lines() == [2]
    journal.rewrite(lambda line: line.replace(b"Zebra", b"Horse"))
    assert journal.damaged_lines() == [2]
    assert [line.number for line in journal.changes()] == [1, 3, 4]
