"""Sessions as OpenCode keeps them: in a database, in files, and in the files of its first versions."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

SESSION = "ses_e2185a6d4ffe1eF4mtmpCDT8WD"
AGENT = "ses_e2180a6d4ffe1eF4mtmpCDT8WE"
DIRECTORY = "/home/ann/shop"
NOW = 1772445600000
Info = dict[str, Any]

_TOOL = {
    "type": "tool",
    "tool": "bash",
    "callID": "call_5",
    "state": {
        "status": "completed",
        "input": {"command": "rg -n lock src"},
        "output": "src/order.py:12: with lock:",
        "title": "rg -n lock src",
        "time": {"start": NOW + 2100, "end": NOW + 2200},
    },
}
_FAILED = {
    "type": "tool",
    "tool": "edit",
    "callID": "call_6",
    "state": {"status": "error", "input": {"filePath": "x"}, "error": "File not found", "time": {"start": NOW + 2300}},
}
ASKED: tuple[Info, list[Info]] = (
    {"role": "user", "time": {"created": NOW + 1000}, "agent": "build"},
    [
        {"type": "text", "text": "Why does checkout deadlock?"},
        {"type": "text", "text": "Called the Read tool ...", "synthetic": True},
        {"type": "file", "mime": "text/plain", "filename": "order.py", "url": "file:///home/ann/shop/order.py"},
    ],
)
ANSWERED: tuple[Info, list[Info]] = (
    {
        "role": "assistant",
        "modelID": "claude-sonnet-4-5",
        "providerID": "anthropic",
        "path": {"cwd": DIRECTORY, "root": DIRECTORY},
        "time": {"created": NOW + 2000, "completed": NOW + 3000},
    },
    [
        {"type": "step-start", "snapshot": "4b825dc"},
        {"type": "reasoning", "text": "Their order may differ.", "time": {"start": NOW + 2000, "end": NOW + 2050}},
        {"type": "text", "text": "I look at the locks.", "time": {"start": NOW + 2060, "end": NOW + 2090}},
        _TOOL,
        _FAILED,
        {"type": "step-finish", "reason": "stop", "cost": 0},
    ],
)
LAST: tuple[Info, list[Info]] = (
    {"role": "assistant", "modelID": "claude-sonnet-4-5", "time": {"created": NOW + 4000, "completed": NOW + 5000}},
    [{"type": "text", "text": "现在好了.", "time": {"start": NOW + 4000, "end": NOW + 4900}}],
)
UNFINISHED: tuple[Info, list[Info]] = (
    {"role": "assistant", "modelID": "claude-sonnet-4-5", "time": {"created": NOW + 6000}},
    [
        {"type": "text", "text": "It is also", "time": {"start": NOW + 6000}},
        {"type": "tool", "tool": "bash", "callID": "call_9", "state": {"status": "running", "input": {}}},
    ],
)
TALK = [ASKED, ANSWERED, LAST]
# What of it is to be found in the record.
WORDS = [
    ("user", "Why does checkout deadlock?"),
    ("system", "[order.py: text/plain, not imported]"),
    ("assistant", ""),
    ("assistant", "I look at the locks."),
    ("assistant", ""),
    ("tool", "src/order.py:12: with lock:"),
    ("assistant", ""),
    ("tool", "File not found"),
    ("assistant", "现在好了."),
]


def names(number: int, parts: list[Info], session: str = SESSION) -> tuple[str, list[str]]:
    """The ids of a message and its parts, which grow with the time."""
    message = f"msg_{number:04}{session[-6:]}"
    return message, [f"prt_{number:04}{each:03}{session[-6:]}" for each in range(len(parts))]


_TABLES = """
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL,
    directory text NOT NULL, title text NOT NULL, version text NOT NULL, time_created integer NOT NULL,
    time_updated integer NOT NULL);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
    time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL, seq integer NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
