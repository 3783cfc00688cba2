"""The reader of Claude Code: several versions of its transcripts, sub-agents, forks, and files that grow."""

import json
import os
from pathlib import Path

import pytest

from memoranda.importers.coding_agents.claude_code import ClaudeCode
from memoranda.safety.fence import build_memory_context_block
from tests.importers.claude_code_lines import (
    COMPACTED,
    EARLIER,
    PRESENT,
    SESSION,
    assistant,
    entry,
    result,
    text,
    user,
)
from tests.importers.import_home import Home, write_lines

NAME = f"claude-code-{SESSION}"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Where Claude Code keeps the sessions of one project."""
    return tmp_path / "user" / ".claude" / "projects" / "-home-ann-shop"


def test_recalled_text_in_a_prompt_is_not_imported(home: Home, project: Path) -> None:
    """Older versions put it into the user's message; a fence that others wrote is text of the user."""
    recalled = build_memory_context_block("The heron cluster has port 5433.", source="earlier conversations")
    theirs = "What does <memory-context>x</memory-context> mean?"
    lines = [user("u1", f"Which port?\n\n{recalled}"), user("u2", [text("And why?"), text(recalled)]),
             user("u3", recalled), user("u4", theirs)]  # fmt: skip
    write_lines(project / f"{SESSION}.jsonl", lines)
    summary = home.take(ClaudeCode())
    said = {each["external_id"]: each["content"] for each in home.messages(NAME)}
    assert said == {"u1": "Which port?", "u2": "And why?", "u4": theirs}
    assert summary.skipped == {"text that a hook of Memoranda had added": 2}


def test_a_session_of_today_becomes_a_conversation(home: Home, project: Path) -> None:
    """Words, reasoning, calls and results with their times; what was typed while it worked is there too."""
    write_lines(project / f"{SESSION}.jsonl", PRESENT)
    summary = home.take(ClaudeCode())
    said = [(each["role"], each.get("content"), each["external_id"]) for each in home.messages(NAME)]
    assert said == [
        ("user", "Why does the checkout time out?", "u1"),
        ("assistant", "", "a1"),
        ("assistant", "I look at the pool.", "a2"),
        ("assistant", "", "a3"),
        ("tool", "pool = 5", "u2"),
        ("tool", "max = 5\n\nmin = 1", "u2:1"),
        ("user", "and check the retries too", "x3"),
        ("assistant", "Five connections are too few.", "a4"),
        ("system", "Context is low.", "x5"),
    ]
    messages = home.messages(NAME)
    assert messages[1]["reasoning"] == "The pool may be too small."
    assert [each["function"]["name"] for each in messages[3]["tool_calls"]] == ["Bash", "Read"]
    assert json.loads(messages[3]["tool_calls"][0]["function"]["arguments"]) == {"command": "grep pool shop.toml"}
    assert [(each["tool_name"], each["tool_call_id"]) for each in messages[4:6]] == [
        ("Bash", "toolu_1"), ("Read", "toolu_2")
    ]  # fmt: skip
    assert messages[3]["finish_reason"] == "tool_use"
    assert (messages[0]["timestamp"], messages[7]["timestamp"]) == (1772359201.0, 1772359260.0)
    assert sum(summary.skipped.values()) == 8
    assert summary.problem_count == 0


def test_the_row_says_where_and_with_what_it_took_place(home: Home, project: Path) -> None:
    """Title, model, directory, and the id with which the session is resumed."""
    write_lines(project / f"{SESSION}.jsonl", PRESENT)
    home.take(ClaudeCode())
    row = home.everything()[NAME]
    assert [row[name] for name in ("source", "title", "model", "directory", "host_session_id")] == [
        "claude-code", "Checkout timeout", "claude-opus-4-6", "/home/ann/shop", SESSION
    ]  # fmt: skip
    assert (row["claude_code_version"], row["claude_code_git_branch"]) == ("2.1.197", "main")
    resume = ClaudeCode().resume_command
    assert resume(SESSION, "/home/ann/my shop") == f"cd '/home/ann/my shop' && claude --resume {SESSION}"
    assert resume(f"{SESSION}-agent-7", None) == f"claude --resume {SESSION}"


def test_an_earlier_version_is_read_as_well(home: Home, project: Path) -> None:
    """Side chains become delegated sessions, and a summary is a title when it is about this session."""
    write_lines(project / f"{SESSION}.jsonl", EARLIER)
    home.take(ClaudeCode())
    found = home.everything()
    side = f"{NAME}-agent-sidechain"
    assert [each["external_id"] for each in home.messages(NAME)] == ["u1", "a1", "u2", "a2"]
    assert [each["external_id"] for each in home.messages(side)] == ["s1", "s2"]
    assert (found[side]["parent_session_id"], found[side]["relation"], found[side]["title"]) == (
        NAME, "delegation", None
    )  # fmt: skip
    assert found[NAME]["title"] == "Renaming a module"


