"""What the readers of chat programs and newer agents promise beyond the contract."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memoranda.importers.chat_apps.jan import Jan
from memoranda.importers.chat_apps.librechat import LibreChat
from memoranda.importers.chat_apps.llm import Llm
from memoranda.importers.chat_apps.lm_studio import LMStudio
from memoranda.importers.chat_apps.open_webui import OpenWebUI
from memoranda.importers.coding_agents.copilot_cli import CopilotCli
from memoranda.importers.coding_agents.goose import Goose
from memoranda.importers.coding_agents.opencode import OpenCode
from memoranda.importers.coding_agents.zed import Zed
from memoranda.importers.reader_protocol import ConversationReader
from tests.importers.import_home import Home, write_lines
from tests.importers.opencode_sessions import write_files
from tests.importers.samples import FOLDER, execute

pytestmark = pytest.mark.slow

Said = list[tuple[str, str]]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def _said(home: Home, session: str) -> Said:
    """What each message is: its text, its reasoning, the tool that it calls, or the result of one."""
    found: Said = []
    for message in home.messages(session):
        calls = [call["function"]["name"] for call in message.get("tool_calls") or ()]
        kind = "reasoning" if message.get("reasoning") else "call" if calls else message["role"]
        found.append((kind, message.get("reasoning") or "".join(calls) or message["content"]))
    return found


_LOOKED: Said = [("call", "read_file"), ("tool", "port = 8443")]
_THOUGHT = ("reasoning", "I should read the file.")


@pytest.mark.parametrize(
    ("reader", "session", "expected"),
    [
        (Zed(), "zed-0d6c5f1e-1111-4000-8000-000000000001", [_THOUGHT, ("assistant", "I will look."), *_LOOKED]),
        (LMStudio(), "lm-studio-1751393220000", [_THOUGHT, *_LOOKED, ("assistant", "Port 8443.")]),
        (LibreChat(), "librechat-7f2d6a10-3c55-4a0e-9a2c-5d1f0b9e2001", [_THOUGHT, ("assistant", "I will look.")]),
        (Jan(), "jan-01k1jan0000000000000000000", [*_LOOKED, _THOUGHT, ("assistant", "Port 8443.")]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_an_answer_keeps_its_order(
    home: Home, tmp_path: Path, reader: ConversationReader, session: str, expected: Said
) -> None:
    """Reasoning, words, calls of tools and their results follow each other as the model wrote them."""
    for file in (FOLDER / reader.name).rglob("*"):
        if file.is_file():
            copied = tmp_path / reader.name / file.relative_to(FOLDER / reader.name)
            copied.parent.mkdir(parents=True, exist_ok=True)
            copied.write_bytes(file.read_bytes())
            os.utime(copied, (1.7e9, 1.7e9))
    home.take(reader, tmp_path / reader.name)
    said = _said(home, session)
    assert said[0] == ("user", said[0][1])
    assert said[1 : 1 + len(expected)] == expected


def test_titles_models_and_directories_are_kept(home: Home) -> None:
    """As the programs recorded them."""
    for reader in (Goose(), CopilotCli(), Llm(), OpenWebUI()):
        home.take(reader, FOLDER / reader.name)
    found = home.everything()
    goose, copilot = found["goose-20261118_1"], found["copilot-cli-cdc7ff21-2b75-43fd-aec0-f74b51ed36b0"]
    llm, chat = found["llm-01m7pgpb7rbrzf40xs7wk9s11x"], found["open-webui-5f0c2f5e-8a53-4a52-9b0a-3f0a53a6c101"]
    assert (goose["title"], goose["model"], goose["directory"]) == ("gateway", "gpt-4o", "/home/ann/shop")
    assert (copilot["title"], copilot["model"], copilot["directory"]) == (
        "Which port does the gateway use?",
        "gpt-4o",
        "/home/ann/shop",
    )
    assert (llm["title"], llm["model"]) == ("The gateway listens on port 844…", "sample")
    assert (chat["title"], chat["model"]) == ("Gateway port", "llama3.2")


def test_programs_are_found_where_they_keep_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a path, in the directories of the user, and nowhere else."""
    monkeypatch.setenv("HOME", str(tmp_path))
    places: dict[ConversationReader, str] = {
        Llm(): ".config/io.datasette.llm/logs.db",
        OpenWebUI(): ".open-webui/webui.db",
        LibreChat(): "Downloads/Gateway port.json",
        Goose(): ".local/share/goose/sessions/sessions.db",
        Zed(): ".local/share/zed/threads/threads.db",
        CopilotCli(): ".copilot/session-state/cdc7ff21-2b75-43fd-aec0-f74b51ed36b0/events.jsonl",
        LMStudio(): ".lmstudio/conversations/folder/1751393220000.conversation.json",
        Jan(): ".local/share/Jan/data/threads/01k1jan0000000000000000000/messages.jsonl",
    }
    assert [list(reader.scan(None)) for reader in places] == [[]] * len(places)
    for reader, place in places.items():
        sample = next(file for file in (FOLDER / reader.name).rglob(Path(place).name))
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_bytes(sample.read_bytes())
        (tmp_path / "Downloads" / "other.json").parent.mkdir(exist_ok=True)
        (tmp_path / "Downloads" / "other.json").write_text("{}", "utf-8")
    assert [[item.file for item in reader.scan(None)] for reader in places] == [
        [tmp_path / place] for place in places.values()
    ]


