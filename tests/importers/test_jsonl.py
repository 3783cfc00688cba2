"""The plain format has one message per line, for programs without their own reader."""

from pathlib import Path

import pytest

from memoranda.importers.exports import jsonl
from memoranda.importers.exports.jsonl import JsonLines
from memoranda.importers.reader_protocol import Problem
from tests.importers.import_home import Home, write_lines

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_a_line_is_a_message(home: Home, tmp_path: Path) -> None:
    """With session, id, time, calls and reasoning where they are known; other fields are kept."""
    calls = [{"id": "c1", "type": "function", "function": {"name": "grep", "arguments": "{}"}}]
    file = write_lines(tmp_path / "talk.jsonl", [
        {"session": "one", "title": "A talk", "model": "m", "directory": "/w", "started_at": "2026-03-01T09:00:00Z"},
        {"session": "one", "id": "1", "role": "user", "content": "hello", "timestamp": 1772359200},
        {"session": "one", "id": 2, "role": "assistant", "content": "", "tool_calls": calls, "mood": "kind"},
        {"session": "one", "id": "3", "role": "tool", "content": "found", "tool_call_id": "c1", "tool_name": "grep"},
        {"role": "user", "content": "no session"},
    ])  # fmt: skip
    summary = home.take(JsonLines(), file)
    row = home.everything()["jsonl-one"]
    assert [row[name] for name in ("title", "model", "directory", "started_at")] == ["A talk", "m", "/w", 1772355600.0]
    assert [(each["external_id"], each["role"], each["timestamp"]) for each in row["messages"]] == [
        ("one:1", "user", 1772359200.0), ("one:2", "assistant", 1772359200.0), ("one:3", "tool", 1772359200.0)
    ]  # fmt: skip
    assert (row["messages"][1]["tool_calls"], row["messages"][1]["mood"]) == (calls, "kind")
    assert [each["content"] for each in home.messages("jsonl-talk")] == ["no session"]
    assert (summary.problem_count, summary.messages) == (0, 4)


def test_a_line_that_is_not_a_message_is_a_problem(home: Home, tmp_path: Path) -> None:
    """With its number and the reason."""
    file = write_lines(tmp_path / "a.jsonl", [
        {"content": "who said that?"}, {"role": 7, "content": "x"}, {"session": 5, "role": "user"}, {},
        {"role": "user", "content": "fine", "relation": "cousin"}, {"role": "user", "content": "good"},
    ])  # fmt: skip
    summary = home.take(JsonLines(), file)
    assert [problem.line for problem in summary.problems] == [1, 2, 3, 4, 5]
    assert summary.messages == 1


def test_lines_without_ids_are_identified_by_number_and_content(home: Home, tmp_path: Path) -> None:
    """A repeated text is two messages; the file may grow."""
    line = {"role": "user", "content": "yes"}
    file = write_lines(tmp_path / "a.jsonl", [line, line])
    assert home.take(JsonLines(), file).messages == 2
    write_lines(file, [line, line, line])
    assert home.take(JsonLines(), file).messages == 1
    assert home.take(JsonLines(), file, rescan=True).messages == 0


def test_a_session_may_have_a_parent(home: Home, tmp_path: Path) -> None:
    """`parent` names it; `relation` says how they are related."""
    file = write_lines(tmp_path / "a.jsonl", [
        {"session": "p", "role": "user", "content": "x"},
        {"session": "c", "role": "user", "content": "y", "parent": "p", "relation": "delegation"},
    ])  # fmt: skip
    home.take(JsonLines(), file)
    row = home.everything()["jsonl-c"]
    assert (row["parent_session_id"], row["relation"]) == ("jsonl-p", "delegation")


def test_there_is_no_default_directory(tmp_path: Path) -> None:
    """A file or directory must be named; in a directory, files are selected by their suffixes."""
    write_lines(tmp_path / "d" / "a.jsonl", [])
    write_lines(tmp_path / "d" / "b.ndjson", [])
    write_lines(tmp_path / "d" / "c.txt", [])
    assert JsonLines().scan(None) == []
    assert [item.file.name for item in JsonLines().scan(tmp_path / "d")] == ["a.jsonl", "b.ndjson"]


def test_sessions_may_count_their_messages_alike(home: Home, tmp_path: Path) -> None:
    """An id tells messages of one session apart, not those of all."""
    file = write_lines(tmp_path / "a.jsonl", [
        {"session": name, "id": number, "role": "user", "content": f"{name} {number}"}
        for name in ("one", "two") for number in (1, 2)
    ])  # fmt: skip
    assert home.take(JsonLines(), file).messages == 4
    assert [each["content"] for each in home.messages("jsonl-two")] == ["two 1", "two 2"]


def test_a_file_that_could_not_be_opened_is_read_again(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although nothing about it has changed since."""
    file = write_lines(tmp_path / "a.jsonl", [{"role": "user", "content": "hello"}])
    with monkeypatch.context() as patch:
        problem = Problem(file, None, "cannot be read", unread=True)
        patch.setattr(jsonl, "read_json_lines", lambda item: iter([problem]))
        assert home.take(JsonLines(), file).problem_count == 1
    assert home.take(JsonLines(), file).messages == 1
