"""Reads the transcripts of Claude Code, one file per session or sub-agent, as versions 1.0 to 2.1 write them.

The name of a file is the session's id, with which `claude --resume` resumes it. Sub-agents have separate files
(`agent-<id>.jsonl`, beside the session's or below it) or, in older versions, lines in the session's file that are
marked as a side chain; either way they become separate sessions, delegated by the session they worked for.
"""

import hashlib
import json
import shlex
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import as_text, parse_timestamp, to_json, tool_call
from memoranda.importers.coding_agents.project_notes import find_notes_of_claude, read_notes_of_claude
from memoranda.importers.reader_protocol import ImportedConversation, ImportedMessage, ImportItem, ReadEvent, Skipped
from memoranda.importers.source_files import Line, find_files, item_at, read_json_lines, read_line_events
from memoranda.importers.sources import in_directory
from memoranda.safety.fence import strip_noted_blocks
from memoranda.support.lazy_dataclass import dataclass

Entry = dict[str, Any]
_AGENT_MARK = "-agent-"
_UNKNOWN_AGENT = "sidechain"
_MAX_OPEN_CALLS = 200
# A summary names the last message that it covers; it belongs to this session if that message was read recently.
_RECENT_MESSAGES = 500
_NO_MODEL = "<synthetic>"
_FACTS = {"directory": "cwd", "version": "version", "git_branch": "gitBranch", "parent": "sessionId"}
_MAX_FACT_CHARS = 4096
_MAX_UNKNOWN_CHARS = 20_000
# Only the service that made these can read them.
_OPAQUE = ("redacted_thinking",)
# Output that the program writes in the user's role.
_OUTPUTS = ("<local-command-stdout>", "<local-command-stderr>", "<local-command-caveat>", "<bash-stdout>")
# The field of a title, and its rank: a title that the user set is the best.
_TITLES = {"custom-title": ("customTitle", 3), "ai-title": ("aiTitle", 2), "summary": ("summary", 1)}


class ClaudeCode:
    name = "claude-code"

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the transcripts; sessions before sub-agents, the oldest first, so that parents precede branches."""
        if path is None:
            directories = [Path.home() / ".claude" / "projects", Path.home() / ".config" / "claude" / "projects"]
        elif single := item_at(path, _label(path)):
            return [single]
        else:
            directories = [path / "projects" if (path / "projects").is_dir() else path]
        found = [item for directory in directories for item in find_files(directory, _is_transcript, "session")]
        items = [ImportItem(item.file, item.size, item.modified_at, _label(item.file)) for item in found]
        items.sort(key=lambda item: (item.label != "session", item.modified_at, str(item.file)))
        return items + [item for directory in directories for item in find_notes_of_claude(directory)]

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        if item.file.suffix == ".md":
            return read_notes_of_claude(item)
        transcript = _Transcript(item)
        return read_line_events(read_json_lines(item), transcript.line_events, transcript.state)

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return the command, which works in the session's directory; a sub-agent is resumed with its session."""
        session = host_id.split(_AGENT_MARK, maxsplit=1)[0]
        return in_directory(f"claude --resume {shlex.quote(session)}", directory)


def _is_transcript(file: Path) -> bool:
    return file.suffix == ".jsonl" and file.name != "history.jsonl"


def _label(file: Path) -> str:
    return "sub-agent" if file.name.startswith("agent-") else "session"


@dataclass(slots=True)
class _SessionFacts:
    """What the lines so far say about the session; a checkpoint stores it."""

    facts: dict[str, Any] = field(default_factory=dict)
    calls: dict[str, str] = field(default_factory=dict)
    title_rank: int = 0

    @classmethod
    def restore(cls, item: ImportItem) -> "_SessionFacts":
        kept = item.reader_state()
        return cls(kept.get("facts", {}), kept.get("calls", {}), kept.get("rank", 0))

    def state(self) -> str:
        while len(self.calls) > _MAX_OPEN_CALLS:
            del self.calls[next(iter(self.calls))]
        return json.dumps({"facts": self.facts, "calls": self.calls, "rank": self.title_rank})