def test_another_database_is_refused_by_name(home: Home, tmp_path: Path) -> None:
    """The report says that it is not one of the program."""
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE other (id)")
    for reader, program in ((Llm(), "llm"), (Goose(), "Goose"), (Zed(), "Zed"), (OpenWebUI(), "Open WebUI")):
        problems = home.take(reader, tmp_path / "other.db").problems
        assert [problem.text for problem in problems] == [f"not a database of {program}"]


def test_a_compressed_thread_of_zed_is_read(home: Home, tmp_path: Path) -> None:
    """Zed compresses its threads; a damaged one is reported, and the others are imported."""
    zstandard = pytest.importorskip("zstandard")
    file = tmp_path / "threads.db"
    file.write_bytes((FOLDER / "zed" / "threads.db").read_bytes())
    with closing(sqlite3.connect(file)) as connection, connection:
        for name, data in connection.execute("SELECT id, data FROM threads").fetchall():
            packed = zstandard.ZstdCompressor().compress(data)
            connection.execute("UPDATE threads SET data_type = 'zstd', data = ? WHERE id = ?", (packed, name))
        connection.execute("UPDATE threads SET data = substr(data, 1, 20) WHERE id LIKE '%2'")
    summary = home.take(Zed(), tmp_path)
    assert (summary.messages, len(summary.problems)) == (8, 1)


def test_files_of_an_older_goose_are_read_where_there_is_no_database(home: Home, tmp_path: Path) -> None:
    """The first line describes the session; Goose puts these files into its database later."""
    request = {"type": "toolRequest", "id": "c1", "toolCall": {"status": "success", "value": {"name": "shell"}}}
    result = {"type": "toolResponse", "id": "c1", "toolResult": {"status": "success", "value": [_text("8443")]}}
    lines: list[dict[str, Any]] = [
        {"working_dir": "/shop", "description": "Gateway port", "message_count": 3},
        {"role": "user", "created": 1750000000, "content": [_text("Which port?")]},
        {"role": "assistant", "created": 1750000001, "content": [request]},
        {"role": "user", "created": 1750000002, "content": [result]},
    ]
    write_lines(tmp_path / "sessions" / "20250615_150000.jsonl", lines)
    home.take(Goose(), tmp_path / "sessions")
    session = home.everything()["goose-20250615_150000"]
    assert (session["title"], session["directory"], session["started_at"]) == ("Gateway port", "/shop", 1750000000)
    assert _said(home, "goose-20250615_150000") == [("user", "Which port?"), ("call", "shell"), ("tool", "8443")]


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def test_an_older_open_webui_writes_reasoning_and_calls_as_html(home: Home, tmp_path: Path) -> None:
    """They are taken out of the answer; an export has the same chats as the database."""
    content = (
        '<details type="reasoning" done="true" duration="2">\n<summary>Thought for 2 seconds</summary>\n'
        "&gt; I should read the file.\n</details>\n"
        '<details type="tool_calls" done="true" id="c1" name="read_file" arguments="{&quot;path&quot;: &quot;a&quot;}"'
        ' result="port = 8443" files="">\n<summary>Tool Executed</summary>\n</details>\nPort 8443.'
    )
    messages = {
        "m1": {"role": "user", "content": "Which port?", "parentId": None, "timestamp": 1750000000},
        "m2": {"role": "assistant", "content": content, "parentId": "m1", "timestamp": 1750000001, "model": "llama3.2"},
    }
    chat = {"id": "chat-1", "title": "Port", "chat": {"history": {"messages": messages, "currentId": "m2"}}}
    (tmp_path / "chat-export-1.json").write_text(json.dumps([chat]), "utf-8")
    home.take(OpenWebUI(), tmp_path)
    assert _said(home, "open-webui-chat-1") == [
        ("user", "Which port?"), _THOUGHT, *_LOOKED, ("assistant", "Port 8443.")
    ]  # fmt: skip


