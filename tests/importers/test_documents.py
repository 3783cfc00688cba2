"""What the readers of files promise beyond the contract: nothing outside a vault is read, and changes of a log fit."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from memoranda.importers.coding_agents.aider import Aider
from memoranda.importers.coding_agents.cline import Cline, Roo
from memoranda.importers.coding_agents.continue_dev import Continue
from memoranda.importers.coding_agents.copilot_chat import CopilotChat
from memoranda.importers.memory_programs.letta import Letta
from memoranda.importers.memory_programs.vault import Vault
from memoranda.importers.memory_programs.zep import Zep
from tests.importers.import_home import Home, write_lines

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    (tmp_path / "user" / "work").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "user" / "work")
    return tmp_path / "user"


def _write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    return file


def test_a_link_out_of_a_vault_is_not_followed(home: Home, tmp_path: Path) -> None:
    """A vault may be a repository that another person wrote, and a link in it may lead to a key."""
    secret = _write(tmp_path / "secret.md", "a private key")
    vault = _write(tmp_path / "vault" / "Note.md", "A note.").parent
    (vault / "key.md").symlink_to(secret)
    (vault / "all").symlink_to(tmp_path, target_is_directory=True)
    (vault / "Same.md").symlink_to(vault / "Note.md")
    _write(vault / ".obsidian" / "plugin.md", "not a note")
    assert home.take(Vault(), vault).messages == 2
    assert {note["content"] for note in home.messages("obsidian:notes-vault")} == {"A note."}


def test_the_start_of_a_note_is_not_parsed_as_yaml(home: Home, tmp_path: Path) -> None:
    """Aliases that would grow to gigabytes are only text; the text of the note is imported."""
    bomb = "---\na: &a [x, x]\n" + "".join(f"b{n}: &b{n} [*a, *a]\n" for n in range(9)) + "title: Tea\n---\nGreen.\n"
    _write(tmp_path / "vault" / "Note.md", bomb)
    home.take(Vault(), tmp_path / "vault")
    (note,) = home.messages("obsidian:notes-vault")
    assert (note["content"], note["note"]["title"]) == ("# Tea\n\nGreen.", "Tea")


def test_a_changed_note_is_added_with_its_new_text(home: Home, tmp_path: Path) -> None:
    """The earlier text stays in the record, as what was true before."""
    file = _write(tmp_path / "vault" / "Note.md", "Staging is aurora-6.")
    home.take(Vault(), tmp_path / "vault")
    file.write_text("Staging is aurora-7.", "utf-8")
    os.utime(file, (2e9, 2e9))
    assert home.take(Vault(), tmp_path / "vault").messages == 1


def test_programs_are_found_where_they_keep_their_files(user: Path) -> None:
    """Without a path, in the directories of the user, and nowhere else."""
    readers: list[Any] = [Aider(), Cline(), Roo(), Continue(), CopilotChat(), Letta(), Vault()]
    assert [list(reader.scan(None)) for reader in readers] == [[]] * len(readers)
    storage = user / ".config" / "Code" / "User"
    vault = user / "notes"
    _write(user / "work" / ".aider.chat.history.md", "")
    _write(storage / "globalStorage/saoudrizwan.claude-dev/tasks/1/api_conversation_history.json", "[]")
    _write(storage / "globalStorage/rooveterinaryinc.roo-cline/tasks/1/api_conversation_history.json", "[]")
    _write(user / ".continue" / "sessions" / "1.json", "{}")
    _write(storage / "workspaceStorage" / "1" / "chatSessions" / "1.json", "{}")
    _write(user / ".letta" / "agents" / "agent-1" / "memory" / "system" / "human.md", "Ann.")
    (user / ".letta" / "agents" / "agent-1" / "memory" / ".git").mkdir()
    _write(user / ".letta" / "settings.json", "{}")
    _write(vault / "Note.md", "A note.")
    _write(user / ".config" / "obsidian" / "obsidian.json", json.dumps({"vaults": {"1": {"path": str(vault)}}}))
    assert [len(reader.scan(None)) for reader in readers] == [1] * len(readers)


def test_an_answer_that_is_still_written_is_left_for_the_next_import(home: Home, tmp_path: Path) -> None:
    """The record keeps the first version of a message, which must not be half of it."""
    request = {"requestId": "r1", "message": {"text": "Why?"}, "response": [{"value": "Because"}]}
    session = {"kind": 0, "v": {"sessionId": "s1", "requests": [request]}}
    file = write_lines(tmp_path / "chatSessions" / "s1.jsonl", [session])
    home.take(CopilotChat(), tmp_path)
    assert [message["content"] for message in home.messages("copilot-chat-s1")] == ["Why?"]
    more = {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": " of two locks."}]}
    write_lines(file, [session, more])
    os.utime(file, (1.7e9, 1.7e9))
    home.take(CopilotChat(), tmp_path)
    assert [message["content"] for message in home.messages("copilot-chat-s1")] == ["Why?", "Because of two locks."]


@pytest.mark.parametrize(
    "change",
    [
        {"kind": 1, "k": ["requests", 10**9, "x"], "v": 1},
        {"kind": 1, "k": ["requests", 10**9], "v": 1},
        {"kind": 2, "k": ["sessionId"], "v": ["x"]},
        {"kind": 1, "k": [], "v": 1},
        {"kind": 1, "k": "requests", "v": 1},
        {"kind": 1, "k": [None, {}], "v": 1},
    ],
)
def test_a_change_that_does_not_fit_is_reported(home: Home, tmp_path: Path, change: dict[str, Any]) -> None:
    """With its line, and without filling the memory."""
    session = {"kind": 0, "v": {"sessionId": "s1", "requests": []}}
    write_lines(tmp_path / "chatSessions" / "s1.jsonl", [session, change])
    assert [problem.line for problem in home.take(CopilotChat(), tmp_path).problems] == [2]


def test_an_agent_file_that_is_text_inside_json_is_read(home: Home, tmp_path: Path) -> None:
    """Some versions of Letta write it so."""
    block = {"id": "block-0", "label": "human", "value": "Ann lives in Basel."}
    agent = {"name": "Evie", "block_ids": ["block-0", {}], "messages": []}
    inner = json.dumps({"agents": [agent], "blocks": [block], "tools": [{"source_code": "import os"}]})
    _write(tmp_path / "a.af", json.dumps(inner))
    assert home.take(Letta(), tmp_path / "a.af").messages == 1
    assert [note["content"] for note in home.messages("letta:notes-Evie")] == ["Ann lives in Basel."]


def test_a_page_of_messages_of_zep_is_a_session(home: Home, tmp_path: Path) -> None:
    """Threads of its API, with roles and times."""
    messages = [
        {"uuid": "m1", "role": "user", "name": "Ann", "content": "I moved.", "created_at": "2026-01-05T10:00:00Z"},
        {"uuid": "m2", "role": "assistant", "content": "Noted.", "created_at": "2026-01-05T10:00:05Z"},
    ]
    _write(tmp_path / "thread.json", json.dumps({"thread_id": "t1", "messages": messages}))
    home.take(Zep(), tmp_path / "thread.json")
    assert [(m["role"], m["content"]) for m in home.messages("zep-t1")] == [
        ("user", "I moved."),
        ("assistant", "Noted."),
    ]


def test_a_message_that_letta_code_wrote_again_is_imported_once(home: Home, tmp_path: Path) -> None:
    """The last line with its id counts, and what Letta Code added to the user's words does not."""
    directory = tmp_path / "conversations" / "c1"
    _write(directory / "conversation.json", json.dumps({"id": "default", "agent_id": "agent-local-1"}))
    parts = [
        {"type": "text", "text": "<system-reminder>\nIt is noon.\n</system-reminder>\n"},
        {"type": "text", "text": "What does <system-reminder> mean?"},
    ]
    lines: list[dict[str, Any]] = [
        {"type": "session", "id": "default", "cwd": "/shop"},
        {"type": "message", "id": "1", "message": {"id": "ui-msg-1", "role": "user", "content": parts}},
        {"type": "message", "id": "2", "message": {"id": "ui-msg-2", "role": "assistant", "content": "It"}},
        {"type": "message", "id": "3", "message": {"id": "ui-msg-2", "role": "assistant", "content": "It is a mark."}},
        {"type": "label", "id": "4"},
    ]
    write_lines(directory / "messages.jsonl", lines)
    summary = home.take(Letta(), tmp_path)
    assert (summary.messages, summary.problems) == (2, [])
    assert [(message["role"], message["content"]) for message in home.messages("letta-agent-local-1/default")] == [
        ("user", "What does <system-reminder> mean?"),
        ("assistant", "It is a mark."),
    ]
    assert Letta().resume_command("agent-local-1/default", None) == "letta --backend local --agent agent-local-1"
    assert Letta().resume_command("agent-local-1/local-conv-2", None).endswith("--conversation local-conv-2")
    assert Letta().resume_command("sam", None) == ""


