"""Reads the conversations of Cursor: those of its command line (`cursor-agent`) here, those of the editor beside it.

The editor keeps them in SQLite databases with its settings, the command line in `~/.cursor`, or in `cursor` in the
directory where programs keep their settings. On Linux, users can move that directory.

A conversation of the command line is a database, `chats/<project>/<id>/store.db`. Its blobs are named by their digest.
Some are messages as JSON, others lists of blobs in the wire format of protocol buffers; the table `meta` names the list
that is the current conversation. A message that a summary replaced is no longer in a list, but still in the database.

Cursor also writes transcripts for its own agents, `projects/<project>/agent-transcripts/<id>….jsonl`. They have no
times and no tool results, so they are read only for conversations that are in no database. Older versions wrote plain
text (`.txt`) with a line for the speaker.
"""

import json
import re
import shlex
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from glob import escape
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import (
    as_text,
    dicts_in,
    get_field,
    get_text,
    parse_timestamp,
    reasoning_message,
    short_digest,
    text_message,
    tool_call_message,
    tool_result_message,
)
from memoranda.importers.coding_agents import cursor_editor as editor_database
from memoranda.importers.reader_protocol import (
    ImportedConversation,
    ImportedMessage,
    ImportItem,
    Problem,
    ReadError,
    ReadEvent,
    Skipped,
)
from memoranda.importers.source_databases import database_at, open_database, rows, tables
from memoranda.importers.source_files import (
    Line,
    find_files,
    item_at,
    read_bytes,
    read_json_lines,
    read_line_events,
    settings_directories,
)
from memoranda.importers.sources import in_directory
from memoranda.support.json_object import parse_object

_QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_WORKSPACE = re.compile(r"^Workspace Path: *(\S.*?) *$", re.MULTILINE)
_CONTEXT = re.compile(
    r"\s*<(user_info|system_reminder|open_and_recently_viewed_files|git_status|project_layout|rules)\b"
)
_CALLS = ("tool-call", "tool_use", "tool_call")
_RESULTS = ("tool-result", "tool_result")
_DIGEST = 32
_MESSAGES = 1
_BYTES = 2
_UNTITLED = "New Agent"
FORMAT = "transcript"
_SPEAKER = re.compile(r"^(user|assistant|A):\s*$", re.MULTILINE)
_QUERY_TAG = re.compile(r"</?user_query>")
_AGENT = "chat of the command line"
_TRANSCRIPT = "transcript"
_GLOBAL = Path("globalStorage", "state.vscdb")
# The settings directories of programs on Linux, macOS and Windows, below the user's directory.
_SETTINGS = (Path(".config"), Path("Library", "Application Support"), Path("AppData", "Roaming"))
_EDITOR = Path("Cursor", "User")