def test_an_answer_that_is_still_written_waits_for_the_next_import(home: Home, tmp_path: Path) -> None:
    """The record keeps the first version of a message, which must not be half of it."""
    file = tmp_path / "webui.db"
    file.write_bytes((FOLDER / "open-webui" / "webui.db").read_bytes())
    execute(
        file,
        "UPDATE chat SET updated_at = unixepoch(), chat ="
        " json_set(chat, '$.history.messages.\"00000000-0000-4000-8000-000000000005\".done', json('false'))",
    )
    summary = home.take(OpenWebUI(), tmp_path)
    assert summary.skipped == {"answer that may still be written": 1}
    execute(file, "UPDATE chat SET updated_at = 1700000000")
    assert home.take(OpenWebUI(), tmp_path).messages == 1


def test_what_a_sub_agent_of_copilot_said_is_a_session_of_its_own(home: Home, tmp_path: Path) -> None:
    """Delegated by the session that it worked for."""
    lines = [
        {"type": "user.message", "id": "e1", "data": {"content": "Fix it."}},
        {"type": "assistant.message", "id": "e2", "data": {"content": "Done below.", "parentToolCallId": "c1"}},
        {"type": "user.message", "id": "e3", "data": {"content": "A skill's text.", "source": "skill-pdf"}},
        {"type": "assistant.message", "id": "e4", "data": {"content": "Done."}},
    ]
    write_lines(tmp_path / "session-state" / "s1" / "events.jsonl", lines)
    summary = home.take(CopilotCli(), tmp_path)
    assert summary.skipped == {"text that Copilot added to a prompt": 1}
    assert _said(home, "copilot-cli-s1") == [("user", "Fix it."), ("assistant", "Done.")]
    assert _said(home, "copilot-cli-s1/c1") == [("assistant", "Done below.")]
    assert home.everything()["copilot-cli-s1/c1"]["parent_session_id"] == "copilot-cli-s1"


def test_a_link_in_place_of_a_title_is_not_read(home: Home, tmp_path: Path) -> None:
    """A file beside a conversation may lead out of the folder, to something private, just as the conversation may."""
    secret = tmp_path / "secret.yaml"
    secret.write_text("name: a private name\n", "utf-8")
    session = write_lines(
        tmp_path / "shared" / "s1" / "events.jsonl", [{"type": "user.message", "id": "e1", "data": {"content": "Hi."}}]
    ).parent
    (session / "workspace.yaml").symlink_to(secret)
    home.take(CopilotCli(), tmp_path / "shared")
    assert home.everything()["copilot-cli-s1"]["title"] is None
    (session / "workspace.yaml").unlink()
    (session / "named.yaml").write_text("name: Greeting\n", "utf-8")
    (session / "workspace.yaml").symlink_to("named.yaml")
    home.take(CopilotCli(), tmp_path / "shared", rescan=True)
    assert home.everything()["copilot-cli-s1"]["title"] == "Greeting"


def test_links_to_messages_outside_of_a_folder_are_not_read(home: Home, tmp_path: Path) -> None:
    """Older versions of OpenCode have a file for each part of a message."""
    shared, outside = write_files(tmp_path / "shared"), tmp_path / "outside"
    (shared / "storage" / "part").rename(outside)
    (shared / "storage" / "part").symlink_to(outside, target_is_directory=True)
    summary = home.take(OpenCode(), shared)
    assert (summary.messages, summary.problems) == (0, [])
