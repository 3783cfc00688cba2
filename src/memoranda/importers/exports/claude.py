"""Reads the export of Claude (claude.ai and its apps): `conversations.json` of any year, packed or unpacked.

Older exports are plain lists of messages. In newer ones each message names the one it follows, so edited and retried
messages make a tree; the branch that ends in the latest message is the session. An answer that calls tools becomes
several messages.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import parse_timestamp, tool_call
from memoranda.importers.exports.archives import ArrayElement, find_exports
from memoranda.importers.exports.conversation_tree import ConversationTree, conversation_of, message_name, read_list
from memoranda.importers.reader_protocol import ImportedConversation, ImportedMessage, ImportItem, ReadEvent, Skipped
from memoranda.support.lazy_dataclass import dataclass

_ROLES = {"human": "user"}
_EXTRACTED = "extracted_content"
_WITHOUT_TEXT = ("token_budget", "flag")
Message = dict[str, Any]
_FACTS = ("summary", "updated_at", "project", "is_starred", "settings")


class ClaudeExport:
    name = "claude"

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        return find_exports(path, "chat_messages", "mapping")

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        return read_list(item, _ClaudeChat)

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return the address of the conversation, where a browser continues it."""
        return f"https://claude.ai/chat/{conversation_of(host_id)}"


@dataclass(slots=True)
class _MessageParts:
    """A message that is being built."""

    texts: list[str] = field(default_factory=list)
    parts: list[Message] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[Message] = field(default_factory=list)
    started_at: float | None = None


def chat_messages(message: Mapping[str, Any], name: str) -> list[Message]:
    """Return the messages in chat form: text, tool results, and the text after them; none if the message is empty."""
    sender = str(message.get("sender") or message.get("role") or "")
    role = _ROLES.get(sender, sender)
    found = [piece for piece in _pieces(message, role, name) if _has_content(piece)]
    created = parse_timestamp(message.get("created_at"))
    for number, piece in enumerate(found):
        piece["external_id"] = name if number == 0 else f"{name}:{number}"
        piece.setdefault("timestamp", created)
    return found


def _pieces(message: Mapping[str, Any], role: str, name: str) -> Iterator[Message]:
    blocks = message.get("content")
    piece, last_call = _MessageParts(), ""
    for index, block in enumerate(blocks if isinstance(blocks, list) else []):
        kind = block.get("type") if isinstance(block, Mapping) else None
        if kind == "tool_result":
            yield _build_message(piece, role)
            piece = _MessageParts()
            yield _tool_result(block, last_call)
            continue
        if kind == "tool_use":
            last_call = str(block.get("id") or f"{name}-{index}")
            piece.calls.append(tool_call(last_call, str(block.get("name")), block.get("input")))
        else:
            _add_block(piece, block, kind)
        if piece.started_at is None and isinstance(block, Mapping):
            piece.started_at = parse_timestamp(block.get("start_timestamp"))
    has_text = piece.texts or piece.parts or piece.thoughts or last_call
    text = message.get("text")
    if not has_text and isinstance(text, str):
        # Older exports have no blocks.
        piece.texts.append(text)
    piece.parts += _attachments(message)
    yield _build_message(piece, role)


def _add_block(piece: _MessageParts, block: Any, kind: Any) -> None:
    if kind == "thinking":
        piece.thoughts.append(str(block.get("thinking") or ""))
    elif kind in _WITHOUT_TEXT:
        return
    elif isinstance(block, Mapping) and isinstance(block.get("text"), str):
        piece.texts.append(block["text"])
        if block.get("citations"):
            piece.parts.append({"type": "citations", "citations": block["citations"]})
    elif isinstance(block, str):
        piece.texts.append(block)
    elif block:
        # A block of an unknown kind is kept unchanged.
        piece.parts.append(dict(block) if isinstance(block, Mapping) else {"type": "part", "value": block})


def _tool_result(block: Mapping[str, Any], last_call: str) -> Message:
    content = block.get("content")
    if isinstance(content, list) and all(_is_text(part) for part in content):
        content = "\n".join(part["text"] for part in content)
    found: Message = {
        "role": "tool",
        "content": content or "",
        "tool_name": str(block.get("name") or ""),
        "tool_call_id": str(block.get("tool_use_id") or last_call),
    }
    if block.get("is_error"):
        found["is_error"] = True
    if (started_at := parse_timestamp(block.get("start_timestamp"))) is not None:
        found["timestamp"] = started_at
    return found