def test_the_words_of_an_agent_that_speaks_with_a_tool_are_its_answer(home: Home, tmp_path: Path) -> None:
    """The text beside the call is a thought, what the server wrapped is unwrapped, and times decide about the order."""
    said = {"id": "c1", "function": {"name": "send_message", "arguments": json.dumps({"message": "At six."})}}
    asked = {"type": "user_message", "message": "When do you open?", "time": "noon"}
    looked = {"id": "c2", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "assistant", "content": "I know it.", "tool_calls": [said], "created_at": "2026-11-17T10:00:03Z"},
        {"role": "tool", "name": "send_message", "content": "{}", "created_at": "2026-11-17T10:00:04Z"},
        {"role": "user", "content": '{"type": "heartbeat"}', "created_at": "2026-11-17T10:00:05Z"},
        {"role": "user", "content": json.dumps(asked), "created_at": "2026-11-17T10:00:00Z"},
        {"role": "assistant", "content": "", "tool_calls": [looked], "created_at": "2026-11-17T10:00:01Z"},
        {
            "role": "tool",
            "name": "look",
            "tool_call_id": "c2",
            "content": json.dumps({"status": "OK", "message": "a sign: 6", "time": "noon"}),
            "created_at": "2026-11-17T10:00:02Z",
        },
        {
            "role": "user",
            "content": json.dumps({"type": "system_alert", "message": "A summary: the bakery opens at six."}),
            "created_at": "2026-11-17T10:00:06Z",
        },
    ]
    _write(tmp_path / "a.af", json.dumps({"agents": [{"name": "sam", "messages": messages}], "blocks": []}))
    summary = home.take(Letta(), tmp_path / "a.af")
    found = home.messages("letta-sam")
    assert [(m["role"], m["content"] or m.get("reasoning") or "call", bool(m.get("is_summary"))) for m in found] == [
        ("user", "When do you open?", False),
        ("assistant", "call", False),
        ("tool", "a sign: 6", False),
        ("assistant", "I know it.", False),
        ("assistant", "At six.", False),
        ("user", "A summary: the bakery opens at six.", True),
    ]
    assert summary.skipped == {"result of send_message": 1, "event of the server": 1}


def test_a_page_of_messages_of_letta_may_begin_with_the_latest(home: Home, tmp_path: Path) -> None:
    """The session has the name of the file, and the messages are in the order of their times."""
    page = [
        {"id": "m3", "date": "2026-11-17T10:00:02Z", "message_type": "approval_request_message"},
        {"id": "m2", "date": "2026-11-17T10:00:01Z", "message_type": "assistant_message", "content": "At six."},
        {"id": "m1", "date": "2026-11-17T10:00:00Z", "message_type": "user_message", "content": "When?"},
    ]
    _write(tmp_path / "sam.json", json.dumps(page))
    assert home.take(Letta(), tmp_path / "sam.json").skipped == {"message without text: approval_request_message": 1}
    assert [message["content"] for message in home.messages("letta-sam")] == ["When?", "At six."]
