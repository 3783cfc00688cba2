"""Writes a session database with the real Hermes; run by the interpreter of Hermes's own environment.

It has sessions of several sources and users, archived ones, tokens and costs, a compressed chain, compression in place,
delegated work, a branch, rewound messages, structured content, tool calls, and text with a NUL character.
"""

import importlib
import sys
from pathlib import Path
from typing import Any

_CALL = {"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": '{"cmd": "ls é"}'}}
_SUMMARY = {"role": "assistant", "content": "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted."}


def write_home(database: Path) -> None:
    """Write the sessions and close the database."""
    # Not installed where our code is checked, so imported by name.
    store: Any = importlib.import_module("hermes_state").SessionDB(database)
    _write_plain(store)
    _write_sources_and_users(store)
    _write_compressed(store)
    store.close()


def _write_plain(store: Any) -> None:
    store.create_session("plain", "cli", model="m-1", model_config={"temperature": 0.5}, system_prompt="You are X")
    store.append_message("plain", "user", "How do I fix the deadlock?", token_count=7, platform_message_id="p-1")
    store.append_message(
        "plain", "assistant", None, tool_calls=[_CALL], reasoning="I look.", reasoning_content="I think.",
        finish_reason="tool_calls", codex_reasoning_items=[{"id": "r1"}], codex_message_items=[{"id": "m1"}],
    )  # fmt: skip
    store.append_message("plain", "tool", "a\x00b.py", tool_call_id="c1", tool_name="terminal")
    store.append_message("plain", "assistant", "Use a lock.", reasoning_details=[{"type": "x"}], api_content="sent")
    store.append_message("plain", "user", [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {}}])
    store.append_message("plain", "user", "観測 😀", observed=True)
    store.set_session_title("plain", "Deadlock")
    store.update_token_counts(
        "plain", input_tokens=100, output_tokens=20, cache_read_tokens=3, cache_write_tokens=4, reasoning_tokens=5,
        estimated_cost_usd=0.25, actual_cost_usd=0.2, cost_status="actual", cost_source="provider",
        pricing_version="2026-01", billing_provider="p", billing_base_url="https://api.example/v1",
        billing_mode="tokens", api_call_count=2,
    )  # fmt: skip
    store.update_session_cwd("plain", "/code/app", git_branch="main")
    store.end_session("plain", "user_exit")
    _talk(store, "rewound", "cli", 3)
    questions = [message for message in store.get_messages("rewound") if message["role"] == "user"]
    store.rewind_to_message("rewound", questions[-1]["id"])


def _write_sources_and_users(store: Any) -> None:
    for source in ("telegram", "cron", "tool", "subagent"):
        _talk(store, f"from-{source}", source, 1)
    _talk(store, "of-ann", "telegram", 2, user_id="42", chat_id="c-42", chat_type="private")
    store.record_gateway_session_peer("of-ann", source="telegram", user_id="42", chat_id="c-42", display_name="Ann")
    _talk(store, "of-bob", "telegram", 1, user_id="43", chat_id="c-43")
    _talk(store, "helper-of-ann", "subagent", 1, parent_session_id="of-ann")
    _talk(store, "helper", "subagent", 1, parent_session_id="plain")
    _talk(store, "branch", "cli", 1, parent_session_id="plain", model_config={"_branched_from": "plain"})
    _talk(store, "archived", "cli", 1)
    store.set_session_archived("archived", True)


def _write_compressed(store: Any) -> None:
    said = _talk(store, "in-place", "cli", 4)
    store.archive_and_compact("in-place", [said[0], _SUMMARY, *said[-2:]])
    store.append_message("in-place", "user", "after compression in place")
    said = _talk(store, "rotated", "cli", 4)
    store.end_session("rotated", "compression")
    store.create_session("continued", "cli", parent_session_id="rotated")
    store.replace_messages("continued", [said[0], _SUMMARY, *said[-2:]])
    store.append_message("continued", "user", "after rotation")


def _talk(store: Any, session: str, source: str, turns: int, **columns: Any) -> list[dict[str, Any]]:
    store.create_session(session, source, **columns)
    said = []
    for number in range(turns):
        for role in ("user", "assistant"):
            message = {"role": role, "content": f"{role} {number} in {session}"}
            store.append_message(session, **message)
            said.append(message)
    return said


if __name__ == "__main__":
    write_home(Path(sys.argv[1]))