def _attachments(message: Mapping[str, Any]) -> Iterator[Message]:
    """Yield the attachments: pasted text and documents with their text, other files by their names."""
    seen: set[str] = set()
    for kind, field_name in (("attachment", "attachments"), ("file", "files"), ("file", "files_v2")):
        entries = message.get(field_name)
        for entry in entries if isinstance(entries, list) else []:
            if not isinstance(entry, Mapping):
                continue
            file_id = str(entry.get("file_uuid") or entry.get("id") or f"{kind} {entry.get('file_name')}")
            if kind == "file" and file_id in seen:
                continue
            seen.add(file_id)
            kept = {key: value for key, value in entry.items() if value not in (None, "") and key != _EXTRACTED}
            text = entry.get(_EXTRACTED)
            yield {"type": kind, **kept} | ({"text": text} if isinstance(text, str) and text else {})


def _build_message(piece: _MessageParts, role: str) -> Message:
    text = "\n".join(filter(None, piece.texts))
    content: Any = text or None
    if piece.parts:
        content = [*([{"type": "text", "text": text}] if text else []), *piece.parts]
    found: Message = {"role": role, "content": content}
    if thoughts := "\n\n".join(filter(None, piece.thoughts)):
        found["reasoning"] = thoughts
    if piece.calls:
        found["tool_calls"] = piece.calls
    if piece.started_at is not None:
        found["timestamp"] = piece.started_at
    return found


def _has_content(message: Message) -> bool:
    return message["role"] == "tool" or any(message.get(name) for name in ("content", "reasoning", "tool_calls"))


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str)


class _ClaudeChat(ConversationTree):
    def __init__(self, element: ArrayElement, file: Path) -> None:
        super().__init__(element, file)
        self._messages: dict[str, Mapping[str, Any]] = {}

    def events(self) -> Iterator[ReadEvent]:
        host_id, listed = self._value.get("uuid"), self._value.get("chat_messages")
        if not isinstance(host_id, str) or not host_id or not isinstance(listed, list):
            yield self._problem(f"element {self._number} of the list is not a conversation: it has no uuid or messages")
            return
        yield from self._gather(listed)
        yield from self._branch_events(host_id, self._parents(), self._current())

    def _gather(self, listed: list[Any]) -> Iterator[ReadEvent]:
        """Collect the messages by id; one without an id, or with a repeated one, gets its number."""
        for number, message in enumerate(listed, start=1):
            sender = (message.get("sender") or message.get("role")) if isinstance(message, Mapping) else None
            if not isinstance(sender, str):
                yield self._problem(f"message {number} of conversation {self._value['uuid']} does not say who wrote it")
                continue
            name = message.get("uuid")
            if not isinstance(name, str) or not name or name in self._messages:
                name = f"#{number}"
            self._messages[name] = message

    def _parents(self) -> dict[str, str | None]:
        """Return the message that each one follows; without that information, the one before it in the list."""
        is_tree = any(message.get("parent_message_uuid") for message in self._messages.values())
        parents: dict[str, str | None] = {}
        before: str | None = None
        for name, message in self._messages.items():
            parent = message.get("parent_message_uuid")
            parents[name] = (parent if isinstance(parent, str) else None) if is_tree else before
            before = name
        return parents

    def _current(self) -> str | None:
        """Return the last message of the visible branch: the one that the export names, else the latest one."""
        leaf = self._value.get("current_leaf_message_uuid")
        if isinstance(leaf, str):
            return leaf
        times = {name: parse_timestamp(message.get("created_at")) or 0.0 for name, message in self._messages.items()}
        # If times are equal, the later one in the list. The latest message has no answer, so it ends a branch.
        return max(reversed(list(times)), key=lambda name: times[name], default=None) if any(times.values()) else None

    def _message_events(self, name: str) -> Iterator[ReadEvent]:
        found = chat_messages(self._messages[name], message_name(self._value["uuid"], name))
        if not found:
            yield Skipped("empty message")
        for message in found:
            yield ImportedMessage(message, self._line)

    def _conversation(self, host_id: str, parent: str | None, imported: list[ImportedMessage]) -> ImportedConversation:
        value = self._value
        title, model = value.get("name"), value.get("model")
        return ImportedConversation(
            host_id,
            title if isinstance(title, str) and title and parent is None else None,
            model if isinstance(model, str) else None,
            None,
            parse_timestamp(value.get("created_at")) if parent is None else imported[0].message.get("timestamp"),
            parent,
            "branch" if parent else None,
            extra={f"claude_{name}": value[name] for name in _FACTS if value.get(name)},
        )
