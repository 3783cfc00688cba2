"""Compares every column of every row of a home that the real Hermes wrote with the record after `memoranda import`."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

Row = dict[str, Any]
_COLUMNS_HERE = {"cwd": "directory"}
# Ids differ, counts are computed here, and the text with recalled memories in it is not imported.
_DOCUMENTED = {"id", "session_id", "parent_session_id", "message_count", "tool_call_count", "api_content"}
_JSON_COLUMNS = ("model_config", "tool_calls", "reasoning_details", "codex_reasoning_items", "codex_message_items")


def write_home(python: Path, root: Path) -> None:
    """Let Hermes write its home."""
    root.mkdir(parents=True)
    script = Path(__file__).with_name("write_hermes_home.py")
    environment = {**os.environ, "HERMES_HOME": str(root)}
    subprocess.run([python, script, root / "state.db"], check=True, env=environment, cwd=root)


def differences(theirs: Path, ours: Path) -> Iterator[str]:
    """Yield every difference between two databases that is not documented."""
    sessions, imported = _rows(theirs, "sessions"), {row["id"]: row for row in _rows(ours, "sessions")}
    prompts = {row["id"]: row["text"] for row in _rows(ours, "system_prompts")}
    for row in imported.values():
        # Equal prompts are stored once.
        row["system_prompt"] = row["system_prompt"] or prompts.get(row["system_prompt_id"])
    users = {row["id"]: row["user_id"] for row in sessions}
    messages: dict[str, list[Row]] = {}
    for row in _rows(theirs, "messages"):
        messages.setdefault(row["session_id"], []).append(row)
    copies: dict[str, list[Row]] = {}
    for row in _rows(ours, "messages"):
        copies.setdefault(row["session_id"], []).append(row)
    for row in sessions:
        name = f"hermes-{row['id']}"
        if name not in imported:
            yield f"{name} is missing"
            continue
        # A session without a user belongs to the user of its parent.
        expected = {**row, "user_id": row["user_id"] or users.get(row["parent_session_id"])}
        yield from _compare(name, expected, imported[name])
        if row["parent_session_id"] and imported[name]["parent_session_id"] != f"hermes-{row['parent_session_id']}":
            yield f"{name}: another parent"
        here, there = copies.get(name, []), messages.get(row["id"], [])
        if len(here) != len(there):
            yield f"{name}: {len(there)} messages in Hermes, {len(here)} here"
        for number, (message, copy) in enumerate(zip(there, here, strict=False), 1):
            yield from _compare(f"{name}, message {number}", message, copy)
    surplus = imported.keys() - {f"hermes-{row['id']}" for row in sessions}
    yield from (f"{name} is not in Hermes" for name in sorted(surplus))


def _compare(name: str, theirs: Row, ours: Row) -> Iterator[str]:
    extra = json.loads(ours["extra"]) if ours.get("extra") else {}
    for column, value in theirs.items():
        if column in _DOCUMENTED:
            continue
        if column in ("ended_at", "end_reason") and theirs.get("ended_at") is None:
            # A session that is open in Hermes is ended here with this reason.
            if ours["end_reason"] != "imported":
                yield f"{name}: an open session ended with {ours['end_reason']!r}"
            continue
        here = _COLUMNS_HERE.get(column, column)
        found = ours[here] if here in ours else extra.get(here, extra.get(f"hermes_{here}"))
        if _meaning(column, value) != _meaning(column, found, ours.get("content_format")):
            yield f"{name}: {column} is {value!r} in Hermes and {found!r} here"


def _meaning(column: str, value: Any, content_format: str | None = None) -> Any:
    """Return the value of a column in a form that does not depend on how a program writes JSON and flags."""
    if isinstance(value, str) and column == "content":
        if value.startswith("\x00json:"):
            return json.loads(value.removeprefix("\x00json:"))
        return json.loads(value) if content_format == "json" else value
    if isinstance(value, str) and column in _JSON_COLUMNS:
        return json.loads(value)
    return value or None


def _rows(database: Path, table: str) -> list[Row]:
    with closing(sqlite3.connect(database)) as connection:
        cursor = connection.execute(f"SELECT * FROM {table} ORDER BY {'started_at' if table == 'sessions' else 'id'}")
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]


def import_home(source: Path, home: Path) -> Mapping[str, Any]:
    """Import with the command, as a user does; return its figures."""
    command: list[str | Path] = [sys.executable, "-m", "memoranda", "--home", home, "import", "hermes"]
    command += ["--source", source, "--only", "sessions", "--yes", "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: Mapping[str, Any] = json.loads(done.stdout)["sources"][0]
    return figures


def check(python: Path, root: Path) -> Sequence[str]:
    """Write, import twice and compare; return what is wrong."""
    write_home(python, root / "hermes")
    first = import_home(root / "hermes", root / "home")
    found = list(differences(root / "hermes" / "state.db", root / "home" / "state.db"))
    if first["problem_count"]:
        found.append(f"{first['problem_count']} rows could not be imported")
    # Another file with the same rows is read from its start.
    shutil.copytree(root / "hermes", root / "copy")
    for source in ("hermes", "copy"):
        added = import_home(root / source, root / "home")["messages"]
        if added:
            found.append(f"a second import, from {source}, added {added} messages")
    return found