def test_what_the_program_writes_in_the_user_s_role_is_not_the_user_s(home: Home, project: Path) -> None:
    """Summaries of compaction, injected notes and output of commands; a line that was written twice is there once."""
    write_lines(project / f"{SESSION}.jsonl", COMPACTED)
    summary = home.take(ClaudeCode())
    messages = home.messages(NAME)
    assert [(each["role"], each["external_id"]) for each in messages] == [
        ("user", "u1"), ("assistant", "a1"), ("system", "b1"), ("user", "c1"), ("system", "u2"), ("user", "u3"),
        ("system", "u4"), ("assistant", "a2"),
    ]  # fmt: skip
    assert [each["external_id"] for each in messages if each.get("is_summary")] == ["c1"]
    assert (home.everything()[NAME]["title"], home.everything()[NAME]["model"]) == ("The move", "claude-opus-4-6")
    assert summary.messages_known == 1


@pytest.mark.parametrize("place", ["beside", "below"])
def test_a_sub_agent_s_file_is_a_delegated_session(home: Home, project: Path, place: str) -> None:
    """Beside the session's file, as in older versions, or below it."""
    write_lines(project / f"{SESSION}.jsonl", PRESENT)
    where = project if place == "beside" else project / SESSION / "subagents"
    lines = [
        user("s1", "count the files", isSidechain=True, agentId="ab12"),
        assistant("s2", text("Nine."), isSidechain=True),
    ]
    write_lines(where / "agent-ab12.jsonl", lines)
    # The parent comes first, whichever file is older.
    os.utime(where / "agent-ab12.jsonl", (1, 1))
    summary = home.take(ClaudeCode())
    row = home.everything()[f"{NAME}-agent-ab12"]
    assert (row["parent_session_id"], row["relation"], row["message_count"]) == (NAME, "delegation", 2)
    assert summary.detached == []


def test_a_forked_session_is_a_branch_with_its_own_messages(home: Home, project: Path) -> None:
    """The fork's file repeats everything that was said before, under its own session id."""
    fork = "5e0e8a4d-1111-4222-8333-944455566677"
    write_lines(project / f"{SESSION}.jsonl", PRESENT)
    os.utime(project / f"{SESSION}.jsonl", (1, 1))
    repeated = [line | {"sessionId": fork} for line in PRESENT]
    write_lines(project / f"{fork}.jsonl", [*repeated, user("u9", "And now another way.", session=fork)])
    assert home.plan(ClaudeCode()).as_json() == (summary := home.take(ClaudeCode())).as_json()
    assert [each["external_id"] for each in home.messages(f"claude-code-{fork}")] == ["u9"]
    assert home.everything()[f"claude-code-{fork}"]["parent_session_id"] == NAME
    assert summary.count("new") == 2


def test_a_growing_file_is_read_from_its_checkpoint(home: Home, project: Path) -> None:
    """Only new lines are read, and the names of tools with open calls are still known."""
    file = write_lines(project / f"{SESSION}.jsonl", PRESENT[:8])
    home.take(ClaudeCode())
    with file.open("a") as stream:
        stream.writelines(json.dumps(line) + "\n" for line in PRESENT[8:])
    summary = home.take(ClaudeCode())
    assert summary.bytes < file.stat().st_size / 2
    assert (summary.count("grown"), summary.messages_known) == (1, 0)
    assert [each["tool_name"] for each in home.messages(NAME) if each["role"] == "tool"] == ["Bash", "Read"]
    row = home.everything()[NAME]
    assert (row["title"], row["message_count"]) == ("Checkout timeout", 9)


def test_an_unfinished_line_is_imported_when_it_is_complete(home: Home, project: Path) -> None:
    """It is counted as unfinished, is no problem, and is read again next time."""
    file = write_lines(project / f"{SESSION}.jsonl", PRESENT[:3])
    whole = json.dumps(assistant("a1", text("Half of this is there.")))
    with file.open("a") as stream:
        stream.write(whole[:60])
    first = home.take(ClaudeCode())
    assert (first.problem_count, first.skipped["unfinished last line to read next time"]) == (0, 1)
    with file.open("a") as stream:
        stream.write(whole[60:] + "\n")
    second = home.take(ClaudeCode())
    assert (second.messages, second.problem_count) == (1, 0)
    first.add(second)
    assert "unfinished last line to read next time" not in first.skipped


