"""Conversations as Cursor stores them, made up from what is publicly known about its databases."""

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.importers.import_home import write_lines

COMPOSER = "95d1fba7-8182-47e9-b02e-51331624eca3"
TAB = "5a7c2b90-8182-47e9-b02e-51331624eca3"
AGENT = "ac437fdf-3e7e-4a54-98a4-7bb04fd3efc6"
DIRECTORY = "/home/ann/my shop"
NOW = 1772445600000
Value = dict[str, Any]

BUBBLES: list[Value] = [
    {
        "_v": 3,
        "type": 1,
        "bubbleId": "b-1",
        "text": "Why does checkout deadlock?",
        "createdAt": "2026-03-02T10:00:01.000Z",
        "modelInfo": {"modelName": "claude-4.5-sonnet-thinking"},
    },
    {"_v": 3, "type": 2, "bubbleId": "b-2", "text": "", "thinking": {"text": "Their order may differ."}},
    {"_v": 3, "type": 2, "bubbleId": "b-3", "text": "I look at the locks."},
    {
        "_v": 3,
        "type": 2,
        "bubbleId": "b-4",
        "text": "",
        "capabilityType": 15,
        "toolFormerData": {
            "tool": 3,
            "name": "grep_search",
            "toolCallId": "toolu_1",
            "status": "completed",
            "rawArgs": '{"query":"lock"}',
            "result": '{"matches":["src/order.py:12"]}',
        },
    },
    {"_v": 3, "type": 2, "bubbleId": "b-5", "text": ""},
    {"_v": 3, "type": 2, "bubbleId": "b-6", "text": "现在好了.", "timingInfo": {"clientStartTime": NOW + 9000}},
]
WORDS = [
    ("user", "Why does checkout deadlock?"),
    ("assistant", ""),
    ("assistant", "I look at the locks."),
    ("assistant", ""),
    ("tool", '{"matches":["src/order.py:12"]}'),
    ("assistant", "现在好了."),
]


def composer(bubbles: list[Value], **more: Any) -> Value:
    """Return the editor's description of a conversation."""
    headers = [{"bubbleId": each["bubbleId"], "type": each["type"]} for each in bubbles]
    about = {"_v": 10, "composerId": COMPOSER, "name": "Deadlock in checkout", "createdAt": NOW, "lastUpdatedAt": NOW}
    modes = {"unifiedMode": "agent", "modelConfig": {"modelName": "default"}, "status": "completed"}
    return {**about, **modes, "fullConversationHeadersOnly": headers, **more}


