"""Exports of ChatGPT and Claude and databases of Hermes of any size, made up from a fixed seed in their own formats."""

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


def _name(dice: random.Random) -> str:
    return f"{dice.getrandbits(32):08x}-0000-4000-8000-{dice.getrandbits(48):012x}"


def _chatgpt(dice: random.Random, said: list[Turn], at: float) -> dict[str, Any]:
    """A conversation; one question in ten was asked again, so that it has branches."""
    parent = _name(dice)
    mapping: dict[str, Any] = {parent: {"id": parent, "parent": None, "children": [], "message": None}}
    for turn in said:
        for who, text, call in turn:
            for _ in range(2 if dice.random() < 0.1 else 1):
                name, at = _name(dice), at + 7.5
                message = {"id": name, "author": {"role": who, "name": "python" if call else None}, "create_time": at,
                           "content": {"content_type": "text", "parts": [text]}, "metadata": {"model_slug": "gpt-5"},
                           "recipient": "all", "status": "finished_successfully", "weight": 1.0}  # fmt: skip
                mapping[name] = {"id": name, "parent": parent, "children": [], "message": message}
                mapping[parent]["children"].append(name)
            parent = name
    host_id = _name(dice)
    return {"title": said[0][0][1][:40], "create_time": at, "mapping": mapping, "current_node": parent,
            "conversation_id": host_id, "id": host_id}  # fmt: skip


def _claude(dice: random.Random, said: list[Turn], at: float) -> dict[str, Any]:
    messages = []
    for turn in said:
        for who, text, call in turn:
            blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
            if call:
                blocks = [{"type": "tool_use", "id": call, "name": "bash", "input": {"command": "rg"}},
                          {"type": "tool_result", "tool_use_id": call, "name": "bash", "content": blocks}]  # fmt: skip
            messages.append({"uuid": _name(dice), "text": text, "content": blocks, "created_at": at, "attachments": [],
                             "sender": "human" if who == "user" else "assistant", "files": []})  # fmt: skip
            at += 7.5
    return {"uuid": _name(dice), "name": said[0][0][1][:40], "created_at": at, "chat_messages": messages}


def _archive(make: Callable[[random.Random, list[Turn], float], dict[str, Any]], directory: Path, size: int) -> None:
    """One zip archive with a list of conversations of about so many bytes."""
    directory.mkdir(parents=True, exist_ok=True)
    with (
        zipfile.ZipFile(directory / "export.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("conversations.json", "w", force_zip64=True) as member,
    ):
        written = member.write(b"[")
        for number, (dice, said, at) in enumerate(_talks()):
            if written >= size:
                break
            text = json.dumps(make(dice, said, at), ensure_ascii=False)
            written += member.write(f"{',' if number else ''}{text}".encode())
        member.write(b"]")


def _talks() -> Iterator[tuple[random.Random, list[Turn], float]]:
    dice, at = random.Random(7), _BEGIN
    while True:
        at += 3600.0
        yield dice, list(turns(dice)), at


def make_hermes(directory: Path, size: int) -> None:
    """A session database with the columns that matter, without the tables for search that Hermes has beside it."""
    directory.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(directory / "state.db")) as connection, connection:
        connection.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, started_at REAL,"
                           " parent_session_id TEXT, title TEXT, cwd TEXT)")  # fmt: skip
        connection.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT,"
                           " tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL, active INTEGER,"
                           " compacted INTEGER)")  # fmt: skip
        connection.execute("CREATE INDEX idx_messages_session ON messages(session_id, timestamp)")
        written = 0
        for dice, said, at in _talks():
            if written >= size:
                break
            name = _name(dice)
            connection.execute("INSERT INTO sessions VALUES (?, 'cli', 'm', ?, NULL, ?, '/code')",
                               (name, at, f"{said[0][0][1][:30]} {name[:6]}"))  # fmt: skip
            for number, (who, text, call) in enumerate(each for turn in said for each in turn):
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
