"""`memoranda sessions import` and `export` with the files that people have."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

import memoranda
from tests.cli.terminal import Terminal
from tests.search.past import tell

pytestmark = pytest.mark.slow

SESSION: dict[str, Any] = {"id": "s", "source": "cli", "messages": [{"role": "user", "content": "half \ud800 of it"}]}
OTHER: dict[str, Any] = {"id": "t", "source": "cli", "started_at": 5.0, "messages": []}


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "home")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([SESSION, OTHER]),
        json.dumps([SESSION, OTHER], indent=2),
        f"[\n{json.dumps(SESSION)},\n{json.dumps(OTHER)}\n]\n",
        f"{json.dumps(SESSION, indent=2)}\n{json.dumps(OTHER, indent=2)}\n",
        f"\n\n{json.dumps(SESSION)}\n\n{json.dumps(OTHER)}",
        f"{json.dumps([SESSION])}\n{json.dumps(OTHER)}\n",
    ],
    ids=["array", "pretty array", "array by lines", "pretty objects", "lines", "array and line"],
)
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "marked"])
def test_sessions_are_read_from_lines_and_from_json_as_a_whole(
    terminal: Terminal, tmp_path: Path, text: str, mark: str
) -> None:
    """With and without a byte order mark, and as often as you like."""
    file = tmp_path / "sessions.json"
    file.write_text(mark + text, encoding="utf-8")
    assert sorted(terminal.json("sessions", "import", str(file))["imported"]) == ["s", "t"]
    assert sorted(terminal.json("sessions", "import", str(file))["skipped"]) == ["s", "t"]


def test_an_import_is_taken_back_by_deleting_what_it_added(terminal: Terminal, tmp_path: Path) -> None:
    """As its help says; the list of imports is one of other programs."""
    file = tmp_path / "sessions.json"
    file.write_text(json.dumps([SESSION, OTHER]))
    added = terminal.json("sessions", "import", str(file))["imported"]
    assert terminal.ok("import", "undo") == "Nothing was imported from other programs yet.\n"
    assert "'memoranda sessions delete' removes them" in " ".join(terminal.ok("sessions", "import", "--help").split())
    terminal.ok("sessions", "delete", *added, "--yes")
    assert terminal.json("sessions", "list")["sessions"] == []


def test_what_cannot_be_imported_is_located_by_its_line(terminal: Terminal, tmp_path: Path) -> None:
    """Whether the line is no JSON or its session is refused; in a document that is JSON as a whole, by number."""
    file = tmp_path / "sessions.jsonl"
    file.write_text('{"id": 5, "messages": []}\n' + json.dumps(OTHER) + '\nnonsense\n{"a": 1}\n')
    shown = terminal.run("sessions", "import", str(file)).stderr.splitlines()[-3:]
    assert shown[0] == "line 1: id must be text, not 5."
    assert shown[1].startswith("line 3: not JSON") and shown[2] == "line 4: A session needs an id and a source."
    file.write_text(json.dumps([OTHER, {"a": 1}], indent=1))
    assert "session 2: A session needs" in terminal.run("sessions", "import", str(file)).stderr


def test_what_show_prints_as_json_can_be_imported(terminal: Terminal, tmp_path: Path) -> None:
    """It is a session like any other."""
    with memoranda.open(terminal.home) as memory:
        tell(memory.sessions, "s", ["hello", "hi"], title="Greeting")
    file = tmp_path / "shown.json"
    file.write_text(terminal.ok("sessions", "show", "s", "--json"))
    assert Terminal(tmp_path / "other").json("sessions", "import", str(file))["messages"] == 2


@pytest.mark.parametrize(
    "content",
    [
        json.dumps([SESSION] * 5, indent=2)[:-40].encode(),
        json.dumps([SESSION], indent=2).encode("utf-16"),
        b"\x7fELF\x02\n\x00\x01\n\xff\n",
        b"id,source\ns,cli\n5\nnull\n",
    ],
    ids=["cut off", "UTF-16", "program", "table"],
)
def test_a_file_of_another_kind_is_refused_in_one_sentence(terminal: Terminal, tmp_path: Path, content: bytes) -> None:
    """Not in one for each of its lines."""
    file = tmp_path / "other"
    file.write_bytes(content)
    result = terminal.run("sessions", "import", str(file), "--json")
    assert result.exit_code == 1
    (error,) = json.loads(result.stdout)["errors"]
    assert error["line"] == 1


def test_a_first_line_that_is_cut_off_does_not_stop_the_others(terminal: Terminal, tmp_path: Path) -> None:
    """Though it looks like the beginning of a longer value."""
    file = tmp_path / "cut.jsonl"
    file.write_text(f"{json.dumps(SESSION)[:20]}\n{json.dumps(OTHER)}\n5\n")
    result = terminal.run("sessions", "import", str(file), "--json")
    report = json.loads(result.stdout)
    assert report["imported"] == ["t"]
    assert [error["line"] for error in report["errors"]] == [1, 3]


def test_a_session_without_any_time_is_dated_now(terminal: Terminal, tmp_path: Path) -> None:
    """With what is added to it later; the command reports it."""
    file = tmp_path / "undated.jsonl"
    file.write_text(f"{json.dumps(SESSION)}\n{json.dumps(OTHER)}\n")
    before = time.time()
    assert "Sessions without any timestamp, dated now: 1." in terminal.ok("sessions", "import", str(file))
    with memoranda.open(terminal.home) as memory:
        dated = memory.sessions.get_session("s")
        assert dated is not None and before <= dated["started_at"] <= time.time()
        assert memory.sessions.get_session("t")["started_at"] == 5.0  # type: ignore[index]
    grown = SESSION | {"messages": [*SESSION["messages"], {"role": "assistant", "content": "and more"}]}
    file.write_text(json.dumps(grown))
    report = terminal.json("sessions", "import", str(file))
    assert (report["messages"], report["undated"]) == (1, [])
    with memoranda.open(terminal.home) as memory:
        assert {each["timestamp"] for each in memory.sessions.get_messages("s")} == {dated["started_at"]}


def test_a_session_of_another_user_is_refused_by_the_name_of_whom_the_home_is_open_for(
    terminal: Terminal, tmp_path: Path
) -> None:
    """Also when that user has no name."""
    file = tmp_path / "hers.jsonl"
    file.write_text(json.dumps(SESSION | {"user_id": "ana"}))
    assert "open for the home's own user, not for 'ana'" in terminal.run("sessions", "import", str(file)).output
    asked = terminal.run("--user", "bob", "sessions", "import", str(file))
    assert "open for 'bob', not for 'ana'" in asked.output
    assert terminal.json("sessions", "import", "--all-users", str(file))["imported"] == ["s"]


def test_a_file_in_a_directory_that_is_not_there_is_refused_before_anything_is_done(
    terminal: Terminal, tmp_path: Path
) -> None:
    """Nothing is deleted that could not be saved."""
    with memoranda.open(terminal.home) as memory:
        tell(memory.sessions, "s", ["hello"])
    missing = tmp_path / "missing" / "past.jsonl"
    for words in (["export", "--output"], ["delete", "s", "--yes", "--export"], ["prune", "--yes", "--export"]):
        result = terminal.run("sessions", *words, str(missing))
        assert result.exit_code == 2
        assert f"There is no directory {str(missing.parent)!r}." in result.output
    assert len(terminal.json("sessions", "list")["sessions"]) == 1


def test_a_file_that_cannot_be_written_is_named(terminal: Terminal, tmp_path: Path) -> None:
    """Not the temporary file that is written first."""
    file = tmp_path / ("x" * 300)
    result = terminal.run("sessions", "export", "--output", str(file))
    assert result.exit_code == 2
    assert result.output.startswith(f"{file} cannot be written: ")


def test_an_existing_file_is_never_overwritten(terminal: Terminal, tmp_path: Path) -> None:
    """It may be the only copy of what was deleted before."""
    file = tmp_path / "past.jsonl"
    file.write_text("the only copy\n")
    for command in (("export", "--output", str(file)), ("prune", "--yes", "--export", str(file))):
        result = terminal.run("sessions", *command)
        assert result.exit_code == 2
        assert "already exists" in result.output
    assert file.read_text() == "the only copy\n"


def test_items_are_exported_and_imported_with_sessions(tmp_path: Path) -> None:
    """With their versions and for all users; a second import adds nothing, and one session alone has no items."""
    home, other, file = Terminal(tmp_path / "home"), Terminal(tmp_path / "other"), tmp_path / "all.jsonl"
    with memoranda.open(home.home) as memory, memoranda.open(home.home, user="ana") as ana:
        memory.sessions.create_session("s", "cli")
        memory.items.put(("n",), "k", {"text": "one"})
        memory.items.put(("n",), "k", {"text": "two \ud83d"})
        ana.items.put(("n",), "k", "of ana")
    exported = home.json("sessions", "export", "--all-users", "--output", str(file))
    assert (exported["sessions"], exported["items"]) == (1, 2)
    assert '"item"' not in home.ok("sessions", "export", "s")
    for expected in ({"imported": 2, "updated": 0, "skipped": 0}, {"imported": 0, "updated": 0, "skipped": 2}):
        assert other.json("sessions", "import", str(file), "--all-users")["items"] == expected
    with memoranda.open(other.home) as memory:
        assert [each.value for each in memory.items.history(("n",), "k")] == [{"text": "one"}, {"text": "two \ud83d"}]
        assert len(memory.items.search((), "two")) == 1
