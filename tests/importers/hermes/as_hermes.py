"""Writes a session database with Hermes itself; run by the interpreter of Hermes's own environment."""

import importlib
import sys
from pathlib import Path
from typing import Any


def write(home: Path) -> Any:
    """Sessions with a title, tools, reasoning, a rewind, and both kinds of compression; the store stays open."""
    # Not installed where our code is checked, so imported by name.
    db: Any = importlib.import_module("hermes_state").SessionDB(home / "state.db")
    db.create_session("plain", "cli", model="m-1", system_prompt="You are X")
    db.append_message("plain", "user", "How do I fix the deadlock?")
    call = {"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": '{"cmd": "ls é"}'}}
    db.append_message("plain", "assistant", None, tool_calls=[call], reasoning="I look.", finish_reason="tool_calls")
    db.append_message("plain", "tool", "a.py", tool_call_id="c1", tool_name="terminal")
    db.append_message("plain", "assistant", "Use a lock.", reasoning_details=[{"type": "x"}], api_content="not said")
    db.append_message("plain", "user", [{"type": "text", "text": "look"}])
    db.append_message("plain", "assistant", "And this goes.")
    db.set_session_title("plain", "Deadlock")
    _talk(db, "short", 1)
    last = [each for each in db.get_messages("short") if each["role"] == "user"][-1]
    db.rewind_to_message("short", last["id"])
    _compress(db)
    return db


def _talk(db: Any, session: str, turns: int) -> list[dict[str, Any]]:
    db.create_session(session, "cli")
    said = []
    for number in range(turns):
        for role in ("user", "assistant"):
            message = {"role": role, "content": f"{role} {number} in {session}"}
            db.append_message(session, **message)
            said.append(message)
    return said


def _compress(db: Any) -> None:
    said = _talk(db, "inplace", 4)
    summary = {"role": "assistant", "content": "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted."}
    db.archive_and_compact("inplace", [said[0], summary, *said[-2:]])
    db.append_message("inplace", "user", "after compression in place")
    said = _talk(db, "rotated", 4)
    db.end_session("rotated", "compression")
    db.create_session("continued", "cli", parent_session_id="rotated")
    db.replace_messages("continued", [said[0], summary, *said[-2:]])
    db.append_message("continued", "user", "after rotation")


if __name__ == "__main__":
    store = write(Path(sys.argv[1]))
    print("written", flush=True)
    # Hermes keeps running until it is asked to end.
    sys.stdin.readline()
    store.close()
