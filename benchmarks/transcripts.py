"""Generates transcripts of Claude Code, Codex and Hermes, of any size, from a fixed seed."""

import json
import random
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

_WORDS = (Path(__file__).parent / "transcript_words.txt").read_text("utf-8").split()
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_TURNS = 40
Turn = list[tuple[str, str, str]]


def prose(rng: random.Random, words: int) -> str:
    """Return everyday words, with a rare one now and then."""
    chosen = [f"{rng.choice(_WORDS)}{rng.randrange(10_000)}" if rng.random() < 0.02 else rng.choice(_WORDS)
            for _ in range(words)]  # fmt: skip
    return " ".join(chosen)


def output(rng: random.Random) -> str:
    """Return the output of a tool: mostly a screen, sometimes a whole file."""
    lines = min(400, int(rng.paretovariate(1.1) * 8))
    return "\n".join(f"{number:>6}\t{prose(rng, rng.randrange(3, 14))}" for number in range(lines))


def turns(rng: random.Random) -> Iterator[Turn]:
    """Generate the turns of a session: for each message its role, its text and, for a tool result, the call id."""
    for _ in range(rng.randrange(3, _TURNS)):
        turn = [("user", prose(rng, rng.randrange(5, 60)), "")]
        turn += [("tool", output(rng), f"call_{rng.getrandbits(64):x}") for _ in range(rng.randrange(0, 5))]
        yield [*turn, ("assistant", prose(rng, rng.randrange(20, 200)), "")]


def _claude_code_session(rng: random.Random, session: str, begin: datetime) -> Iterator[dict[str, Any]]:
    """Generate the lines of a session as Claude Code 2.1 writes them."""
    parent: str | None = None
    at = begin
    project = f"/home/someone/projects/service-{rng.randrange(20)}"

    def entry(kind: str, **fields: Any) -> dict[str, Any]:
        nonlocal parent, at
        at += timedelta(seconds=rng.randrange(1, 90))
        made = {
            "parentUuid": parent, "isSidechain": False, "type": kind, **fields,
            "uuid": str(uuid.UUID(int=rng.getrandbits(128), version=4)),
            "timestamp": _format_timestamp(at), "userType": "external",
            "entrypoint": "cli", "cwd": project, "sessionId": session, "version": "2.1.197", "gitBranch": "main",
        }  # fmt: skip
        parent = str(made["uuid"])
        return made

    def assistant(block: dict[str, Any]) -> dict[str, Any]:
        usage = {"input_tokens": 12, "cache_read_input_tokens": 40_000, "output_tokens": 300}
        message = {"id": f"msg_{rng.getrandbits(64):x}", "type": "message", "role": "assistant",
                   "model": "claude-opus-4-6", "content": [block], "stop_reason": None, "usage": usage}  # fmt: skip
        return entry("assistant", message=message, requestId=f"req_{rng.getrandbits(64):x}")

    for _ in range(rng.randrange(3, _TURNS)):
        yield entry("user", message={"role": "user", "content": prose(rng, rng.randrange(5, 60))})
        yield {"type": "file-history-snapshot", "messageId": parent, "snapshot": {"trackedFileBackups": {}}}
        for _ in range(rng.randrange(0, 5)):
            call = f"toolu_{rng.getrandbits(96):x}"
            command = {"command": prose(rng, 8), "description": prose(rng, 4)}
            yield assistant({"type": "tool_use", "id": call, "name": "Bash", "input": command})
            printed = output(rng)
            result = {"tool_use_id": call, "type": "tool_result", "content": printed, "is_error": False}
            yield entry(
                "user", message={"role": "user", "content": [result]}, toolUseResult={"stdout": printed, "stderr": ""}
            )
        yield assistant({"type": "text", "text": prose(rng, rng.randrange(20, 250))})
    yield {"type": "ai-title", "aiTitle": prose(rng, 5), "sessionId": session}


def _format_timestamp(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _random_time(rng: random.Random) -> datetime:
    return _BEGIN + timedelta(seconds=rng.randrange(2_000_000))


def _codex_session(rng: random.Random, name: str, begin: datetime) -> Iterator[dict[str, Any]]:
    """Generate the lines of a session as Codex 0.166 writes them."""
    meta = {
        "id": name,
        "timestamp": _format_timestamp(begin),
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
    for number, (kind, payload) in enumerate(payloads):
        stamp = _format_timestamp(begin + timedelta(milliseconds=number))
        yield {"timestamp": stamp, "type": kind, "payload": payload}


def _write_lines(file: Path, lines: Iterator[dict[str, Any]]) -> int:
    """Write a file of JSON lines, and return its characters."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as stream:
        return sum(stream.write(json.dumps(line, ensure_ascii=False) + "\n") for line in lines)


def make_claude_code(directory: Path, size: int) -> None:
    """Write `size` bytes of Claude Code transcripts, in files of a few hundred kilobytes each."""
    rng, made, number = random.Random(6), 0, 0
    while made < size:
        session = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        file = directory / "projects" / f"-home-someone-project-{number % 20}" / f"{session}.jsonl"
        begin = _BEGIN + timedelta(minutes=37 * number)
        made += _write_lines(file, _claude_code_session(rng, session, begin))
        number += 1


def make_codex(directory: Path, size: int) -> None:
    """Write `size` bytes of Codex sessions."""
    rng, made = random.Random(7), 0
    while made < size:
        name = f"{rng.getrandbits(32):08x}-0000-7000-8000-{rng.getrandbits(48):012x}"
        file = Path("sessions", "2026", "01", name[:2], f"rollout-2026-01-01T00-00-00-{name}.jsonl")
        made += _write_lines(directory / file, _codex_session(rng, name, _random_time(rng)))


def _name(rng: random.Random) -> str:
    return f"{rng.getrandbits(32):08x}-0000-4000-8000-{rng.getrandbits(48):012x}"


def _conversations() -> Iterator[tuple[random.Random, list[Turn], float]]:
    rng, at = random.Random(7), _BEGIN.timestamp()
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
    "claude-code": make_claude_code,
    "codex": make_codex,
    "hermes": make_hermes,
}
"""The function that generates transcripts, by source; other readers can be measured on existing files."""