def put(database: Path, table: str, values: dict[str, Any]) -> None:
    """Write values into one of the editor's databases."""
    database.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(database)) as connection, connection:
        for name in ("ItemTable", "cursorDiskKV"):
            connection.execute(f"CREATE TABLE IF NOT EXISTS {name} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        for key, value in values.items():
            text = value if isinstance(value, str) else json.dumps(value)
            connection.execute(f"INSERT INTO {table} VALUES (?, ?)", (key, text))


def global_database(user: Path) -> Path:
    return user / "globalStorage" / "state.vscdb"


def write_workspace(user: Path, values: dict[str, Any]) -> Path:
    """Write a workspace, which names its directory."""
    database = user / "workspaceStorage" / "0a1b2c" / "state.vscdb"
    put(database, "ItemTable", values)
    address = "file:///home/ann/my%20shop"
    (database.parent / "workspace.json").write_text(json.dumps({"folder": address}), "utf-8")
    return user


def write_editor(user: Path, **more: Any) -> Path:
    """Write the databases of the current editor: bubbles have their own keys in the global database."""
    bubbles = {f"bubbleId:{COMPOSER}:{each['bubbleId']}": each for each in BUBBLES}
    empty = {"composerData:draft": {"composerId": "draft", "fullConversationHeadersOnly": []}}
    put(
        global_database(user),
        "cursorDiskKV",
        {f"composerData:{COMPOSER}": composer(BUBBLES, **more), **bubbles, **empty},
    )
    return write_workspace(user, {"composer.composerData": {"allComposers": [{"composerId": COMPOSER}]}})


def write_editor_of_2024(user: Path) -> Path:
    """Bubbles inside the conversation, in the global database."""
    data = composer([], conversation=BUBBLES)
    put(global_database(user), "cursorDiskKV", {f"composerData:{COMPOSER}": data})
    return write_workspace(user, {"composer.composerData": {"allComposers": [{"composerId": COMPOSER}]}})


def write_first_composers(user: Path) -> Path:
    """Bubbles inside the conversation, in the workspace's database."""
    return write_workspace(user, {"composer.composerData": {"allComposers": [composer([], conversation=BUBBLES)]}})


def write_tabs(user: Path) -> Path:
    """The chat panel of the first versions."""
    bubbles = [
        {"type": "user", "id": "1", "text": "Why does checkout deadlock?"},
        {"type": "ai", "id": "2", "rawText": "现在好了.", "modelType": "gpt-4o"},
    ]
    tab = {"tabId": TAB, "chatTitle": "Deadlock", "bubbles": bubbles, "lastSendTime": NOW}
    return write_workspace(user, {"workbench.panel.aichat.view.aichat.chatdata": {"tabs": [tab]}})


def _text(role: str, text: str) -> Value:
    return {"role": role, "content": [{"type": "text", "text": text}]}


CALL = {"type": "tool-call", "toolCallId": "toolu_1", "toolName": "Grep", "args": {"pattern": "lock"}}
RESULT = {"type": "tool-result", "toolCallId": "toolu_1", "toolName": "Grep", "result": "src/order.py:12"}
MESSAGES: list[Value] = [
    {"role": "system", "content": "You are a coding agent."},
    _text("user", f"<user_info>\nOS Version: linux\nWorkspace Path: {DIRECTORY}\n</user_info>"),
    _text("user", "<user_query>\nWhy does checkout deadlock?\n</user_query>"),
    {
        "role": "assistant",
        "content": [{"type": "reasoning", "text": "Their order."}, {"type": "text", "text": "I look."}, CALL],
    },
    {"role": "tool", "content": [RESULT]},
    _text("user", "<user_query>\ncontinue\n</user_query>"),
    _text("user", "<user_query>\ncontinue\n</user_query>"),
    _text("assistant", "现在好了."),
]
SAID_TO_AGENT = [
    ("user", "Why does checkout deadlock?"),
    ("assistant", ""),
    ("assistant", "I look."),
    ("assistant", ""),
    ("tool", "src/order.py:12"),
    ("user", "continue"),
    ("user", "continue"),
    ("assistant", "现在好了."),
]


def write_agent(cursor: Path, agent: str = AGENT, *, forgotten: int = 0) -> Path:
    """Write a conversation of the command line; the first `forgotten` messages are no longer in its list."""
    store = cursor / "chats" / hashlib.md5(DIRECTORY.encode()).hexdigest() / agent / "store.db"
    store.parent.mkdir(parents=True, exist_ok=True)
    blobs = [json.dumps(each).encode() for each in MESSAGES]
    digests = [hashlib.sha256(blob).digest() for blob in blobs]
    root = b"".join(b"\x0a\x20" + digest for digest in digests[forgotten:]) + b"\x10\x96\x01" + b"\x1a\x02ok"
    meta = {
        "agentId": agent,
        "latestRootBlobId": hashlib.sha256(root).hexdigest(),
        "name": "Deadlock",
        "createdAt": NOW,
    }
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("CREATE TABLE IF NOT EXISTS blobs (id TEXT PRIMARY KEY, data BLOB)")
        connection.execute("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT)")
        for blob in (*blobs, root):
            connection.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (hashlib.sha256(blob).hexdigest(), blob))
        value = json.dumps({**meta, "lastUsedModel": "gpt-5.2"}).encode().hex()
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('0', ?)", (value,))
    return cursor


TRANSCRIPT: list[Value] = [
    {"role": "user", "message": {"content": [{"type": "text", "text": "<user_query>\nWhy?\n</user_query>"}]}},
    {
        "role": "assistant",
        "message": {
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "name": "Grep", "input": {"pattern": "lock"}},
            ]
        },
    },
]
PLAIN = "user:\n<user_query>\nWhy?\n</user_query>\n\nassistant:\n[Thinking] Hm.\nI look.\n\nuser:\nThanks\n"


def write_transcript(cursor: Path, name: str = AGENT, lines: list[Value] | None = None) -> Path:
    folder = cursor / "projects" / "home-ann-my-shop" / "agent-transcripts"
    write_lines(folder / f"{name}.jsonl", TRANSCRIPT if lines is None else lines)
    return cursor
