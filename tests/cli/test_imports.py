"""`memoranda import` lists what was found, shows what would happen, and writes nothing without consent."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memoranda.cli.imports import workflow
from memoranda.cli.imports.workflow import FoundSource
from memoranda.cli.main import command
from memoranda.home.session_db import SessionDB
from memoranda.importers.importer import Importer, import_lock
from memoranda.importers.reader_protocol import ConversationReader, ImportItem
from memoranda.importers.sources import SOURCES
from memoranda.importers.summary import MAX_REPORTS, ImportSummary, report_path
from tests.importers import cursor_stores
from tests.importers.claude_code_lines import PRESENT, SESSION, assistant, text
from tests.importers.import_home import write_lines
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow

_FILES = Path(__file__).parents[2] / "docs" / "reference" / "files.md"
_PROGRAM = [sys.executable, "-m", "memoranda", "import"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "user" / ".claude" / "projects" / "-home-ann-shop" / f"{SESSION}.jsonl", PRESENT)


def run(home: Path, *arguments: str, input: str | None = None) -> Result:
    return CliRunner().invoke(command, ["import", "--home", str(home), *arguments], input=input)


def answer(home: Path, *arguments: str) -> dict[str, Any]:
    result = run(home, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def test_without_a_name_it_lists_what_was_found(home: Path, transcript: Path) -> None:
    """And writes nothing."""
    result = run(home)
    assert "Claude Code (claude-code): 1 file, " in result.output
    found = answer(home)["found"]
    assert [(each["source"], each["bytes"]) for each in found] == [("claude-code", transcript.stat().st_size)]
    assert not home.exists()


def test_an_unknown_name_lists_what_can_be_imported(home: Path) -> None:
    """Nobody knows the names of all programs by heart."""
    result = run(home, "nothing")
    assert result.exit_code == 2
    assert all(name in result.output for name in SOURCES)


@pytest.mark.parametrize(
    "arguments", [["claude-code"], ["claude-code", "--dry-run"], ["--all"], ["--all", "--dry-run"]]
)
def test_nothing_is_written_before_a_yes(home: Path, transcript: Path, arguments: list[str]) -> None:
    """What would happen is shown; without a terminal to ask, that is all, and the command fails."""
    result = run(home, *arguments)
    assert result.exit_code == (0 if "--dry-run" in arguments else 1)
    assert "sessions: 1 new" in result.output
    assert "messages: 9 would be added" in result.output
    assert "Nothing was written" in result.output
    assert not home.exists()


def test_with_yes_it_imports_and_keeps_a_report(home: Path, transcript: Path) -> None:
    """The report is printed and stored in the home for its owner only, and search finds the messages at once."""
    planned = answer(home, "claude-code", "--dry-run")
    done = answer(home, "claude-code", "--yes")
    assert (planned["applied"], done["applied"]) == (False, True)
    assert planned["sources"] == done["sources"]
    report = Path(done["report"])
    assert json.loads(report.read_text())["sources"] == done["sources"]
    assert report.parent == home / "imports"
    assert report.stat().st_mode & 0o077 == 0
    with SessionDB(home / "state.db") as db:
        assert db.get_session(f"claude-code-{SESSION}")["title"] == "Checkout timeout"  # type: ignore[index]
        assert db.search_messages("connections too few")


def test_the_newest_reports_are_kept(home: Path, transcript: Path) -> None:
    """As many as the documentation says; other files there stay."""
    place = home / "imports"
    (place / "hermes").mkdir(parents=True)
    others = [place / "notes.json", place / "hermes" / "MEMORY.md"]
    old = [place / f"20250101-0000{number:02}-7.json" for number in range(30)]
    for file in (*others, *old):
        file.write_text("{}")
    newest = Path(answer(home, "claude-code", "--yes")["report"])
    assert sorted(place.glob("2*.json")) == [*old[-MAX_REPORTS + 1 :], newest]
    assert all(file.exists() for file in others)
    assert f"the newest {MAX_REPORTS}" in _FILES.read_text()


def test_a_second_import_adds_nothing(home: Path, transcript: Path) -> None:
    """And does not even read what has not changed."""
    answer(home, "--all", "--yes")
    again = answer(home, "--all", "--yes")["sources"][0]
    assert (again["files_unchanged"], again["messages"], again["bytes"]) == (1, 0, 0)
    assert "Nothing is new." in run(home, "claude-code").output


def test_undo_takes_a_whole_import_back(home: Path, transcript: Path) -> None:
    """The report names the id; a preview removes nothing, --yes removes all of it, and it can be imported again."""
    done = answer(home, "claude-code", "--source", str(transcript), "--yes")
    listed = answer(home, "undo")["imports"]
    assert [(entry["import"], entry["sources"], entry["sessions"]) for entry in listed] == [
        (done["import"], ["claude-code"], 1)
    ]
    began = datetime.fromisoformat(listed[0]["began"]).astimezone()
    assert f"  {began:%Y-%m-%d %H:%M}  Claude Code: 1 session" in run(home, "undo").output
    messages = done["sources"][0]["messages"]
    planned = answer(home, "undo", done["import"], "--dry-run")
    assert (planned["applied"], planned["messages"]) == (False, messages)
    assert answer(home, "claude-code", "--source", str(transcript), "--yes")["sources"][0]["messages"] == 0
    undone = answer(home, "undo", done["import"], "--yes")
    assert (undone["applied"], undone["messages"], undone["kept"]) == (True, messages, [])
    with SessionDB(home / "state.db") as db:
        assert db.session_count() == 0
    assert answer(home, "undo")["imports"][0]["undone"] is True
    again = answer(home, "claude-code", "--source", str(transcript), "--yes")
    assert again["sources"][0]["messages"] == messages
    text = run(home, "undo", again["import"], "--dry-run").output
    assert "1 session as a whole" in text and "Nothing was removed." in text


def test_undo_of_an_import_that_added_nothing_has_nothing_to_do(
    home: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It prints no command to undo it; its id, which names its report, is known, and the first import stays."""
    first = answer(home, "claude-code", "--yes")
    assert "Undo:" not in run(home, "claude-code", "--yes").output
    # An import of a minute later has another id, also in this process.
    monkeypatch.setattr(workflow, "report_path", lambda root, at, **shared: report_path(root, at + 60, **shared))
    second = answer(home, "claude-code", "--yes")["import"]
    assert f"The import {second} added nothing" in run(home, "undo", second, "--yes").output
    undone = answer(home, "undo", second, "--yes")
    assert (undone["applied"], undone["messages"], undone["sessions_removed"]) == (False, 0, [])
    assert answer(home, "undo", first["import"], "--dry-run")["messages"] == first["sources"][0]["messages"]


