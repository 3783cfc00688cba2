"""Files of JSON lines: every line is an object or a problem, and no file needs more memory than its longest line."""

import json
import tracemalloc
from pathlib import Path

import pytest

from memoranda.importers import source_files
from memoranda.importers.reader_protocol import Checkpoint, ImportItem, Problem
from memoranda.importers.source_files import Line, find_files, item_at, open_source, prefix_digest, read_json_lines

pytestmark = pytest.mark.slow


def read(file: Path, checkpoint: Checkpoint | None = None) -> list[Line | Problem]:
    return list(read_json_lines(ImportItem(file, file.stat().st_size if file.exists() else 0, 1.0, "x", checkpoint)))


def test_a_line_knows_its_number_and_where_the_next_begins(tmp_path: Path) -> None:
    """Blank lines count, and are none."""
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"a": 1}\n\n  \n{"b": 2}')
    found = read(file)
    assert [(each.value, each.number, each.end) for each in found if isinstance(each, Line)] == [
        ({"a": 1}, 1, 9), ({"b": 2}, 4, 21)
    ]  # fmt: skip


def test_reading_may_begin_at_a_checkpoint(tmp_path: Path) -> None:
    """Lines keep their numbers."""
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"a": 1}\nbroken\n{"b": 2}\n')
    (problem, line) = read(file, Checkpoint(9, 1))
    assert isinstance(problem, Problem)
    assert isinstance(line, Line)
    assert (problem.line, line.number) == (2, 3)


def test_an_endless_line_is_a_problem_and_the_next_one_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never in memory as a whole."""
    monkeypatch.setattr(source_files, "MAX_LINE_BYTES", 100)
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'"' + b"x" * 1000 + b'"\n{"a": 1}\n')
    (problem, line) = read(file)
    assert isinstance(problem, Problem)
    assert isinstance(line, Line)
    assert (problem.line, line.number, line.end) == (1, 2, file.stat().st_size)


def test_a_very_long_line_is_in_memory_twice_at_most(tmp_path: Path) -> None:
    """As bytes and text, and then as text and value."""
    file = tmp_path / "a.jsonl"
    size = 4_000_000
    file.write_text(json.dumps({"a": "x" * size}) + "\n")
    tracemalloc.start()
    try:
        (line,) = read(file)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(line, Line)
    assert len(line.value["a"]) == size
    assert len(line.raw) < 100
    assert peak < 2.5 * size


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        (b"{\n", "not JSON"), (b"[1]\n", "list"), (b"7\n", "int"), (b"\xff\n", "not JSON"), (b'{"a"', "not finished"),
        (b"root:x:0:0", "not JSON"),
        (b"[" * 100_000 + b"\n", "not JSON"), (b"1" * 5000 + b"\n", "not JSON"),
    ],
)  # fmt: skip
def test_a_line_that_is_not_an_object_is_reported(tmp_path: Path, raw: bytes, word: str) -> None:
    """Broken, of another kind, too deep, too long a number, or not finished."""
    file = tmp_path / "a.jsonl"
    file.write_bytes(raw)
    (problem,) = read(file)
    assert isinstance(problem, Problem)
    assert word in problem.text


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    """It existed when the scan found it."""
    (problem,) = read(tmp_path / "gone")
    assert isinstance(problem, Problem)
    assert "cannot be read" in problem.text


def test_a_directory_is_not_a_source(tmp_path: Path) -> None:
    """Nor is anything else that is not a regular file."""
    with pytest.raises(OSError, match="regular"):
        open_source(tmp_path)
    assert item_at(tmp_path, "x") is None
    assert find_files(tmp_path / "gone", lambda file: True, "x") == []


def test_a_prefix_digest_distinguishes_a_grown_file_from_another(tmp_path: Path) -> None:
    """Bytes after the offset do not count; bytes before it do."""
    file = tmp_path / "a"
    file.write_bytes(b"a" * 9000)
    sealed = prefix_digest(file, 8000)
    file.write_bytes(b"a" * 8000 + b"more")
    assert prefix_digest(file, 8000) == sealed
    file.write_bytes(b"b" * 9000)
    assert prefix_digest(file, 8000) != sealed
    file.write_bytes(b"a")
    assert prefix_digest(file, 8000) == prefix_digest(tmp_path / "gone", 8000) == ""