def test_a_file_that_was_replaced_is_read_from_its_beginning(home: Home, project: Path) -> None:
    """The bytes before the checkpoint are compared first."""
    file = write_lines(project / f"{SESSION}.jsonl", PRESENT[:6])
    home.take(ClaudeCode())
    write_lines(file, [user("n1", "Something else altogether, and long enough. " * 40), *PRESENT])
    summary = home.take(ClaudeCode())
    assert summary.bytes == file.stat().st_size
    assert "n1" in [each["external_id"] for each in home.messages(NAME)]


def test_pictures_are_named_and_unknown_blocks_kept(home: Home, project: Path) -> None:
    """A placeholder has the size of a picture; a block of an unknown kind is kept unchanged."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 400}}
    write_lines(project / f"{SESSION}.jsonl", [
        user("u1", [text("See this"), image]),
        user("u2", [result("toolu_9", [image], is_error=True)]),
        assistant("a1", {"type": "hologram", "depth": 3}, {"type": "redacted_thinking", "data": "zzz"}),
    ])  # fmt: skip
    home.take(ClaudeCode())
    messages = home.messages(NAME)
    assert messages[0]["content"] == "See this\n\n[image: image/png, 300 bytes, not imported]"
    assert (messages[1]["content"], messages[1]["is_error"]) == ("[image: image/png, 300 bytes, not imported]", True)
    assert messages[2]["content"] == '{"type": "hologram", "depth": 3}'


def test_broken_lines_are_named_by_file_and_line(home: Home, project: Path) -> None:
    """And the lines around them are imported."""
    file = project / f"{SESSION}.jsonl"
    write_lines(file, [PRESENT[2]])
    with file.open("ab") as stream:
        stream.write(b'{"type": "user", \n\n[1, 2]\n\xff\xfe\n' + json.dumps(PRESENT[11]).encode() + b"\n")
    summary = home.take(ClaudeCode())
    assert [(each.file, each.line) for each in summary.problems] == [(file, 2), (file, 4), (file, 5)]
    assert [each["external_id"] for each in home.messages(NAME)] == ["u1", "a4"]


def test_a_source_is_found_by_directory_project_or_file(home: Home, project: Path, tmp_path: Path) -> None:
    """`~/.claude`, its projects, one project with its notes, one session; other files are not looked at."""
    file = write_lines(project / f"{SESSION}.jsonl", PRESENT)
    (project / "memory").mkdir()
    notes = project / "memory" / "MEMORY.md"
    notes.write_text("x")
    write_lines(project.parent / "history.jsonl", [{"display": "x"}])
    for where in (None, project.parent.parent, project.parent, project):
        assert [item.file for item in ClaudeCode().scan(where)] == [file, notes]
    assert [item.file for item in ClaudeCode().scan(file)] == [file]
    assert ClaudeCode().scan(tmp_path / "nothing") == []


def test_odd_things_in_the_directory_are_not_an_error(home: Home, project: Path) -> None:
    """A pipe, a broken link, a cycle of directories, a file without permission."""
    project.mkdir(parents=True)
    os.mkfifo(project / "pipe.jsonl")
    (project / "gone.jsonl").symlink_to(project / "nowhere")
    (project / "circle").symlink_to(project)
    (project / "directory.jsonl").mkdir()
    write_lines(project / f"{SESSION}.jsonl", PRESENT)
    assert len(ClaudeCode().scan(None)) == 1
    assert home.take(ClaudeCode()).problem_count == 0


def test_a_source_is_never_changed(home: Home, project: Path) -> None:
    """Not its bytes, not its times, not its mode; nothing is put beside it."""
    file = write_lines(project / f"{SESSION}.jsonl", PRESENT)
    file.chmod(0o400)
    before = (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_mode, sorted(project.rglob("*")))
    home.plan(ClaudeCode())
    home.take(ClaudeCode())
    assert (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_mode, sorted(project.rglob("*"))) == before


def test_a_line_without_an_id_is_identified_by_content_and_number(home: Home, project: Path) -> None:
    """Two lines with the same content are two messages, and stay two."""
    line = {name: value for name, value in user("u1", "yes").items() if name != "uuid"}
    write_lines(project / f"{SESSION}.jsonl", [line, line, entry("x", "system", subtype="init")])
    assert home.take(ClaudeCode()).messages == 2
    assert home.take(ClaudeCode(), rescan=True).messages == 0
