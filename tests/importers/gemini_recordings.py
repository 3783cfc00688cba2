"""Sessions as Gemini CLI records them, made up after the real formats of 0.5, 0.25 and 0.61."""

import hashlib
import json
from pathlib import Path
from typing import Any

from tests.importers.import_home import write_lines

SESSION = "7550e3cb-0f94-4b6d-a252-7368f8577e77"
AGENT = "c0ffee00-0f94-4b6d-a252-7368f8577e77"
DIRECTORY = "/home/ann/shop"
Record = dict[str, Any]


def _response(call: str, output: str) -> Record:
    return {"functionResponse": {"id": call, "name": "run_shell_command", "response": {"output": output}}}


def _at(second: int) -> str:
    return f"2026-03-02T10:00:{second:02}.000Z"


FACTS = {"sessionId": SESSION, "projectHash": "", "startTime": _at(0), "lastUpdated": _at(9), "kind": "main"}
CONTEXT = {"id": "d049", "timestamp": _at(0), "type": "user", "content": [{"text": "<session_context>\nToday is ..."}]}
ASKED = {"id": "m-1", "timestamp": _at(1), "type": "user", "content": [{"text": "Why does checkout deadlock?"}]}
ANSWERED = {
    "id": "m-2",
    "timestamp": _at(2),
    "type": "gemini",
    "content": "I look at the locks.",
    "thoughts": [{"subject": "Locks", "description": "Their order may differ.", "timestamp": _at(2)}],
    "tokens": {"input": 10, "output": 5, "cached": 0, "thoughts": 0, "tool": 0, "total": 15},
    "model": "gemini-3.8-flash",
}
CALL = {
    "id": "run_shell_command__1",
    "name": "run_shell_command",
    "args": {"command": "rg -n lock src"},
    "result": [_response("run_shell_command__1", "src/order.py:12: with lock:")],
    "status": "success",
    "timestamp": _at(3),
    "resultDisplay": "src/order.py:12: with lock:",
}
WITH_RESULT = {**ANSWERED, "toolCalls": [CALL]}
TOLD = {"id": "m-3", "timestamp": _at(4), "type": "user", "content": CALL["result"]}
LAST = {"id": "m-4", "timestamp": _at(5), "type": "gemini", "content": "现在好了.", "thoughts": [], "model": "gemini-3"}
NOTICE = {"id": "m-5", "timestamp": _at(6), "type": "info", "content": "Request cancelled."}

PRESENT: list[Record] = [
    FACTS,
    {"$set": {"messages": [CONTEXT], "lastUpdated": _at(0)}},
    ASKED,
    {"$set": {"lastUpdated": _at(1)}},
    ANSWERED,
    WITH_RESULT,
    TOLD,
    LAST,
    NOTICE,
    {"$rewindTo": "m-4"},
    {"$set": {"summary": "A deadlock in checkout", "lastUpdated": _at(9)}},
]
EARLIER: Record = {
    **FACTS,
    "summary": "A deadlock in checkout",
    "messages": [{**ASKED, "content": "Why does checkout deadlock?"}, WITH_RESULT, LAST],
}
SPAWNED: list[Record] = [
    {**FACTS, "sessionId": AGENT, "kind": "subagent"},
    {"id": "a-1", "timestamp": _at(7), "type": "user", "content": [{"text": "Read the locks of refunds."}]},
]
CHECKPOINT: list[Record] = [
    {"role": "user", "parts": [{"text": "This is the Gemini CLI. We are setting up the context for our chat."}]},
    {"role": "model", "parts": [{"text": "Got it. Thanks for the context!"}]},
    {"role": "user", "parts": [{"text": "Why does checkout deadlock?"}]},
    {"role": "model", "parts": [{"functionCall": {"name": "run_shell_command", "args": {"command": "rg lock"}}}]},
    {"role": "user", "parts": [_response("", "src/order.py:12")]},
    {"role": "model", "parts": [{"text": "thinking", "thought": True}, {"text": "现在好了."}]},
    {"role": "user", "parts": [{"text": "continue"}]},
    {"role": "user", "parts": [{"text": "continue"}]},
]


def write(home: Path, records: list[Record]) -> Path:
    """A home of today: projects have names."""
    project = home / "tmp" / "shop"
    write_lines(project / "chats" / "session-2026-03-02T10-00-7550e3cb.jsonl", records)
    (project / ".project_root").write_text(DIRECTORY, "utf-8")
    return home


def write_earlier(home: Path) -> Path:
    """A home of 2025: projects are digests of their directories, which other files name."""
    digest = hashlib.sha256(DIRECTORY.encode()).hexdigest()
    file = home / "tmp" / digest / "chats" / "session-2026-03-02T10-00-7550e3cb.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({**EARLIER, "projectHash": digest}, indent=2), "utf-8")
    (home / "trustedFolders.json").write_text(json.dumps({DIRECTORY: "TRUST_FOLDER"}), "utf-8")
    return home


def write_checkpoint(home: Path, contents: Any, tag: str = "deadlock%20hunt") -> Path:
    file = home / "tmp" / "shop" / f"checkpoint-{tag}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(contents), "utf-8")
    return home
