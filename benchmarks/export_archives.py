"""Generates exports of ChatGPT and Claude and databases of Hermes, of any size, from a fixed seed."""

import json
import random
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.agent_transcripts import MAKERS as OTHERS
from benchmarks.agent_transcripts import Turn, turns

_BEGIN = 1_767_225_600.0


def _name(rng: random.Random) -> str:
    return f"{rng.getrandbits(32):08x}-0000-4000-8000-{rng.getrandbits(48):012x}"


def _chatgpt(rng: random.Random, conversation: list[Turn], at: float) -> dict[str, Any]:
    """Generate a conversation; one message in ten was repeated, so that it has branches."""
    parent = _name(rng)
    mapping: dict[str, Any] = {parent: {"id": parent, "parent": None, "children": [], "message": None}}
    for turn in conversation:
        for who, text, call in turn:
            for _ in range(2 if rng.random() < 0.1 else 1):
                name, at = _name(rng), at + 7.5
                message = {"id": name, "author": {"role": who, "name": "python" if call else None}, "create_time": at,
                           "content": {"content_type": "text", "parts": [text]}, "metadata": {"model_slug": "gpt-5"},
                           "recipient": "all", "status": "finished_successfully", "weight": 1.0}  # fmt: skip
                mapping[name] = {"id": name, "parent": parent, "children": [], "message": message}
                mapping[parent]["children"].append(name)
            parent = name
    host_id = _name(rng)
    return {"title": conversation[0][0][1][:40], "create_time": at, "mapping": mapping, "current_node": parent,
            "conversation_id": host_id, "id": host_id}  # fmt: skip


def _claude(rng: random.Random, conversation: list[Turn], at: float) -> dict[str, Any]:
    messages = []
    for turn in conversation:
        for who, text, call in turn:
            blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
            if call:
                blocks = [{"type": "tool_use", "id": call, "name": "bash", "input": {"command": "rg"}},
                          {"type": "tool_result", "tool_use_id": call, "name": "bash", "content": blocks}]  # fmt: skip
            messages.append({"uuid": _name(rng), "text": text, "content": blocks, "created_at": at, "attachments": [],
                             "sender": "human" if who == "user" else "assistant", "files": []})  # fmt: skip
            at += 7.5
    return {"uuid": _name(rng), "name": conversation[0][0][1][:40], "created_at": at, "chat_messages": messages}


def _archive(make: Callable[[random.Random, list[Turn], float], dict[str, Any]], directory: Path, size: int) -> None:
    """Write one zip archive with a list of conversations of about `size` bytes."""
    directory.mkdir(parents=True, exist_ok=True)
    with (
        zipfile.ZipFile(directory / "export.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("conversations.json", "w", force_zip64=True) as member,
    ):
        written = member.write(b"[")
        for number, (rng, conversation, at) in enumerate(_conversations()):
            if written >= size:
                break
            text = json.dumps(make(rng, conversation, at), ensure_ascii=False)
            written += member.write(f"{',' if number else ''}{text}".encode())
        member.write(b"]")


def _conversations() -> Iterator[tuple[random.Random, list[Turn], float]]:
    rng, at = random.Random(7), _BEGIN
    while True:
        at += 3600.0
        yield rng, list(turns(rng)), at


def make_hermes(directory: Path, size: int) -> None:
    """Write a session database with the columns that matter, without the search tables of Hermes."""
    directory.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(directory / "state.db")) as connection, connection:
        connection.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, started_at REAL,"
                           " parent_session_id TEXT, title TEXT, cwd TEXT)")  # fmt: skip
        connection.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT,"
                           " tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL, active INTEGER,"
                           " compacted INTEGER)")  # fmt: skip
        connection.execute("CREATE INDEX idx_messages_session ON messages(session_id, timestamp)")
        written = 0
        for rng, conversation, at in _conversations():
            if written >= size:
                break
            name = _name(rng)
            connection.execute("INSERT INTO sessions VALUES (?, 'cli', 'm', ?, NULL, ?, '/code')",
                               (name, at, f"{conversation[0][0][1][:30]} {name[:6]}"))  # fmt: skip
            for number, (who, text, call) in enumerate(message for turn in conversation for message in turn):
                connection.execute(
                    "INSERT INTO messages VALUES (NULL, ?, ?, ?, ?, NULL, NULL, ?, 1, 0)",
                    (name, who, text, call or None, at + number * 7.5),
                )
                written += len(text) + 100


MAKERS: dict[str, Callable[[Path, int], None]] = {
    **OTHERS,
    "chatgpt": lambda directory, size: _archive(_chatgpt, directory, size),
    "claude": lambda directory, size: _archive(_claude, directory, size),
    "hermes": make_hermes,
}