"""


def begin_database(home: Path) -> sqlite3.Connection:
    """The database of an OpenCode that is running: what it wrote last is in the write-ahead log."""
    home.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(home / "opencode.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(_TABLES)
    return connection


def add_session(
    connection: sqlite3.Connection, talk: list[tuple[Info, list[Info]]], *, session: str = SESSION,
    parent: str | None = None, updated: int = NOW,
) -> None:  # fmt: skip
    row = (session, "global", parent, "nimble-island", DIRECTORY, "Deadlock in checkout", "1.18.33", NOW, updated)
    connection.execute("INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    for number, (info, parts) in enumerate(talk):
        message, own = names(number, parts, session)
        values = (message, session, NOW, NOW, json.dumps(info))
        connection.execute("INSERT OR REPLACE INTO message VALUES (?, ?, ?, ?, ?)", values)
        for name, part in zip(own, parts, strict=True):
            row = (name, message, session, NOW, NOW, json.dumps(part))  # type: ignore[assignment]
            connection.execute("INSERT OR REPLACE INTO part VALUES (?, ?, ?, ?, ?, ?)", row)


def write_database(home: Path, talk: list[tuple[Info, list[Info]]] | None = None) -> Path:
    """The database of an OpenCode that has ended."""
    with closing(begin_database(home)) as connection:
        add_session(connection, TALK if talk is None else talk)
    return home


def _write(file: Path, value: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value, indent=2), "utf-8")


def _info(directory: bool = True) -> Info:
    about: Info = {"id": SESSION, "version": "1.0.98", "title": "Deadlock in checkout", "time": {"created": NOW}}
    return {**about, "projectID": "global", "directory": DIRECTORY} if directory else about


def write_files(home: Path) -> Path:
    """The files of 0.6 to 1.1."""
    storage = home / "storage"
    _write(storage / "session" / "global" / f"{SESSION}.json", _info())
    for number, (info, parts) in enumerate(TALK):
        message, own = names(number, parts)
        _write(storage / "message" / SESSION / f"{message}.json", {"id": message, "sessionID": SESSION, **info})
        for name, part in zip(own, parts, strict=True):
            _write(storage / "part" / message / f"{name}.json", {"id": name, "messageID": message, **part})
    return home


def write_early_files(home: Path) -> Path:
    """The files of 0.3 to 0.5: a folder for each project, and a level more for the parts."""
    storage = home / "project" / "home-ann-shop" / "storage" / "session"
    _write(storage / "info" / f"{SESSION}.json", _info(directory=False))
    for number, (info, parts) in enumerate(TALK):
        message, own = names(number, parts)
        _write(storage / "message" / SESSION / f"{message}.json", {"id": message, **info})
        for name, part in zip(own, parts, strict=True):
            _write(storage / "part" / SESSION / message / f"{name}.json", {"id": name, **part})
    return home


def write_first_files(home: Path) -> Path:
    """The files of the first versions: parts and times are inside the messages."""
    storage = home / "project" / "home-ann-shop" / "storage" / "session"
    _write(storage / "info" / f"{SESSION}.json", _info(directory=False))
    call = {"state": "result", "toolCallId": "c1", "toolName": "bash", "args": {"command": "rg"}, "result": "order.py"}
    told = {"modelID": "claude-sonnet-4", "path": {"cwd": DIRECTORY}}
    messages: list[Info] = [
        {
            "role": "user",
            "parts": [{"type": "text", "text": "Why does checkout deadlock?"}],
            "metadata": {"time": {"created": NOW + 1000}},
        },
        {
            "role": "assistant",
            "parts": [{"type": "tool-invocation", "toolInvocation": call}, {"type": "text", "text": "现在好了."}],
            "metadata": {"time": {"created": NOW + 2000, "completed": NOW + 3000}, "assistant": told},
        },
    ]
    for number, message in enumerate(messages):
        name = f"msg_{number}"
        _write(storage / "message" / SESSION / f"{name}.json", {"id": name, **message})
    return home


NEWER: list[tuple[str, Info]] = [
    ("user", {"text": "Why does checkout deadlock?", "time": {"created": NOW + 1000}}),
    ("synthetic", {"text": "Be brief.", "time": {"created": NOW + 1001}}),
    ("model-switched", {"model": {"id": "claude-sonnet-5"}, "time": {"created": NOW + 1002}}),
    (
        "assistant",
        {
            "model": {"id": "claude-sonnet-5", "providerID": "anthropic"},
            "time": {"created": NOW + 2000, "completed": NOW + 3000},
            "content": [
                {"type": "reasoning", "id": "r1", "text": "Their order may differ."},
                {"type": "text", "id": "t1", "text": "I look at the locks."},
                {
                    "type": "tool",
                    "id": "call_1",
                    "name": "bash",
                    "time": {"created": NOW + 2100, "completed": NOW + 2200},
                    "state": {
                        "status": "completed",
                        "input": {"command": "rg"},
                        "structured": {},
                        "content": [{"type": "text", "text": "order.py"}],
                    },
                },
            ],
        },
    ),
    ("shell", {"callID": "sh1", "command": "git status", "output": "clean", "time": {"created": NOW + 3500}}),
    ("compaction", {"reason": "auto", "summary": "The locks.", "recent": "", "time": {"created": NOW + 4000}}),
]


def add_newer(connection: sqlite3.Connection) -> None:
    """A session whose messages are rows of their own."""
    add_session(connection, [])
    for seq, (kind, data) in enumerate(NEWER):
        row = (f"msg_{seq}", SESSION, kind, seq, NOW, NOW, json.dumps(data))
        connection.execute("INSERT INTO session_message VALUES (?, ?, ?, ?, ?, ?, ?)", row)
