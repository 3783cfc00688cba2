"""Generates sessions of Codex, Gemini CLI, OpenCode and Cursor in their own formats, of any size, from a fixed seed."""

import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.transcripts import MAKERS as OTHERS
from benchmarks.transcripts import output, prose

_BEGIN = 1_767_225_600_000
_TURNS = 40
Turn = list[tuple[str, str, str]]


def turns(rng: random.Random) -> Iterator[Turn]:
    """Generate the turns of a session: for each message its role, its text and, for a tool result, the call id."""
    for _ in range(rng.randrange(3, _TURNS)):
        turn = [("user", prose(rng, rng.randrange(5, 60)), "")]
        turn += [("tool", output(rng), f"call_{rng.getrandbits(64):x}") for _ in range(rng.randrange(0, 5))]
        yield [*turn, ("assistant", prose(rng, rng.randrange(20, 200)), "")]


def _format_timestamp(at: int) -> str:
    seconds, rest = divmod(at - _BEGIN, 1000)
    days, seconds = divmod(seconds, 86_400)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:03}Z"
    return f"2026-{1 + days // 28 % 12:02}-{1 + days % 28:02}T{clock}"


def _write_files(size: int, make: Callable[[random.Random, str], tuple[Path, str]], directory: Path) -> None:
    """Write files until they have `size` bytes together."""
    rng, written = random.Random(7), 0
    while written < size:
        name = f"{rng.getrandbits(32):08x}-0000-7000-8000-{rng.getrandbits(48):012x}"
        path, text = make(rng, name)
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        written += file.write_bytes(text.encode())


def _lines(values: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


def _codex(rng: random.Random, name: str) -> tuple[Path, str]:
    at = _BEGIN + rng.randrange(2_000_000_000)
    meta = {
        "id": name,
        "timestamp": _format_timestamp(at),
        "cwd": "/home/someone/projects/service",
        "cli_version": "0.166.0",
    }
    payloads: list[tuple[str, dict[str, Any]]] = [("session_meta", meta), ("turn_context", {"model": "gpt-5.2-codex"})]
    for turn in turns(rng):
        for who, text, call in turn:
            if call:
                call_payload = {
                    "type": "function_call",
                    "name": "exec_command",
                    "arguments": '{"cmd": "rg"}',
                    "call_id": call,
                }
                payloads.append(("response_item", call_payload))
                result = {"type": "function_call_output", "call_id": call, "output": text}
                payloads.append(("response_item", result))
            else:
                part = {"type": "output_text" if who == "assistant" else "input_text", "text": text}
                payloads.append(("response_item", {"type": "message", "role": who, "content": [part]}))
            payloads.append(("event_msg", {"type": "token_count", "info": {"total_token_usage": {"input_tokens": 9}}}))
    stamped = [
        {"timestamp": _format_timestamp(at + number), "type": kind, "payload": payload}
        for number, (kind, payload) in enumerate(payloads)
    ]
    return Path("sessions", "2026", "01", name[:2], f"rollout-2026-01-01T00-00-00-{name}.jsonl"), _lines(stamped)


def _gemini(rng: random.Random, name: str) -> tuple[Path, str]:
    at = _BEGIN + rng.randrange(2_000_000_000)
    records: list[dict[str, Any]] = [
        {"sessionId": name, "projectHash": "0", "startTime": _format_timestamp(at), "kind": "main"}
    ]
    for turn in turns(rng):
        for number, (who, text, call) in enumerate(turn):
            fields = {"id": f"{name}-{len(records)}", "timestamp": _format_timestamp(at + len(records) * 1000 + number)}
            if call:
                response = {"functionResponse": {"id": call, "name": "read_file", "response": {"output": text}}}
                call_record = {
                    "id": call,
                    "name": "read_file",
                    "args": {"path": "x"},
                    "result": [response],
                    "status": "success",
                }
                records.append({**fields, "type": "gemini", "content": "", "toolCalls": [call_record]})
            else:
                kind = "gemini" if who == "assistant" else "user"
                records.append({**fields, "type": kind, "content": text, "model": "gemini-3.8-flash"})
            records.append({"$set": {"lastUpdated": fields["timestamp"]}})
    return Path("tmp", f"project-{name[:1]}", "chats", f"session-2026-01-01T00-00-{name}.jsonl"), _lines(records)


def make_opencode(directory: Path, size: int) -> None:
    """Write a database of OpenCode 1.18."""
    rng, written = random.Random(7), 0
    directory.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(directory / "opencode.db")) as connection, connection:
        connection.execute(
            "CREATE TABLE session (id, parent_id, directory, title, version, time_created, time_updated)"
        )
        connection.execute("CREATE TABLE message (id PRIMARY KEY, session_id, data)")
        connection.execute("CREATE TABLE part (id PRIMARY KEY, message_id, session_id, data)")
        for table, column in (("message", "session_id"), ("part", "session_id"), ("part", "message_id")):
            connection.execute(f"CREATE INDEX {table}_{column} ON {table}({column})")
        while written < size:
            name, at = f"ses_{rng.getrandbits(64):016x}", _BEGIN + rng.randrange(2_000_000_000)
            row = (name, None, "/home/someone/projects/service", f"Session {name}", "1.18.33", at, at)
            connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            for number, (who, text, call) in enumerate(message for turn in turns(rng) for message in turn):
                message = f"msg_{name[4:]}{number:06}"
                time = {"created": at + number, "completed": at + number}
                info = {"role": "user" if who == "user" else "assistant", "modelID": "test", "time": time}
                state = {"status": "completed", "input": {"command": "rg"}, "output": text}
                part = {"type": "tool", "tool": "bash", "callID": call, "state": state} if call else {"type": "text"}
                data = json.dumps({**part, **({} if call else {"text": text})}, ensure_ascii=False)
                connection.execute("INSERT INTO message VALUES (?, ?, ?)", (message, name, json.dumps(info)))
                connection.execute("INSERT INTO part VALUES (?, ?, ?, ?)", (f"prt{message[3:]}", message, name, data))
                written += len(data)


