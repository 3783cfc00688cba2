"""Rollouts as three generations of Codex write them; the texts are made up."""

import json
from pathlib import Path
from typing import Any

from tests.importers.import_home import write_lines

SESSION = "019a7c11-5d20-7b83-9d7e-3f1a2b4c5d6e"
FORK = "019a7c22-0f10-7aa1-8c3d-112233445566"
AGENT = "019a7c33-0f10-7aa1-8c3d-778899aabbcc"
Line = dict[str, Any]


def item(payload: Line, at: str, kind: str = "response_item", **more: Any) -> Line:
    """One line in the envelope that Codex has had since the autumn of 2025."""
    return {"timestamp": f"2026-03-02T10:00:{at}Z", "type": kind, "payload": payload, **more}


def message(role: str, text: str, at: str, **more: Any) -> Line:
    part = {"type": "output_text" if role == "assistant" else "input_text", "text": text}
    return item({"type": "message", "role": role, "content": [part], **more}, at)


def meta(host_id: str, at: str = "00.000", **more: Any) -> Line:
    git = {"commit_hash": "a1b2c3d", "branch": "main", "repository_url": "git@example.org:team/shop.git"}
    about = {"id": host_id, "timestamp": f"2026-03-02T10:00:{at}Z", "cwd": "/home/ann/shop", "cli_version": "0.100.0"}
    return item({**about, "originator": "codex_cli_rs", "source": "cli", "git": git, **more}, at, "session_meta")


CONTEXT = [
    message("developer", "<permissions instructions>\nNothing is forbidden.", "00.100"),
    message("user", "# AGENTS.md instructions for /home/ann/shop\n\n<INSTRUCTIONS>Be brief.</INSTRUCTIONS>", "00.100"),
    message("user", "<environment_context>\n  <cwd>/home/ann/shop</cwd>\n</environment_context>", "00.100"),
]
SAID = [
    message("user", "Why does checkout deadlock?", "01.000"),
    item({"type": "user_message", "message": "Why does checkout deadlock?", "images": []}, "01.001", "event_msg"),
    item({"cwd": "/home/ann/shop", "model": "gpt-5.2-codex", "summary": "auto"}, "01.002", "turn_context"),
    item(
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "Look at the locks first."}],
            "content": None,
            "encrypted_content": "gAAAAB",
        },
        "02.000",
    ),
    item({"type": "reasoning", "summary": [], "encrypted_content": "gAAAAC"}, "02.100"),
    message("assistant", "I look at the locks.", "02.200"),
    item(
        {
            "type": "function_call",
            "name": "exec_command",
            "arguments": '{"cmd": "rg -n lock src"}',
            "call_id": "call_1",
        },
        "02.300",
    ),
    item({"type": "function_call_output", "call_id": "call_1", "output": "src/order.py:12: with lock:"}, "02.400"),
    item(
        {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch\n*** End Patch", "call_id": "c2"},
        "03.000",
    ),
    item(
        {
            "type": "custom_tool_call_output",
            "call_id": "c2",
            "output": '{"output":"Success. Updated src/order.py\\n","metadata":{"exit_code":0}}',
        },
        "03.100",
    ),
    item({"type": "token_count", "info": None}, "03.200", "event_msg"),
    message("assistant", "Checkout took the locks in another order; 现在好了.", "04.000"),
]
SUMMARY = item({"message": "The locks of checkout were put in order."}, "05.000", "compacted")
PRESENT = [meta(SESSION), *CONTEXT, *SAID]
# A fork was a copy with new times, after the description of the session that it copies.
FORKED = [
    meta(FORK, "10.000", forked_from_id=SESSION),
    meta(SESSION, "10.000"),
    *({**line, "timestamp": "2026-03-02T10:00:10.001Z"} for line in (*CONTEXT, *SAID)),
    message("user", "And refunds?", "11.000"),
    message("assistant", "They are safe.", "12.000"),
]
SPAWNED = [
    meta(AGENT, "20.000", source={"subagent": {"thread_spawn": {"parent_thread_id": SESSION, "depth": 1}}}),
    message("user", "Read the locks of refunds.", "20.100"),
]
# As 0.27: no envelopes, no times.
EARLIER: list[Line] = [
    {"id": SESSION, "timestamp": "2025-08-20T08:00:00.000Z", "instructions": None, "git": {"branch": "main"}},
    {"record_type": "state"},
    CONTEXT[2]["payload"],
    *(line["payload"] for line in SAID if line["type"] == "response_item"),
]
# April 2025: one object.
FIRST = {
    "session": {"timestamp": "2025-04-20T08:00:00.000Z", "id": SESSION, "instructions": ""},
    "items": [line["payload"] for line in SAID if line["type"] == "response_item"],
}


def write(home: Path, *rollouts: list[Line]) -> Path:
    """Write a Codex home with these sessions, the first on the first day."""
    for day, lines in enumerate(rollouts, start=1):
        host_id = lines[0].get("payload", lines[0])["id"]
        write_lines(
            home / "sessions" / "2026" / "03" / f"{day:02}" / f"rollout-2026-03-{day:02}-{host_id}.jsonl", lines
        )
    return home


def write_first(home: Path) -> Path:
    file = home / "sessions" / f"rollout-2025-04-20-{SESSION}.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(FIRST), "utf-8")
    return home
