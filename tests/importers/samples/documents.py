"""The samples that are text: JSON, Markdown and logs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.importers.samples import Sample, execute


def _change(file: str, change: Callable[[Any], object]) -> Callable[[Path], int]:
    """Return a function that changes the JSON in a file of a sample, which adds one message."""

    def grow(path: Path) -> int:
        value = json.loads((path / file).read_text("utf-8"))
        change(value)
        (path / file).write_text(json.dumps(value), "utf-8")
        return 1

    return grow


def _append(file: str, text: str) -> Callable[[Path], int]:
    """Return a function that appends to a file of a sample, or creates it, which adds one message."""

    def grow(path: Path) -> int:
        with (path / file).open("a", encoding="utf-8") as stream:
            stream.write(text)
        return 1

    return grow


def _grow_claude_mem(path: Path) -> int:
    return execute(
        path / "claude-mem.db",
        "INSERT INTO observations (memory_session_id, project, type, title, created_at, created_at_epoch)"
        " VALUES ('manual-shop-claude', 'shop', 'discovery', 'Ann moved to Basel', '', 1794900000000)",
    )


def _add_to_librechat(value: Any) -> None:
    """A prompt in the branch that is not shown; an import into a session that has branches cannot be undone."""
    prompt = {"messageId": "m-9", "parentMessageId": "m-2", "isCreatedByUser": True, "text": "And no sugar."}
    answer = value["messagesTree"][0]["children"][0]
    answer["children"].append({**prompt, "createdAt": "2026-03-02T10:00:30.000Z", "children": []})


_CLINE = "1794856437294_o5yng"
_CONTINUE = "885427e4-9a97-4b72-b153-15691b5f8975"
_COPILOT = "3b7e1f1b-5a1c-4c11-9c02-2b64f2d0b001"
_REQUEST = {"requestId": "request_9", "message": {"text": "And no sugar."}}
_COPILOT_CLI = "cdc7ff21-2b75-43fd-aec0-f74b51ed36b0"
_LIBRECHAT = "7f2d6a10-3c55-4a0e-9a2c-5d1f0b9e2001"
_LM_STUDIO = "1751393220000"
_ASKED = "Which port does the gateway use?"
_JAN = "01k1jan0000000000000000000"
_LETTA_CODE = "agent-local-8d1aa6ac-2079-4ff8-b02d-cd1c9a7ab76a"
_SAID = {"role": "user", "content": "And no sugar."}
_SAID_IN_PARTS = {"role": "user", "content": [{"type": "text", "text": "And no sugar."}]}

DOCUMENTS = [
    Sample(
        "aider",
        messages=5,
        sessions={"aider-shop/2026-11-16 18:22:58": 2, "aider-shop/2026-11-16 18:23:12": 3},
        # Local time of the machine, which is UTC in the tests.
        known=(
            "aider-shop/2026-11-16 18:23:12",
            "18:23:12:0:",
            "2026-11-16T18:23:12+00:00",
            "How do I fix it?\nIt has two locks.",
        ),
        grow=_append("shop/.aider.chat.history.md", "\n#### And no sugar.  \n"),
        skipped={"line that Aider printed": 24},
    ),
    Sample(
        "cline",
        messages=2,
        sessions={f"cline-{_CLINE}": 2},
        known=(
            f"cline-{_CLINE}",
            "44e5f189-a9d4-4e2a-af55-371af771669f",
            "2026-11-16T19:13:57.883+00:00",
            "Why does checkout deadlock?",
        ),
        grow=_change(f"sessions/{_CLINE}/{_CLINE}.messages.json", lambda value: value["messages"].append(_SAID)),
    ),
    Sample(
        "roo",
        messages=5,
        sessions={"roo-1772445600000": 5},
        known=("roo-1772445600000", "1772445600000:0:", "2026-03-02T10:00:00.500+00:00", "Why does checkout deadlock?"),
        grow=_change("tasks/1772445600000/api_conversation_history.json", lambda value: value.append(_SAID)),
    ),
    Sample(
        "continue",
        messages=4,
        sessions={f"continue-{_CONTINUE}": 4},
        known=(
            f"continue-{_CONTINUE}",
            f"{_CONTINUE}:3:",
            "2026-11-16T19:07:06.864+00:00",
            "The table lock is called aurora-7.",
        ),
        grow=_change(f"sessions/{_CONTINUE}.json", lambda value: value["history"].append({"message": _SAID})),
    ),
    Sample(
        "copilot-chat",
        messages=7,
        sessions={f"copilot-chat-{_COPILOT}": 5, "copilot-chat-7c0d4a55-0000-4c11-9c02-2b64f2d0b002": 2},
        known=(
            f"copilot-chat-{_COPILOT}",
            "request_1/answer",
            "2025-11-21T12:11:41+00:00",
            "The deadlock comes from two locks in order.py, taken in different order.",
        ),
        grow=_append(
            f"workspaceStorage/1f2e/chatSessions/{_COPILOT}.jsonl",
            json.dumps({"kind": 2, "k": ["requests"], "v": [_REQUEST]}) + "\n",
        ),
        skipped={"part of an answer: progressTaskSerialized": 1},
    ),
    Sample(
        "copilot-cli",
        messages=6,
        sessions={f"copilot-cli-{_COPILOT_CLI}": 6},
        known=(
            f"copilot-cli-{_COPILOT_CLI}",
            "61e63a4c-175e-4bb3-9dde-13ee4d11a8c7",
            "2026-11-18T04:49:49.632+00:00",
            "Port 8443, as set in gateway.toml.",
        ),
        grow=_append(
            f"{_COPILOT_CLI}/events.jsonl",
            json.dumps({"type": "user.message", "data": {"content": "And no sugar."}, "id": "e9"}) + "\n",
        ),
        skipped={
            "event: system.message": 1,
            "event: assistant.turn_start": 3,
            "event: session.usage_record": 3,
            "event: assistant.turn_end": 3,
            "event: session.shutdown": 2,
            "event: tool.execution_start": 1,
        },
    ),
    Sample(
        "librechat",
        messages=9,
        sessions={f"librechat-{_LIBRECHAT}": 8, f"librechat-{_LIBRECHAT}~m-2": 1},
        known=(f"librechat-{_LIBRECHAT}", f"{_LIBRECHAT}/m-5", "2026-03-02T10:02:03+00:00", "Noted."),
        grow=_change("Gateway port.json", _add_to_librechat),
    ),
    Sample(
        "lm-studio",
        messages=5,
        sessions={f"lm-studio-{_LM_STUDIO}": 5},
        known=(f"lm-studio-{_LM_STUDIO}", f"{_LM_STUDIO}:0:", "2025-07-01T18:07:00+00:00", _ASKED),
        grow=_change(
            f"{_LM_STUDIO}.conversation.json",
            lambda value: value["messages"].append({"versions": [_SAID_IN_PARTS], "currentlySelected": 0}),
        ),
        skipped={"version of a message that is not shown": 1},
    ),
    Sample(
        "jan",
        messages=10,
        sessions={f"jan-{_JAN}": 10},
        known=(f"jan-{_JAN}", f"{_JAN}:msg-3", "2025-07-06T11:07:30+00:00", "Tea without sugar."),
        grow=_append(f"threads/{_JAN}/messages.jsonl", json.dumps({"id": "msg-9", **_SAID_IN_PARTS}) + "\n"),
    ),
    Sample(
        "zep",
        messages=4,
        sessions={"zep-ann": 2, "zep:notes-ann": 2},
        known=(
            "zep:notes-ann",
            "ann/f0@",
            "2026-01-05T00:00:00+00:00",
            "Ann works at Acme. (true from 2026-01-05 until 2026-05-25)",
        ),
        grow=_change(
            "export.json",
            lambda value: value["edges"].append({"uuid": "f9", "group_id": "ann", "fact": "Ann likes tea."}),
        ),
    ),
    Sample(
        "letta",
        messages=11,
        sessions={
            "letta:notes-memgpt_agent": 2,
            "letta-memgpt_agent": 6,
            "letta:notes-archive/agent-7": 2,
            "letta:notes-agent-7": 1,
        },
        known=(
            "letta:notes-archive/agent-7",
            "passage-1f0c",
            "2025-10-30T08:00:00+00:00",
            "Ann's deploy key lives in the blue safe.",
        ),
        grow=_change("memgpt_agent.af", lambda value: value["agents"][0]["messages"].append(_SAID)),
        skipped={"instructions of a program": 1},
    ),
    Sample(
        "letta",
        messages=27,
        sessions={
            "letta-bakery": 14,
            "letta:notes-bakery": 3,
            "letta-bakery-messages": 9,
            "letta:notes-archive/archive-be9df06d-c955-4dd7-9371-74b4611655b3": 1,
        },
        known=(
            "letta-bakery",
            "bakery:6eeee30dac426f4414b6cfae",
            "2026-11-17T05:24:18.100830+00:00",
            "Remember that we open at six.",
        ),
        grow=_change("bakery.af", lambda value: value["agents"][0]["messages"].append(_SAID)),
        skipped={"instructions of a program": 2, "result of send_message": 4, "event of the server": 2},
        folder="letta-server",
    ),
    Sample(
        "letta",
        messages=18,
        sessions={
            f"letta-{_LETTA_CODE}/local-conv-1": 11,
            f"letta-{_LETTA_CODE}/local-conv-2": 2,
            f"letta:notes-{_LETTA_CODE}": 5,
        },
        known=(
            f"letta-{_LETTA_CODE}/local-conv-2",
            "local-conv-2:ui-msg-2",
            "2026-11-17T04:57:32.215+00:00",
            "You use rye flour.",
        ),
        grow=_append(
            "lc-local-backend/conversations/Y29udmVyc2F0aW9uOmxvY2FsLWNvbnYtMg/messages.jsonl",
            json.dumps({"type": "message", "id": "1", "message": {"id": "ui-msg-3", **_SAID}}) + "\n",
        ),
        folder="letta-code",
    ),
    Sample(
        "claude-mem",
        messages=3,
        sessions={"claude-mem:notes-shop": 3},
        known=(
            "claude-mem:notes-shop",
            "observations/1@",
            "2026-11-16T19:20:53.879+00:00",
            "Staging database\nManual memory\nThe staging database is called aurora-7.",
        ),
        grow=_grow_claude_mem,
        skipped={"prompt, which Claude Code has": 1},
    ),
    Sample(
        "obsidian",
        messages=3,
        sessions={"obsidian:notes-vault": 3},
        known=(
            "obsidian:notes-vault",
            "vault/Tea.md@",
            "2025-03-01T00:00:00+00:00",
            "Ben prefers green tea. See [[Checkout]].",
        ),
        grow=_append("New.md", "Ann moved to Basel."),
        folder="obsidian/vault",
    ),
]