class Cursor:
    name = "cursor"

    def __init__(self, settings: Path | None = None) -> None:
        """`settings` replaces `~/.config`; a relative path is ignored."""
        self._editor = editor_database.EditorDatabases()
        self._settings = settings if settings and settings.is_absolute() else None

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return every conversation; transcripts only of those that are in no database."""
        if path is None:
            settings = settings_directories(self._settings)
            directories = [*(root / _EDITOR for root in settings), settings[0] / "cursor", Path.home() / ".cursor"]
        elif item_at(path, "") is not None:
            return self._single_file(path)
        else:
            directories = [path, *(path / name / _EDITOR for name in _SETTINGS)]
        found = [
            item
            for directory in directories
            for item in (*self._editor_items(directory), *_command_line_items(directory))
        ]
        known = {_host_id(item) for item in found}
        return [
            *found,
            *(
                item
                for directory in directories
                for item in _transcript_items(directory)
                if item.file.stem not in known
            ),
        ]

    def scan_conversation(self, transcript: Path, *, from_editor: bool) -> Sequence[ImportItem]:
        """Return one conversation, in the format from which later imports read it, as far as that exists already.

        The command line has a database for each. The editor's is read only if the record has the conversation from
        there (`from_editor`): Cursor writes it later than the transcript.
        """
        settings = settings_directories(self._settings)
        for directory in (settings[0] / "cursor", Path.home() / ".cursor"):
            for store in sorted(directory.glob(f"chats/*/{escape(transcript.stem)}/store.db")):
                return self._single_file(store)
        for root in settings if from_editor else ():
            item = database_at(root / _EDITOR / _GLOBAL, f"{editor_database.COMPOSER}{transcript.stem}")
            if item is not None:
                return [item]
        return self._single_file(transcript)

    def editor_id(self, transcript: Path) -> str:
        """Return the id that the conversation of a transcript has in the editor's database."""
        return f"composer-{transcript.stem}"

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        if item.label == _AGENT:
            return _read_agent_conversation(item)
        if item.label == _TRANSCRIPT:
            return read_transcript(item)
        return editor_database.read_conversation(item, self._editor.directories)

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return the command for conversations of the command line; "" for those of the editor, which has none."""
        if host_id.startswith(("composer-", "chat-")):
            return ""
        return in_directory(f"cursor-agent --resume {shlex.quote(host_id)}", directory)

    def _single_file(self, file: Path) -> Sequence[ImportItem]:
        if file.suffix in (".jsonl", ".txt"):
            item = item_at(file, _TRANSCRIPT)
        elif file.name == "store.db":
            item = database_at(file, _AGENT)
        else:
            return self._editor.conversations(file)
        return [item] if item else []

    def _editor_items(self, directory: Path) -> list[ImportItem]:
        """Return the conversations of an editor, workspaces first, because they know the directories."""
        try:
            workspaces = sorted((directory / "workspaceStorage").glob("*/state.vscdb"))
        except OSError:
            workspaces = []
        return [item for file in (*workspaces, directory / _GLOBAL) for item in self._editor.conversations(file)]


def message_events(message: dict[str, Any], name: str, at: Any, line: int | None = None) -> Iterator[ReadEvent]:
    """Yield the parts of a message, each with its own id."""
    role = message.get("role")
    content = message.get("content")
    parts = dicts_in(content) if isinstance(content, list) else [{"type": "text", "text": as_text(content)}]
    if role not in ("user", "assistant", "tool"):
        yield Skipped(f"instructions of the program ({str(role)[:40]})")
        return
    messages: list[ImportedMessage] = []
    skipped_parts = 0
    for number, part in enumerate(parts):
        part_id = f"{name}:{number}" if number else name
        entry = _convert_part(str(role), part, part_id, at, line)
        skipped_parts += entry is None
        messages += [entry] if entry is not None else []
    yield from messages
    if not messages:
        yield Skipped("context given by the program" if skipped_parts else "message without text")


def directory_in(message: dict[str, Any]) -> str | None:
    """Return the directory that the program names to the model at the start."""
    content = message.get("content")
    texts = [content] if isinstance(content, str) else [as_text(part.get("text")) for part in dicts_in(content)]
    found = next((match for text in texts if (match := _WORKSPACE.search(text))), None)
    return found[1] if found else None


def _convert_part(role: str, part: dict[str, Any], name: str, at: Any, line: int | None) -> ImportedMessage | None:
    kind = part.get("type")
    call_id = as_text(part.get("toolCallId") or part.get("tool_use_id") or part.get("id")) or name
    tool = as_text(part.get("toolName") or part.get("name"))
    if kind in _CALLS:
        return tool_call_message((call_id, tool, part.get("args", part.get("input"))), name, at, line)
    if kind in _RESULTS:
        result = part.get("result", part.get("content"))
        texts = [as_text(entry.get("text")) for entry in dicts_in(result)]
        return tool_result_message((call_id, tool), "\n".join(filter(None, texts)) or as_text(result), name, at, line)
    text = get_text(part, "text")
    if text is None:
        return text_message(role, f"[{kind}, not imported]", name, at, line) if kind in ("image", "file") else None
    if kind in ("reasoning", "thinking"):
        return reasoning_message(text, name, at, line)
    if role == "user":
        query = "\n\n".join(_QUERY.findall(text))
        if not query and _CONTEXT.match(text):
            return None
        text = query or text
    return text_message(role, text, name, at, line)


def _read_agent_conversation(item: ImportItem) -> Iterator[ReadEvent]:
    with open_database(item.file) as connection:
        found_tables = tables(connection)
        if not {"id", "data"} <= found_tables.get("blobs", set()):
            raise ReadError(Problem(item.file, None, "not a conversation of Cursor: it has no blobs"))
        meta = _read_meta(connection) if "meta" in found_tables else {}
        yield from _conversation_events(item, connection, meta)


def _conversation_events(item: ImportItem, connection: sqlite3.Connection, meta: dict[str, Any]) -> Iterator[ReadEvent]:
    host_id = get_text(meta, "agentId") or item.file.parent.name
    title = get_text(meta, "name")
    started_at = parse_timestamp(meta.get("createdAt"))
    yield ImportedConversation(
        host_id, None if title == _UNTITLED else title, get_text(meta, "lastUsedModel"), started_at=started_at
    )
    order = _current_messages(connection, get_text(meta, "latestRootBlobId") or "")
    counted: Counter[str] = Counter()
    for name in (*_other_blobs(connection, set(order)), *order):
        message = _read_message(connection, name)
        if message is None:
            yield Skipped("blob that is not a message")
            continue
        if directory := directory_in(message):
            yield ImportedConversation(host_id, directory=directory)
        counted[name] += 1
        # The same text is the same blob, even when it is repeated or in another conversation.
        yield from message_events(message, short_digest(host_id, name, str(counted[name])), started_at)


def _read_meta(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return the description of the conversation, which is JSON in hexadecimal digits."""
    row = connection.execute("SELECT value FROM meta WHERE key = '0'").fetchone()
    value = row[0] if row else ""
    try:
        text = bytes.fromhex(value) if isinstance(value, str) and value[:1] != "{" else value
    except ValueError:
        return {}
    return parse_object(text) or {}