def test_the_answer_names_the_command_that_lists_imported_notes(home: Path, transcript: Path) -> None:
    """It works, and without new notes there is no such line."""
    (transcript.parent / "memory").mkdir()
    (transcript.parent / "memory" / "MEMORY.md").write_text("# Ports\n\nThe staging port is 4711.\n")
    assert "notes: 1 of the sessions; search finds them\n" in run(home, "claude-code", "--dry-run").output
    done = run(home, "claude-code", "--yes").output
    named = re.search("notes: 1 of the sessions; search finds them, and 'memoranda (.*)' lists them\n", done)
    assert named is not None
    listed = CliRunner().invoke(command, ["--home", str(home), *named[1].split()]).output
    assert "claude-code:notes" in listed and f"claude-code-{SESSION}" not in listed
    assert "notes" not in run(home, "claude-code", "--yes").output


def test_undo_of_an_unknown_import_says_where_they_are_listed(home: Path, transcript: Path) -> None:
    """The exit code says that nothing was done."""
    run(home, "claude-code", "--source", str(transcript), "--yes")
    result = run(home, "undo", "20260101-000000-1")
    assert result.exit_code != 0
    assert "'memoranda import undo' lists them" in result.output


def test_what_was_deleted_is_counted_apart(home: Path, transcript: Path) -> None:
    """It is not unchanged, whether its file was read again or not; `--rescan` restores it."""
    answer(home, "claude-code", "--yes")
    with SessionDB(home / "state.db") as db:
        db.delete_session(f"claude-code-{SESSION}")
    for grows in (True, False):
        if grows:
            _say_more(transcript, "late")
        shown = run(home, "claude-code", "--yes").output
        assert "sessions: 0 new, 0 grown, 0 unchanged, 1 deleted here\n" in shown
        assert "--rescan restores them" in shown
    assert answer(home, "claude-code", "--yes", "--rescan")["sources"][0]["sessions_new"] == 1
    assert "deleted here" not in run(home, "claude-code", "--yes").output