class _Transcript:
    """One file, line by line."""

    def __init__(self, item: ImportItem) -> None:
        self._file = item.file
        self._is_agent = _label(item.file) == "sub-agent"
        self._known = _SessionFacts.restore(item)
        self._recent: deque[Any] = deque(maxlen=_RECENT_MESSAGES)
        self._yielded: tuple[Any, ...] = ()

    def state(self) -> str:
        return self._known.state()

    def line_events(self, line: Line) -> Iterator[ReadEvent]:
        entry = line.value
        self._recent.append(entry.get("uuid"))
        has_new_title = self._learn(entry)
        messages = _entry_messages(entry, self._known.calls)
        if (messages or has_new_title) and (conversation := self._conversation(entry)):
            yield conversation
        if not messages:
            yield Skipped(_skipped_label(entry))
            return
        name, at = _external_id(line), entry.get("timestamp")
        for number, message in enumerate(messages):
            message["external_id"], message["timestamp"] = f"{name}:{number}" if number else name, at
            yield ImportedMessage(message, line.number)

    def _learn(self, entry: Entry) -> bool:
        """Store what a line says about the session; return whether it sets a new title."""
        facts = self._known.facts
        for name, key in _FACTS.items():
            if name not in facts and _is_fact(value := entry.get(key)):
                facts[name] = value
        message = entry.get("message")
        if "model" not in facts and isinstance(message, dict) and _is_fact(model := message.get("model")):
            facts["model"] = model
        if "started_at" not in facts and (at := parse_timestamp(entry.get("timestamp"))) is not None:
            facts["started_at"] = at
        found = _title(entry)
        if found is None or found[1] < self._known.title_rank or self._is_agent:
            return False
        if found[1] == 1 and entry.get("leafUuid") not in self._recent:
            # A summary of another session.
            return False
        facts["title"], self._known.title_rank = found
        return True

    def _conversation(self, entry: Entry) -> ImportedConversation | None:
        """Return the conversation of a line; None if the same one was yielded last."""
        facts = self._known.facts
        is_side = entry.get("isSidechain") is True and not self._is_agent
        agent = entry.get("agentId") if is_side else None
        identity = (is_side, agent, *map(facts.get, ("title", "model", "directory")))
        if identity == self._yielded:
            return None
        self._yielded = identity
        host_id, parent = self._file.stem, None
        if self._is_agent:
            parent = str(facts.get("parent") or self._file.parent.parent.name)
            host_id = f"{parent}{_AGENT_MARK}{self._file.stem.removeprefix('agent-')}"
        elif is_side:
            parent, host_id = host_id, f"{host_id}{_AGENT_MARK}{agent if isinstance(agent, str) else _UNKNOWN_AGENT}"
        return ImportedConversation(
            host_id,
            None if parent else facts.get("title"),
            facts.get("model"),
            facts.get("directory"),
            parse_timestamp(entry.get("timestamp")) if is_side else facts.get("started_at"),
            parent,
            "delegation" if parent else None,
            ClaudeCode.name,
            {f"claude_code_{name}": facts[name] for name in ("version", "git_branch") if name in facts},
        )