def make_cursor(directory: Path, size: int) -> None:
    """Write the global database of Cursor's editor."""
    rng, written = random.Random(7), 0
    folder = directory / "globalStorage"
    folder.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(folder / "state.vscdb")) as connection, connection:
        connection.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        while written < size:
            name, at = f"{rng.getrandbits(64):016x}", _BEGIN + rng.randrange(2_000_000_000)
            headers = []
            for number, (who, text, call) in enumerate(message for turn in turns(rng) for message in turn):
                bubble: dict[str, Any] = {"type": 1 if who == "user" else 2, "bubbleId": f"{name}-{number}"}
                tool = {"name": "read_file", "toolCallId": call, "status": "completed", "rawArgs": "{}", "result": text}
                bubble |= {"text": "", "toolFormerData": tool} if call else {"text": text}
                headers.append({"bubbleId": bubble["bubbleId"], "type": bubble["type"]})
                value = json.dumps(bubble, ensure_ascii=False)
                connection.execute(
                    "INSERT INTO cursorDiskKV VALUES (?, ?)", (f"bubbleId:{name}:{name}-{number}", value)
                )
                written += len(value)
            composer = {
                "composerId": name,
                "createdAt": at,
                "lastUpdatedAt": at,
                "fullConversationHeadersOnly": headers,
            }
            connection.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (f"composerData:{name}", json.dumps(composer)))


MAKERS: dict[str, Callable[[Path, int], None]] = {
    **OTHERS,
    "codex": lambda directory, size: _write_files(size, _codex, directory),
    "gemini-cli": lambda directory, size: _write_files(size, _gemini, directory),
    "opencode": make_opencode,
    "cursor": make_cursor,
}
