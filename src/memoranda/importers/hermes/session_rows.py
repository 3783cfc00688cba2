"""Converts rows of Hermes's sessions table, of any schema version, and orders them by parent."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memoranda.importers.chat_messages import parse_timestamp
from memoranda.importers.reader_protocol import ImportedConversation
from memoranda.importers.source_databases import rows

_HELPERS = ("subagent", "tool")
# Columns that the record also has, with the same meaning.
_TEXTS = (
    "source", "model", "system_prompt", "end_reason", "billing_provider", "billing_base_url", "billing_mode",
    "cost_status", "cost_source", "pricing_version",
)  # fmt: skip
_NUMBERS = (
    "ended_at", "archived", "rewind_count", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens", "api_call_count", "estimated_cost_usd", "actual_cost_usd",
)  # fmt: skip
# Columns with a field of their own, and the counts, which the record computes itself.
_OTHERS = ("id", "user_id", "model_config", "title", "cwd", "started_at", "parent_session_id", "message_count",
           "tool_call_count")  # fmt: skip
# Columns about a gateway's chat, and the facts of a session that mean the same.
_GATEWAY = {
    "chat_id": "chat_id",
    "chat_type": "chat_type",
    "thread_id": "thread_id",
    "session_key": "gateway_session_key",
}
_WITH_COLUMN = frozenset((*_TEXTS, *_NUMBERS, *_OTHERS))


@dataclass(frozen=True, slots=True)
class SessionNode:
    """A session with its parent."""

    id: str
    parent: str | None
    started_at: float


def session_nodes(connection: sqlite3.Connection, columns: set[str]) -> dict[str, SessionNode]:
    """Return every session, parents before their children, otherwise in the order in which they started."""
    names = ["id", *(name if name in columns else f"NULL AS {name}" for name in ("parent_session_id", "started_at"))]
    found: dict[str, SessionNode] = {}
    for name, parent, started in rows(connection, f"SELECT {', '.join(names)} FROM sessions"):
        if isinstance(name, str):
            found[name] = SessionNode(
                name, parent if isinstance(parent, str) else None, parse_timestamp(started) or 0.0
            )
    ordered = sorted(found.values(), key=lambda node: (node.started_at, node.id))
    ordered_nodes: dict[str, SessionNode] = {}
    for node in ordered:
        line: dict[str, SessionNode] = {}
        ancestor: SessionNode | None = node
        while ancestor is not None and ancestor.id not in ordered_nodes and ancestor.id not in line:
            line[ancestor.id] = ancestor
            ancestor = found.get(ancestor.parent) if ancestor.parent else None
        ordered_nodes |= dict(reversed(line.items()))
    return ordered_nodes


def conversation(
    row: Mapping[str, Any], parent_row: Mapping[str, Any] | None, user: str | None
) -> ImportedConversation:
    """Convert a row of the sessions table; columns that the record does not have become facts of the session."""
    title, directory = row.get("title"), row.get("cwd")
    parent = row.get("parent_session_id")
    return ImportedConversation(
        row["id"],
        title if isinstance(title, str) and title.strip() else None,
        row["model"] if isinstance(row.get("model"), str) else None,
        directory if isinstance(directory, str) and directory else None,
        parse_timestamp(row.get("started_at")),
        parent if isinstance(parent, str) else None,
        _relation(row, parent_row),
        extra={
            f"hermes_{name}": value
            for name, value in row.items()
            if name not in _WITH_COLUMN and value and not isinstance(value, bytes)
        }
        | _gateway_facts(row),
        columns=_columns(row, user),
    )


def _gateway_facts(row: Mapping[str, Any]) -> dict[str, Any]:
    """The chat of a gateway's session, under the names that a provider receives when the session is resumed."""
    facts = {fact: str(row[name]) for name, fact in _GATEWAY.items() if row.get(name)}
    return {"gateway": {"platform": row["source"], **facts}} if facts and isinstance(row.get("source"), str) else {}


def _columns(row: Mapping[str, Any], user: str | None) -> dict[str, Any]:
    """Return the values for columns of the record; values of the wrong type are omitted."""
    found: dict[str, Any] = {name: row[name] for name in _TEXTS if isinstance(row.get(name), str) and row[name]}
    found |= {name: row[name] for name in _NUMBERS if isinstance(row.get(name), int | float)}
    settings = _marks(row.get("model_config"))
    # A session that only the messages table names has no source.
    found.setdefault("source", "hermes")
    return found | ({"model_config": settings} if settings else {}) | ({"user_id": user} if user else {})


def _relation(row: Mapping[str, Any], parent_row: Mapping[str, Any] | None) -> str | None:
    """Return the relation of a session to its parent: from marks in newer versions, else from how the parent ended."""
    if not isinstance(row.get("parent_session_id"), str):
        return None
    marks = _marks(row.get("model_config"))
    if "_delegate_from" in marks or row.get("source") in _HELPERS:
        return "delegation"
    if "_branched_from" in marks or parent_row is None:
        return "branch"
    return "compression" if parent_row.get("end_reason") == "compression" else "branch"


def _marks(stored: Any) -> Mapping[str, Any]:
    try:
        found = json.loads(stored) if isinstance(stored, str) else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
