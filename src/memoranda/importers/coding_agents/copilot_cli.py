"""Reads the sessions of GitHub Copilot's command line from `~/.copilot/session-state`.

Each session is a directory with `events.jsonl`, which only grows, and `workspace.yaml` with the session's name.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import (
    call_parts,
    dicts_in,
    get_field,
    get_text,
    parse_timestamp,
    part_events,
    text_message,
    tool_result_message,
)
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, ReadEvent, Skipped
from memoranda.importers.source_files import (
    Line,
    find_items,
    item_beside,
    read_bytes,
    read_json_lines,
    read_line_events,
)
from memoranda.importers.sources import in_directory

_EVENTS = "events.jsonl"
_FOLDER = "session-state"


class CopilotCli:
    name = "copilot-cli"

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        own = Path.home() / ".copilot" / _FOLDER
        return find_items(path, [own], lambda file: file.name == _EVENTS or _is_early(file), "session")

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        session = item.file.parent.name if item.file.name == _EVENTS else item.file.stem
        yield ImportedConversation(session, _title(item))
        yield from read_line_events(read_json_lines(item), partial(_events, session))

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return the command that resumes the session; a sub-agent's session cannot be resumed."""
        return "" if "/" in host_id else in_directory(f"copilot --resume={host_id}", directory)


def _is_early(file: Path) -> bool:
    """Whether a file is a session of the first versions, which had no directory for each."""
    return file.suffix == ".jsonl" and file.parent.name == _FOLDER


def _title(item: ImportItem) -> str | None:
    found = item_beside(item.file, item.file.with_name("workspace.yaml"), "workspace")
    raw = read_bytes(found) if found else b""
    lines = raw.decode("utf-8", "replace").splitlines() if isinstance(raw, bytes) else []
    fields = dict(line.split(": ", 1) for line in lines if ": " in line and not line.startswith((" ", "-")))
    return (fields.get("name") or fields.get("summary") or "").strip().strip("\"'") or None


def _events(session: str, line: Line) -> Iterator[ReadEvent]:
    kind, data = get_text(line.value, "type") or "", line.value.get("data")
    if kind in ("session.start", "session.resume"):
        started = parse_timestamp(get_field(data, "startTime"))
        directory = get_text(data, "context", "cwd")
        yield ImportedConversation(session, None, get_text(data, "selectedModel"), directory, started)
        return
    if kind == "session.model_change":
        yield ImportedConversation(session, model=get_text(data, "newModel"))
        return
    messages = list(_messages(kind, data, line))
    agent = get_text(data, "parentToolCallId")
    if agent and messages:
        yield ImportedConversation(f"{session}/{agent}", parent_host_id=session, relation="delegation")
    yield from messages
    if agent and messages:
        yield ImportedConversation(session)


def _messages(kind: str, data: Any, line: Line) -> Iterator[ReadEvent]:
    name, at = get_text(line.value, "id") or str(line.number), line.value.get("timestamp")
    if kind == "user.message":
        if get_text(data, "source") not in (None, "user"):
            yield Skipped("text that Copilot added to a prompt")
        elif text := get_text(data, "content"):
            yield text_message("user", text, name, at, line.number)
    elif kind == "assistant.message":
        parts: list[dict[str, Any]] = []
        if thought := get_text(data, "reasoningText"):
            parts.append({"type": "thinking", "thinking": thought})
        if text := get_text(data, "content"):
            parts.append({"type": "text", "text": text})
        for call in dicts_in(get_field(data, "toolRequests")):
            parts += call_parts((str(call.get("toolCallId")), str(call.get("name")), call.get("arguments")), None)
        yield from part_events("assistant", parts, name, at)
    elif kind == "tool.execution_complete":
        text = get_text(data, "result", "content") or get_text(data, "error", "message") or ""
        yield tool_result_message((str(get_field(data, "toolCallId")), ""), text, name, at, line.number)
    elif kind == "session.compaction_complete" and (text := get_text(data, "summaryContent")):
        yield text_message("user", text, name, at, line.number, is_summary=True)
    else:
        yield Skipped(f"event: {kind[:40]}")
