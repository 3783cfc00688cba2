"""A conversation as a document shows it: its title, what is known about it, and its messages one after the other."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memoranda.home.session_db import SessionDB
from memoranda.importers.sources import resume_command
from memoranda.memory.record.message_rows import DAMAGED, text_of
from memoranda.support.projects import project_name


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """One message: who said it, when, its text, and its tool calls as (name, arguments)."""

    number: int
    role: str
    tool: str
    timestamp: float | None
    text: str
    calls: tuple[tuple[str, str], ...] = ()
    is_damaged: bool = False

    @property
    def speaker(self) -> str:
        return f"{self.role} {self.tool}".strip()


@dataclass(frozen=True, slots=True)
class Conversation:
    """A chain of sessions; messages are read when they are asked for, so that no conversation must fit into memory."""

    db: SessionDB
    members: tuple[str, ...]
    first: dict[str, Any]
    last: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.last["id"])

    @property
    def title(self) -> str:
        return str(self.last["title"] or self.first["title"] or self.id)

    @property
    def facts(self) -> dict[str, str]:
        """What is known about the conversation, by name, without what is unknown."""
        found = {
            "id": self.id,
            "source": self.first["source"],
            "model": self.last["model"],
            "project": project_name(self.last["project"]),
            "started": show_time(self.first["started_at"]),
            "ended": show_time(self.last["ended_at"]),
            "resume": resume_command(self.last),
        }
        return {name: str(value) for name, value in found.items() if value}

    def messages(self) -> Iterator[ShownMessage]:
        """What was said, in order, without copies and summaries that compression wrote."""
        for session_id in self.members:
            for message in self.db.messages.iter_messages(session_id):
                if message["copy_of"] is None and not message["is_summary"]:
                    yield _show_message(message)


def read_conversations(db: SessionDB, session_ids: Sequence[str]) -> Iterator[Conversation]:
    """The conversations to which sessions belong, each once, in the order of the sessions."""
    seen: set[str] = set()
    for session_id in session_ids:
        if session_id in seen:
            continue
        members = tuple(db.get_compression_lineage(session_id)) or (session_id,)
        seen.update(members)
        first, last = db.get_session(members[0]), db.get_session(members[-1])
        # Another process may have deleted it since it was listed.
        if first is not None and last is not None:
            yield Conversation(db, members, first, last)


def show_time(seconds: float | None) -> str:
    """A timestamp in the local time zone with its offset; "" if it is unknown or out of range."""
    if seconds is None:
        return ""
    try:
        return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M:%S %z}"
    except (ValueError, OverflowError, OSError):
        return ""


def without_controls(text: str) -> str:
    """A text without characters that a document must not contain: controls but tab and newline, and lone surrogates."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(char if char in "\n\t" or not _is_control(char) else "\ufffd" for char in text)


def _is_control(char: str) -> bool:
    code = ord(char)
    return code < 32 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000 or code & 0xFFFE == 0xFFFE


def _show_message(message: dict[str, Any]) -> ShownMessage:
    calls = message["tool_calls"]
    listed = calls if isinstance(calls, list) else [calls] if calls else []
    return ShownMessage(
        message["id"],
        str(message["role"]),
        str(message["tool_name"] or ""),
        message["timestamp"],
        text_of(message["content"]),
        tuple(map(_show_call, listed)),
        bool(message.get(DAMAGED)),
    )


def _show_call(call: Any) -> tuple[str, str]:
    function = call.get("function", call) if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return "tool", call if isinstance(call, str) else json.dumps(call, ensure_ascii=False)
    arguments = function.get("arguments", function.get("input", ""))
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, indent=2)
    return str(function.get("name") or "tool"), text
