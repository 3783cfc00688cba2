"""Claude Agent SDK: its transcripts in Memoranda, recall for its prompts, and the memory tools as an MCP server.

    options = ClaudeAgentOptions(
        session_store=MemorandaSessionStore(memory),
        hooks=recall_hooks(memory),
        mcp_servers={"memoranda": memory_server(memory)},
    )

Needs the package claude-agent-sdk (extra `claude-agent`).
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.importers.chat_messages import parse_timestamp
from memoranda.integrations.frameworks import blocking_calls, prompt_recall
from memoranda.integrations.frameworks.recorded_session import RecordedSession, as_message, split_names
from memoranda.memory.record.framework_objects import join_names, original_of
from memoranda.support.projects import project_of

if TYPE_CHECKING:
    from claude_agent_sdk import (
        HookMatcher,
        McpSdkServerConfig,
        SessionKey,
        SessionListSubkeysKey,
        SessionStoreEntry,
        SessionStoreListEntry,
        SessionSummaryEntry,
    )
    from claude_agent_sdk.types import HookEvent

    from memoranda.api.memory import Memory
    from memoranda.home.session_db import SessionDB
    from memoranda.support.tool import Tool

SOURCE = "claude-agent-sdk"
_FRAMEWORK = "claude"
# The field of a session's row that only this adapter reads.
_SUMMARY = "claude_summary"
_PAGE = 500
# What the program writes in the user's role.
_OUTPUTS = ("<local-command-stdout>", "<local-command-stderr>", "<local-command-caveat>", "<bash-stdout>")
_TITLES = ("customTitle", "aiTitle")


class MemorandaSessionStore:
    """A `SessionStore` of the SDK: every entry of a transcript is a message, found by search and kept as it came.

    An entry is durable when `append` returns. An entry that is sent again is stored once. A secret in an entry is
    replaced, as everywhere in the record.
    """

    def __init__(self, memory: "Memory") -> None:
        self._memory = memory

    async def append(self, key: "SessionKey", entries: "list[SessionStoreEntry]") -> None:
        """Record entries of a transcript, and what the SDK lists about the session."""
        if entries:
            await blocking_calls.run_to_end(self._append, key, entries)

    async def load(self, key: "SessionKey") -> "list[SessionStoreEntry] | None":
        """The entries of a transcript in their order; None when there are none."""
        return await blocking_calls.read(self._load, self._id(key))

    async def list_sessions(self, project_key: str) -> "list[SessionStoreListEntry]":
        """The sessions of a project with the time of their last write."""
        rows = await blocking_calls.read(self._rows_of_project, project_key)
        return [{"session_id": split_names(row["id"])[1], "mtime": _mtime(row)} for row in rows]

    @blocking_calls.asynchronous
    def list_session_summaries(self, project_key: str) -> "list[SessionSummaryEntry]":
        """What the SDK lists about the sessions of a project, kept with each and folded from its new entries."""
        return [self._summary(row) for row in self._rows_of_project(project_key)]

    @blocking_calls.asynchronous
    def delete(self, key: "SessionKey") -> None:
        """Delete a transcript; that of a session with all of its sub-agents."""
        session_id = self._id(key)
        below = [] if key.get("subpath") else [row["id"] for row in self._rows_below(session_id)]
        self._memory.sessions.delete_sessions([*below, session_id])

    async def list_subkeys(self, key: "SessionListSubkeysKey") -> list[str]:
        """The transcripts of the sub-agents of a session."""
        session_id = self._id(key)
        rows = await blocking_calls.read(self._rows_below, session_id)
        return [split_names(row["id"])[2] for row in rows]

    def _id(self, key: "SessionKey | SessionListSubkeysKey") -> str:
        return join_names(
            _FRAMEWORK,
            self._memory.user,
            key["project_key"],
            key["session_id"],
            *filter(None, [str(key.get("subpath") or "")]),
        )

    def _append(self, key: "SessionKey", entries: "Sequence[SessionStoreEntry]") -> None:
        session_id, db = self._id(key), self._memory.sessions
        if db.get_session(session_id) is None:
            self._create_session(db, key, session_id, entries)
        rows = [_message(entry) for entry in entries]
        if key.get("subpath"):
            db.append_messages(session_id, rows)
            return
        RecordedSession(self._memory, SOURCE, session_id).append(rows)
        _set_title(db, session_id, entries)

    def _create_session(
        self, db: "SessionDB", key: "SessionKey", session_id: str, entries: "Sequence[SessionStoreEntry]"
    ) -> None:
        parent = join_names(_FRAMEWORK, self._memory.user, key["project_key"], key["session_id"])
        if key.get("subpath") and db.get_session(parent) is None:
            # A sub-agent may be stored first; its session is not listed before it has entries of its own.
            db.create_session(parent, SOURCE)
        directory = next((entry["cwd"] for entry in map(dict, entries) if isinstance(entry.get("cwd"), str)), None)
        db.create_session(
            session_id,
            SOURCE,
            model=next((model for entry in entries if (model := _model(entry))), None),
            parent_session_id=parent if key.get("subpath") else None,
            relation="delegation" if key.get("subpath") else None,
            started_at=parse_timestamp(entries[0].get("timestamp")),
            project=project_of(directory) if directory else None,
        )

    def _load(self, session_id: str) -> "list[SessionStoreEntry] | None":
        messages = self._memory.sessions.get_messages(session_id, include_inactive=True)
        return [_entry(message) for message in messages] or None

    def _rows_of_project(self, project_key: str) -> list[dict[str, Any]]:
        rows = self._rows_below(join_names(_FRAMEWORK, self._memory.user, project_key))
        return [row for row in rows if row["message_count"] and len(split_names(row["id"])) == 2]

    def _rows_below(self, session_id: str) -> list[dict[str, Any]]:
        """The rows whose ids are below that of a project or a session."""
        if not self._memory.services.has_record:
            return []
        rows: list[dict[str, Any]] = []
        while page := self._memory.sessions.list_sessions_with_prefix(
            f"{session_id}/", _PAGE, after=rows[-1]["id"] if rows else None
        ):
            rows += page
        return rows

    def _summary(self, row: dict[str, Any]) -> "SessionSummaryEntry":
        """The summary that is kept with a session, brought up to date: a cache of what its entries say."""
        from claude_agent_sdk import fold_session_summary  # noqa: PLC0415

        db, (project_key, session_id) = self._memory.sessions, split_names(row["id"])
        kept = row.get(_SUMMARY) or {"summary": None, "last": 0}
        messages = db.get_messages(row["id"], include_inactive=True, after=kept["last"])
        if messages:
            key: SessionKey = {"project_key": project_key, "session_id": session_id}
            summary = fold_session_summary(kept["summary"], key, [_entry(message) for message in messages])
            kept = {"summary": summary, "last": messages[-1]["id"]}
            db.set_extra_fields(row["id"], **{_SUMMARY: kept})
        return {**kept["summary"], "mtime": _mtime(row)}


def recall_hooks(
    memory: "Memory", *, seconds: float = prompt_recall.RECALL_SECONDS
) -> "dict[HookEvent, list[HookMatcher]]":
    """Hooks for `ClaudeAgentOptions`: each prompt gets the earlier conversations that are relevant to it, if any are.

    The context is added to the new prompt, so nothing before it changes; after `seconds` the prompt goes without.
    """
    from claude_agent_sdk import HookMatcher  # noqa: PLC0415

    async def add_recall(hook_input: Any, tool_use_id: str | None, context: Any) -> Any:
        # The name of the directory of a transcript is the key of its project.
        project = Path(str(hook_input.get("transcript_path") or "")).parent.name
        own = join_names(_FRAMEWORK, memory.user, project, str(hook_input.get("session_id") or ""))
        session = RecordedSession(memory, SOURCE, own)
        text = await blocking_calls.read(session.recall, str(hook_input.get("prompt") or ""), seconds)
        if not text:
            return {}
        return {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": text}}

    return {"UserPromptSubmit": [HookMatcher(hooks=[add_recall])]}


def memory_server(memory: "Memory") -> "McpSdkServerConfig":
    """The memory tools, and those of the providers, as an MCP server, for `ClaudeAgentOptions(mcp_servers=…)`."""
    from claude_agent_sdk import SdkMcpTool, create_sdk_mcp_server  # noqa: PLC0415

    session = RecordedSession.of(memory, SOURCE)

    def wrap(tool: "Tool") -> "SdkMcpTool[Any]":
        async def call(arguments: dict[str, Any]) -> dict[str, Any]:
            text = await blocking_calls.run_to_end(session.call, tool.name, arguments)
            answer = json.loads(text)
            failed = not (answer.get("success", True) or "staged" in answer)
            return {"content": [{"type": "text", "text": text}], "is_error": failed}

        return SdkMcpTool(tool.name, tool.description, tool.parameters, call)

    return create_sdk_mcp_server("memoranda", tools=[wrap(tool) for tool in session.tools])


def _message(entry: "SessionStoreEntry") -> dict[str, Any]:
    inner, content = entry.get("message"), None
    path: tuple[str, ...] = ()
    if isinstance(inner, dict) and "content" in inner:
        path, content = ("message", "content"), inner["content"]
    elif isinstance(entry.get("content"), str):
        path, content = ("content",), entry["content"]
    fields: dict[str, Any] = {}
    if isinstance(entry.get("uuid"), str):
        fields["external_id"] = entry["uuid"]
    if (timestamp := parse_timestamp(entry.get("timestamp"))) is not None:
        fields["timestamp"] = timestamp
    if entry.get("isCompactSummary") is True:
        fields["is_summary"] = True
    return as_message(entry, _role(dict(entry), content), path, **fields)


def _entry(message: dict[str, Any]) -> Any:
    return original_of(message) or {}


def _role(entry: dict[str, Any], content: Any) -> str:
    """Who wrote an entry: results of tools, and what the program adds, come in the user's role."""
    inner = entry.get("message")
    role = inner.get("role") if isinstance(inner, dict) else None
    if role != "user":
        return "assistant" if role == "assistant" else "system"
    if isinstance(content, list) and any(
        isinstance(each, dict) and each.get("type") == "tool_result" for each in content
    ):
        return "tool"
    is_output = isinstance(content, str) and content.lstrip().startswith(_OUTPUTS)
    return "system" if entry.get("isMeta") is True or is_output else "user"


def _model(entry: Any) -> str | None:
    message = entry.get("message")
    model = message.get("model") if isinstance(message, dict) else None
    return model if isinstance(model, str) and not model.startswith("<") else None


def _mtime(row: dict[str, Any]) -> int:
    """When a session was last active, in milliseconds; lists and summaries use the same clock."""
    return int(row["last_active"] * 1000)


def _set_title(db: "SessionDB", session_id: str, entries: "Sequence[SessionStoreEntry]") -> None:
    """Give the session the title that the transcript has; a title that the user chose is better than a model's."""
    for name in _TITLES:
        titles = [title for entry in map(dict, entries) if isinstance(title := entry.get(name), str) and title.strip()]
        if titles and (name == _TITLES[0] or db.get_session_title(session_id) is None):
            if titles[-1] != db.get_session_title(session_id):
                db.set_session_title(session_id, db.get_next_title_in_lineage(titles[-1]))
            return