def test_problems_are_named_by_file_and_line(home: Path, transcript: Path) -> None:
    """They are not a failure: the rest is imported."""
    with transcript.open("a") as stream:
        stream.write("broken\n")
    result = run(home, "claude-code", "--yes")
    assert result.exit_code == 0
    assert f"{transcript}:{len(PRESENT) + 1}: not JSON" in result.output


def test_a_program_s_own_variable_says_where_its_files_are(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CLAUDE_CONFIG_DIR moves Claude Code's directory; --source names any other."""
    write_lines(tmp_path / "moved" / "projects" / "p" / f"{SESSION}.jsonl", PRESENT)
    assert answer(home)["found"] == []
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "moved"))
    assert len(answer(home)["found"]) == 1
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    assert answer(home, "claude-code", "--source", str(tmp_path / "moved"), "--yes")["sources"][0]["messages"] == 9


def test_cursor_is_found_where_settings_were_moved(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """XDG_CONFIG_HOME moves its editor and its command line; ~/.cursor is searched as well."""
    cursor_stores.write_editor(tmp_path / "moved" / "Cursor" / "User")
    cursor_stores.write_agent(tmp_path / "moved" / "cursor")
    cursor_stores.write_agent(tmp_path / "user" / ".cursor")
    assert [each["files"] for each in answer(home)["found"]] == [1]
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "moved"))
    assert [each["files"] for each in answer(home)["found"]] == [3]


def test_without_conversations_it_says_so(home: Path) -> None:
    """With the option for another path; the home is not created."""
    assert "No conversations of a known program" in run(home).output
    result = run(home, "claude-code", "--yes")
    assert (result.exit_code, "--source" in result.output) == (0, True)
    assert "nothing to import from any known program" in run(home, "--all", "--yes").output
    assert not home.exists()


def test_invalid_arguments_are_refused(home: Path, tmp_path: Path) -> None:
    """An unknown program, a name with --all, JSON lines without a file, a path that does not exist."""
    for arguments in (
        ["netscape"],
        ["--all", "claude-code"],
        ["jsonl"],
        ["claude-code", "--source", str(tmp_path / "x")],
    ):
        assert run(home, *arguments).exit_code == 2


def test_json_lines_are_imported_from_a_file(home: Path, tmp_path: Path) -> None:
    """Options may precede the name of the program."""
    file = write_lines(tmp_path / "talk.jsonl", [{"role": "user", "content": "hello"}])
    assert answer(home, "--yes", "jsonl", "--source", str(file))["sources"][0]["messages"] == 1


def test_a_person_is_asked(home: Path, transcript: Path) -> None:
    """At a terminal the plan is followed by a question; no leaves everything as it is, yes imports."""
    assert "Nothing was written" not in _at_terminal(home, "n\n")
    assert not (home / "state.db").exists()
    shown = _at_terminal(home, "y\n")
    assert "9 would be added" in shown
    assert "9 were added" in shown