def _is_fact(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MAX_FACT_CHARS and value != _NO_MODEL


def _title(entry: Entry) -> tuple[str, int] | None:
    """Return the title in a line, with its rank."""
    kind = entry.get("type")
    if not isinstance(kind, str) or kind not in _TITLES:
        return None
    field, rank = _TITLES[kind]
    title = entry.get(field)
    return (title, rank) if isinstance(title, str) and title.strip() else None


def _entry_messages(entry: Entry, calls: dict[str, str]) -> list[Entry]:
    """Return the messages of a line; `calls` are the tools that have not returned a result yet."""
    kind, message = entry.get("type"), entry.get("message")
    if isinstance(message, dict) and "content" in message:
        return _convert_message(entry, message, calls)
    if kind == "system" and isinstance(entry.get("content"), str) and entry["content"].strip():
        return [{"role": "system", "content": entry["content"]}]
    if kind == "attachment" and (prompt := _queued_prompt(entry)):
        return list(_user_messages(_blocks(prompt), calls))
    return []


def _convert_message(entry: Entry, message: Entry, calls: dict[str, str]) -> list[dict[str, Any]]:
    blocks = _blocks(message["content"])
    if (message.get("role") or entry.get("type")) == "assistant":
        converted = _assistant_message(blocks)
        if converted is None:
            return []
        for call in converted.get("tool_calls", ()):
            calls[call["id"]] = call["function"]["name"]
        if isinstance(message.get("stop_reason"), str):
            converted["finish_reason"] = message["stop_reason"]
        return [converted]
    messages = list(_user_messages(blocks, calls))
    for converted in messages:
        if converted["role"] == "user":
            _mark_injected(entry, converted)
    return messages


def _mark_injected(entry: Entry, message: dict[str, Any]) -> None:
    """Mark text that the program, not the user, wrote in the user's role."""
    if entry.get("isCompactSummary") is True:
        message["is_summary"] = True
    elif entry.get("isMeta") is True or str(message["content"]).lstrip().startswith(_OUTPUTS):
        message["role"] = "system"


def _queued_prompt(entry: Entry) -> Any:
    """Return what the user typed while the assistant was working; it is recorded nowhere else."""
    attachment = entry.get("attachment")
    if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
        return attachment.get("prompt")
    return None


def _skipped_label(entry: Entry) -> str:
    """Return the label of a line without messages."""
    kind = str(entry.get("type") or "without type")[:40]
    attachment, subtype = entry.get("attachment"), entry.get("subtype")
    if isinstance(attachment, dict):
        subtype = attachment.get("type")
    return f"{kind} ({subtype[:40]})" if isinstance(subtype, str) and subtype else kind


def _external_id(line: Line) -> str:
    """Return the message's own id; without one, an id made from its line number and content."""
    found = line.value.get("uuid")
    if isinstance(found, str) and found:
        return found
    return f"{line.number}-{hashlib.sha256(line.raw.rstrip()).hexdigest()[:16]}"


def _blocks(content: Any) -> list[Entry]:
    """Return content in any form as a list of blocks."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return [] if content is None else [{"type": "text", "text": to_json(content)}]
    return [block if isinstance(block, dict) else {"type": "text", "text": as_text(block)} for block in content]


def _block_text(block: Entry) -> str:
    """Return the text of a block; for other blocks, a placeholder with their size."""
    kind = block.get("type")
    if kind in _OPAQUE:
        return ""
    if isinstance(block.get("text"), str):
        return str(block["text"])
    if kind in ("image", "document"):
        source = block.get("source")
        source = source if isinstance(source, dict) else {}
        data = source.get("data")
        size = f", {len(data) * 3 // 4:,} bytes" if isinstance(data, str) else ""
        return f"[{kind}: {source.get('media_type') or 'unknown'}{size}, not imported]"
    text = to_json(block)
    return text if len(text) <= _MAX_UNKNOWN_CHARS else f"[{kind}: {len(text):,} characters, not imported]"


def _assistant_message(blocks: list[Entry]) -> Entry | None:
    """Return the assistant's text, reasoning and tool calls as a message; None when it is empty."""
    text, reasoning, calls = [], [], []
    for block in blocks:
        kind = block.get("type")
        if kind == "thinking" and isinstance(block.get("thinking"), str):
            reasoning.append(block["thinking"])
        elif kind in ("tool_use", "server_tool_use"):
            calls.append(tool_call(as_text(block.get("id")), as_text(block.get("name")), block.get("input")))
        else:
            text.append(_block_text(block))
    message: Entry = {"role": "assistant", "content": _join_texts(text)}
    if joined := _join_texts(reasoning):
        message["reasoning"] = joined
    if calls:
        message["tool_calls"] = calls
    return message if message["content"] or len(message) > 2 else None


def _user_messages(blocks: list[Entry], tool_names: dict[str, str]) -> Iterator[Entry]:
    """Yield every tool result as a separate message, and the user's text between them."""
    text: list[str] = []
    for block in blocks:
        if block.get("type") != "tool_result":
            text.append(_without_recalled_text(_block_text(block)))
            continue
        if between := _join_texts(text):
            yield {"role": "user", "content": between}
        text = []
        yield _tool_result(block, tool_names)
    if between := _join_texts(text):
        yield {"role": "user", "content": between}


def _without_recalled_text(text: str) -> str:
    """Remove the text that our hook recalled: older versions of Claude Code put it into the user's message."""
    kept = strip_noted_blocks(text)
    return text if kept == text else kept.strip()


def _tool_result(block: Entry, tool_names: dict[str, str]) -> Entry:
    call = as_text(block.get("tool_use_id"))
    texts = [_block_text(part) for part in _blocks(block.get("content"))]
    message: Entry = {"role": "tool", "content": _join_texts(texts), "tool_call_id": call}
    if name := tool_names.pop(call, ""):
        message["tool_name"] = name
    if block.get("is_error") is True:
        message["is_error"] = True
    return message


def _join_texts(texts: list[str]) -> str:
    return "\n\n".join([text for text in texts if text and not text.isspace()])
