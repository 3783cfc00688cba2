"""Reads the transcripts of Claude Code, one file per session or sub-agent, as versions 1.0 to 2.1.328 write them.

The name of a file is the session's id, with which `claude --resume` resumes it. Sub-agents have separate files
(`agent-<id>.jsonl`, beside the session's or below it) or, in older versions, lines in the session's file that are
marked as a side chain; either way they become separate sessions, delegated by the session they worked for.

Claude Code writes much in the user's role that no person wrote: reminders, notifications, expanded skills, feedback of
hooks. A message has the role `user` only if the line says that a person or a caller sent it (`origin`, `promptSource`).
Lines of older versions do not say so; there, what the structure shows to be the program's is not the user's. All other
text in the user's role gets the role `system`, and so does what later versions add.
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
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.lazy_pattern import compile_later

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
# Marks text of the program that stands beside a prompt in one line.
_ADDED = "added"
# Only the service that made these can read them.
_OPAQUE = ("redacted_thinking",)
# Who may send a prompt, by the field `promptSource`.
_TYPED = ("typed", "queued", "suggestion_accepted", "sdk")
# Fields of lines in the user's role that the program wrote.
_OF_THE_PROGRAM = (
    "isMeta", "isCompactSummary", "isSidechain", "isVirtual", "isVisibleInTranscriptOnly", "textNotTyped",
    "turnCompanion", "toolUseResult", "sourceToolUseID", "sourceToolAssistantUUID",
)  # fmt: skip
# What the program wrote around a command that the user typed: `/name arguments` or `! command`.
_COMMAND = compile_later(r"\s*<(?:command-(?:message|name)|bash-input)>")
_COMMAND_ELEMENT = compile_later(r"(?s)<(command-(?:message|name|args)|bash-input)>(.*?)</\1>")
# Text of the program in versions that do not name the sender: from a tag to a closing tag.
_ELEMENT = compile_later(r"(?s)\s*<[a-zA-Z][\w-]*(?:\s[^>]*)?>.*</[\w-]+>\s*")
_INTERRUPTED = "[Request interrupted by user"
# The text of a message; blocks of other kinds are never words of the user.
_TEXT_BLOCKS = ("text", "image")
# The texts of the program that are recorded, by subtype; versions 1.0 wrote none.
_SYSTEM_TEXTS = (
    None, "informational", "compact_boundary", "local_command", "scheduled_task_fire", "away_summary",
    "permission_retry", "model_fallback", "model_refusal_fallback", "model_refusal_no_fallback",
)  # fmt: skip
# All kinds of lines that version 2.1.328 writes, and those that earlier versions wrote.
_KINDS = frozenset({
    "user", "assistant", "system", "attachment", "progress", "summary", "custom-title", "ai-title", "last-prompt",
    "agent-color", "agent-name", "agent-setting", "api-request", "api-request-blob", "api-request-resumed",
    "api-request-shape", "artifact-autoreact-ledger", "artifact-comment-monitor", "atis-latch",
    "attribution-snapshot", "bridge-session", "content-replacement", "continued-in", "cost-state",
    "data-flow-incomplete", "data-flow-records", "derived-from", "dev-mods", "ended-by-model", "file-history-delta",
    "file-history-snapshot", "fork-context-ref", "frame-link", "history-suppression", "isolation-latch",
    "memory-mode", "mode", "observer-ref", "permission-mode", "pr-link", "queue-operation", "relocated", "repl-mode",
    "resume-head-vouch", "session-owner", "tag", "tools-used", "worktree-state",
})  # fmt: skip
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
    senders: str = ""
    """The last version of Claude Code that named the sender of a prompt in this file."""
    prompt: str = ""
    """The id of the last typed prompt; the program gives the same id to what it writes for that prompt."""
    command: str = ""
    """The id of the last line with a typed command."""

    @classmethod
    def restore(cls, item: ImportItem) -> "_SessionFacts":
        kept = item.reader_state()
        typed = (str(kept.get(name, "")) for name in ("senders", "prompt", "command"))
        return cls(kept.get("facts", {}), kept.get("calls", {}), kept.get("rank", 0), *typed)

    def state(self) -> str:
        while len(self.calls) > _MAX_OPEN_CALLS:
            del self.calls[next(iter(self.calls))]
        typed = {"senders": self.senders, "prompt": self.prompt, "command": self.command}
        return json.dumps({"facts": self.facts, "calls": self.calls, "rank": self.title_rank, **typed})

    def names_sender(self, entry: Entry) -> bool:
        """Whether the version that wrote a line names the senders of prompts, in this line or an earlier one."""
        version = as_text(entry.get("version"))
        if "origin" in entry or "promptSource" in entry:
            self.senders = version
        return self.senders == version != ""

    def was_typed(self, entry: Entry, texts: Sequence[str]) -> bool:
        """Whether a person typed the texts of a line in the user's role, or a caller sent them."""
        if not texts or any(entry.get(name) for name in _OF_THE_PROGRAM):
            return False
        is_command = _COMMAND.match(texts[0]) is not None
        prompt, parent = as_text(entry.get("promptId")), as_text(entry.get("parentUuid"))
        if self.names_sender(entry) and not (is_command and _sender(entry) == (None, None)):
            is_typed = _is_sent(*_sender(entry))
        elif prompt and prompt == self.prompt:
            is_typed = False
        else:
            is_expansion = not prompt and parent == self.command != ""
            is_element = not is_command and all(map(_ELEMENT.fullmatch, texts))
            is_typed = not (is_expansion or is_element or texts[0].startswith(_INTERRUPTED))
        if is_typed:
            self.prompt, self.command = prompt, as_text(entry.get("uuid")) if is_command else ""
        return is_typed


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
        messages = _entry_messages(entry, self._known)
        if (messages or has_new_title) and (conversation := self._conversation(entry)):
            yield conversation
        if not messages:
            yield _skipped(entry)
            return
        name, at, number = _external_id(line), entry.get("timestamp"), 0
        for message in messages:
            message["timestamp"] = at
            if message.pop(_ADDED, False):
                # The other messages of a line keep the numbers that they always had.
                message["external_id"] = f"{name}:{_ADDED}{number}"
            else:
                message["external_id"], number = f"{name}:{number}" if number else name, number + 1
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