def _at_terminal(home: Path, typed: str) -> str:
    """What a person sees who types that."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*_PROGRAM, "--home", str(home), "claude-code"], stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:
        # The other side of the terminal is closed.
        pass
    os.close(ours)
    assert process.wait(timeout=GIVE_UP) in (0, 1)
    return shown.decode()


def test_while_another_import_runs_nothing_is_imported(
    home: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other import is named before the command waits, and again after the timeout."""
    monkeypatch.setattr("memoranda.cli.imports.workflow._LOCK_TIMEOUT", 0.05)
    with import_lock(home, 0.0):
        result = run(home, "claude-code", "--yes")
        refused = run(home, "claude-code", "--yes", "--json")
        assert "would be added" in run(home, "claude-code", "--dry-run").output
    named = f"process {os.getpid()} "
    assert result.exit_code == refused.exit_code == 1
    assert f"Waiting up to 0.05 s for another import into this home: {named}" in result.stderr
    assert f"Another import into this home is running: {named}" in result.stderr
    assert named in json.loads(refused.stdout)["holder"]
    assert not (home / "imports").exists()
    assert answer(home, "claude-code", "--yes")["sources"][0]["messages"] == 9


def test_of_two_imports_at_once_each_counts_what_it_added(home: Path, tmp_path: Path) -> None:
    """Together that is everything, once."""
    lines = [{"role": "user", "content": f"message {number}"} for number in range(3000)]
    file = write_lines(tmp_path / "talk.jsonl", lines)
    call = [*_PROGRAM, "--home", str(home), "jsonl", "--source", str(file), "--yes", "--json"]
    both = [subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for _ in range(2)]
    answers = [json.loads(process.communicate(timeout=GIVE_UP)[0]) for process in both]
    assert sum(each["sources"][0]["messages"] for each in answers if each["success"]) == 3000


def test_following_imports_what_is_new_until_it_is_interrupted(home: Path, transcript: Path) -> None:
    """One line per pass with new messages; Ctrl-C ends it cleanly."""
    with (
        subprocess.Popen(
            [*_PROGRAM, "--home", str(home), "claude-code", "--yes", "--follow", "--json"],
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
        ExitStack() as ending,
    ):
        # It would run for ever when something here fails.
        ending.callback(process.kill)
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        _say_more(transcript, "late")
        second = json.loads(process.stdout.readline())
        with import_lock(home, 10.0):
            # Between two rounds others have their turn, and then it waits for its own.
            _say_more(transcript, "last")
            assert select.select([process.stdout], [], [], 3.0)[0] == []
        third = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=GIVE_UP) == 0
    assert [each["sources"][0]["messages"] for each in (first, second, third)] == [9, 1, 1]
    assert json.loads(Path(first["report"]).read_text())["sources"][0]["messages"] == 11


def test_following_reads_files_only_when_they_change(
    home: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass over unchanged files does no more than list them; a change is imported by the next pass."""
    os.utime(transcript, (1_700_000_000, 1_700_000_000))
    passes: list[int] = []
    imports: list[int] = []
    apply, scan = Importer.apply, FoundSource.rescan

    def count(self: Importer, reader: ConversationReader, items: Sequence[ImportItem]) -> ImportSummary:
        imports.append(len(passes))
        return apply(self, reader, items)

    def rescan(self: FoundSource) -> FoundSource:
        passes.append(len(passes) + 1)
        if len(passes) == 5:
            _say_more(transcript, "late")
            os.utime(transcript, (1_700_000_100, 1_700_000_100))
        if len(passes) > 8:
            raise KeyboardInterrupt
        return scan(self)

    monkeypatch.setattr(Importer, "apply", count)
    monkeypatch.setattr(FoundSource, "rescan", rescan)
    monkeypatch.setattr(workflow, "_FOLLOW_INTERVAL", 0.001)
    assert run(home, "claude-code", "--yes", "--follow").exit_code == 0
    assert imports == [0, 5]


def _say_more(transcript: Path, name: str) -> None:
    with transcript.open("a") as stream:
        stream.write(json.dumps(assistant(name, text("One more thing."))) + "\n")
