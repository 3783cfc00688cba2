"""Generates transcripts of any size, from a fixed seed, in the formats that importers read."""

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


def prose(rng: random.Random, words: int) -> str:
    """Return everyday words, with a rare one now and then."""
    chosen = [f"{rng.choice(_WORDS)}{rng.randrange(10_000)}" if rng.random() < 0.02 else rng.choice(_WORDS)
            for _ in range(words)]  # fmt: skip
    return " ".join(chosen)


def output(rng: random.Random) -> str:
    """Return the output of a tool: mostly a screen, sometimes a whole file."""
    lines = min(400, int(rng.paretovariate(1.1) * 8))
    return "\n".join(f"{number:>6}\t{prose(rng, rng.randrange(3, 14))}" for number in range(lines))


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
            "timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"), "userType": "external",
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


def make_claude_code(directory: Path, size: int) -> None:
    """Write `size` bytes of Claude Code transcripts, in files of a few hundred kilobytes each."""
    rng, made, number = random.Random(6), 0, 0
    while made < size:
        session = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        file = directory / "projects" / f"-home-someone-project-{number % 20}" / f"{session}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        begin = _BEGIN + timedelta(minutes=37 * number)
        with file.open("w") as stream:
            for entry in _claude_code_session(rng, session, begin):
                made += stream.write(json.dumps(entry, ensure_ascii=False) + "\n")
        number += 1


def make_jsonl(directory: Path, size: int) -> None:
    """Write one file of messages in the plain format, of `size` bytes."""
    rng, made, number = random.Random(7), 0, 0
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "messages.jsonl").open("w") as stream:
        while made < size:
            text = output(rng) if number % 4 == 3 else prose(rng, rng.randrange(5, 200))
            role = ("user", "assistant")[number % 2]
            at = (_BEGIN + timedelta(seconds=11 * number)).isoformat()
            line = {"session": f"talk-{number // 100}", "id": str(number), "role": role, "content": text,
                    "timestamp": at}  # fmt: skip
            made += stream.write(json.dumps(line) + "\n")
            number += 1


def make_openclaw(directory: Path, size: int) -> None:
    """Write a database of one OpenClaw agent with `size` bytes of uncompressed events, as version 2026.9 does."""
    rng, made, number = random.Random(8), 0, 0
    file = directory / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
    file.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(file)) as database:
        database.execute(
            "CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER,"
            " event_zstd BLOB, PRIMARY KEY (session_id, seq))"
        )
        while made < size:
            session, seq = f"session-{number // 100}", number % 100
            at = _BEGIN + timedelta(seconds=13 * number)
            role = ("user", "assistant", "toolResult")[number % 3]
            text = output(rng) if role == "toolResult" else prose(rng, rng.randrange(5, 200))
            message = {"role": role, "content": [{"type": "text", "text": text}], "model": "claude-opus-4-6"}
            event = json.dumps({"type": "message", "id": f"event-{number}", "parentId": f"event-{number - 1}",
                                "timestamp": at.isoformat(), "message": message})  # fmt: skip
            database.execute(
                "INSERT INTO transcript_events VALUES (?, ?, ?, ?, NULL)",
                (session, seq, event, int(at.timestamp() * 1000)),
            )
            made += len(event)
            number += 1
        database.commit()


MAKERS: dict[str, Callable[[Path, int], None]] = {
    "claude-code": make_claude_code,
    "jsonl": make_jsonl,
    "openclaw": make_openclaw,
}
"""The function that generates transcripts, by source; other readers can be measured on existing files."""