def _current_messages(connection: sqlite3.Connection, root: str) -> list[str]:
    """Return the messages of the current conversation, in order."""
    row = connection.execute("SELECT data FROM blobs WHERE id = ?", (root,)).fetchone()
    if row is None or not isinstance(row[0], bytes):
        return []
    return [value.hex() for number, value in _byte_fields(row[0]) if number == _MESSAGES and len(value) == _DIGEST]


def _byte_fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the fields of a protocol buffer that contain bytes; stops where the data is not one."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        kind = tag & 7
        if kind == _BYTES:
            size, at = _read_varint(data, at)
            yield tag >> 3, data[at : at + size]
            at += size
        elif kind == 0:
            _, at = _read_varint(data, at)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            return


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
    return value, at


def _other_blobs(connection: sqlite3.Connection, listed: set[str]) -> list[str]:
    """Return the other blobs, including lists, in the order in which they were written."""
    return [str(name) for (name,) in rows(connection, "SELECT id FROM blobs ORDER BY rowid") if name not in listed]


def _read_message(connection: sqlite3.Connection, name: str) -> dict[str, Any] | None:
    row = connection.execute("SELECT data FROM blobs WHERE id = ?", (name,)).fetchone()
    if row is None or not row[0]:
        return None
    raw = row[0] if isinstance(row[0], bytes) else str(row[0]).encode("utf-8", "surrogatepass")
    value = parse_object(raw) if raw[:1] == b"{" else None
    return value if value and "role" in value else None


def is_transcript(file: Path) -> bool:
    """Whether a file is a transcript: of a session, or of one of its sub-agents."""
    return file.suffix in (".jsonl", ".txt") and "agent-transcripts" in file.parts


def read_transcript(item: ImportItem) -> Iterator[ReadEvent]:
    yield _conversation(item.file)
    if item.file.suffix == ".txt":
        yield from _read_text(item)
        return
    # Messages have no ids, so each id is made from everything before it.
    chain = item.checkpoint.state if item.checkpoint and item.checkpoint.state else item.file.stem

    def line_events(line: Line) -> Iterator[ReadEvent]:
        nonlocal chain
        message = get_field(line.value, "message")
        if not isinstance(message, dict) or "content" not in message:
            yield Skipped(str(line.value.get("type") or "line without message")[:40])
            return
        chain = short_digest(chain, json.dumps(line.value, sort_keys=True))
        full_message: dict[str, Any] = {"role": line.value.get("role"), **message}
        yield from message_events(full_message, chain, line.value.get("timestamp"), line.number)

    yield from read_line_events(read_json_lines(item), line_events, lambda: chain)


def _conversation(file: Path) -> ImportedConversation:
    """Return the conversation of a file; transcripts of sub-agents are in a directory `subagents` of their session."""
    parent = file.parent.parent.name if file.parent.name == "subagents" else None
    return ImportedConversation(
        file.stem,
        parent_host_id=parent,
        relation="delegation" if parent else None,
        same_as=f"composer-{file.stem}",
        extra={"format": FORMAT},
    )


def _read_text(item: ImportItem) -> Iterator[ReadEvent]:
    raw = read_bytes(item)
    if isinstance(raw, Problem):
        raise ReadError(raw)
    pieces = _SPEAKER.split(raw.decode("utf-8", "replace"))
    if pieces[0].strip():
        yield Problem(item.file, 1, "text before the first speaker")
    chain, line = item.file.stem, pieces[0].count("\n") + 1
    for speaker, body in zip(pieces[1::2], pieces[2::2], strict=True):
        message = _QUERY_TAG.sub("", body).strip()
        chain = short_digest(chain, speaker, message)
        if message:
            yield text_message("user" if speaker == "user" else "assistant", message, chain, None, line)
        line += body.count("\n")


def _command_line_items(directory: Path) -> list[ImportItem]:
    stores = find_files(directory / "chats", lambda file: file.name == "store.db", _AGENT)
    with_logs = [database_at(item.file, _AGENT) or item for item in stores]
    return sorted(
        (replace(item, label=_AGENT) for item in with_logs), key=lambda item: (item.modified_at, str(item.file))
    )


def _transcript_items(directory: Path) -> list[ImportItem]:
    """Return the transcripts, those of sub-agents after the sessions they worked for."""
    found = find_files(directory / "projects", is_transcript, _TRANSCRIPT)
    return sorted(found, key=lambda item: (item.file.parent.name == "subagents", item.modified_at, str(item.file)))


def _host_id(item: ImportItem) -> str:
    """Return the id that a conversation has in every format."""
    return item.file.parent.name if item.label == _AGENT else item.label.removeprefix(editor_database.COMPOSER)