def _entry_messages(entry: Entry, known: _SessionFacts) -> list[Entry]:
    """Return the messages of a line."""
    kind, message = entry.get("type"), entry.get("message")
    if kind in ("user", "assistant") and isinstance(message, dict) and "content" in message:
        return _convert_message(entry, message, known)
    if _is_system_text(entry):
        return [{"role": "system", "content": entry["content"]}] if entry.get("subtype") in _SYSTEM_TEXTS else []
    if kind == "attachment" and isinstance(queued := entry.get("attachment"), dict):
        return _queued_messages(entry, queued, known)
    return []


def _is_system_text(entry: Entry) -> bool:
    content = entry.get("content")
    return entry.get("type") == "system" and isinstance(content, str) and bool(content.strip())


def _convert_message(entry: Entry, message: Entry, known: _SessionFacts) -> list[dict[str, Any]]:
    blocks = _blocks(message["content"])
    if entry["type"] == "assistant":
        converted = _assistant_message(blocks)
        if converted is None:
            return []
        for call in converted.get("tool_calls", ()):
            known.calls[call["id"]] = call["function"]["name"]
        if isinstance(message.get("stop_reason"), str):
            converted["finish_reason"] = message["stop_reason"]
        return [converted]
    if entry.get("isCompactSummary") is True:
        return [{"role": "user", "content": _join_texts([*map(_block_text, blocks)]), "is_summary": True}]
    return _user_messages(entry, blocks, known)


def _queued_messages(entry: Entry, queued: Entry, known: _SessionFacts) -> list[Entry]:
    """Return what the user typed while the assistant was working; it is recorded nowhere else."""
    if queued.get("type") != "queued_command":
        return []
    is_prompt = queued.get("commandMode", "prompt") == "prompt"
    fields = {**queued, "uuid": entry.get("uuid"), "version": entry.get("version"), "isMeta": not is_prompt}
    return _user_messages(
        fields | ({"isMeta": True} if queued.get("isMeta") else {}), _blocks(queued.get("prompt")), known
    )


def _sender(entry: Entry) -> tuple[Any, Any]:
    """Return who sent a line, by its fields `origin` and `promptSource`."""
    origin = entry.get("origin")
    return origin.get("kind") if isinstance(origin, dict) else origin, entry.get("promptSource")


def _is_sent(origin: Any, source: Any) -> bool:
    return origin in (None, "human") and (source in _TYPED if source is not None else origin == "human")


def _skipped(entry: Entry) -> Skipped:
    """Return the label of a line without messages."""
    kind = str(entry.get("type") or "without type")[:40]
    attachment, subtype = entry.get("attachment"), entry.get("subtype")
    if isinstance(attachment, dict):
        subtype = attachment.get("type")
    label = f"{kind} ({subtype[:40]})" if isinstance(subtype, str) and subtype else kind
    return Skipped(label, is_unknown=kind not in _KINDS or _is_system_text(entry))


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


def _user_messages(entry: Entry, blocks: list[Entry], known: _SessionFacts) -> list[Entry]:
    """Return every tool result as a separate message, and between them the user's text and that of the program."""
    own = [number for number, block in enumerate(blocks) if block.get("type") in _TEXT_BLOCKS]
    if len(own) > 1:
        # A selection or a reminder is a block beside the prompt.
        own = [number for number in own if not _ELEMENT.fullmatch(_block_text(blocks[number]))] or own
    has_result = any(block.get("type") == "tool_result" for block in blocks)
    if has_result or not known.was_typed(entry, [_block_text(blocks[number]) for number in own]):
        own = []
    messages: list[Entry] = []
    of_user: list[str] = []
    of_program: list[str] = []

    def flush() -> None:
        if typed := _join_texts(of_user):
            messages.append({"role": "user", "content": _as_typed(typed)})
        if added := _join_texts(of_program):
            messages.append({"role": "system", "content": added, **({_ADDED: True} if typed else {})})
        of_user.clear()
        of_program.clear()

    for number, block in enumerate(blocks):
        if block.get("type") == "tool_result":
            flush()
            messages.append(_tool_result(block, known.calls))
        else:
            (of_user if number in own else of_program).append(_block_text(block))
    flush()
    return messages


def _as_typed(text: str) -> str:
    """Return a command as the user typed it; any other text stays as it is, also one that has more than a command."""
    elements = _COMMAND_ELEMENT.findall(text)
    inside = {tag: words.strip() for tag, words in elements}
    name, arguments, shell = (inside.get(tag, "") for tag in ("command-name", "command-args", "bash-input"))
    if len(inside) < len(elements) or (shell and len(inside) > 1) or _COMMAND_ELEMENT.sub("", text).strip():
        return text
    return f"! {shell}" if shell else f"{name} {arguments}".strip() if name else text


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
