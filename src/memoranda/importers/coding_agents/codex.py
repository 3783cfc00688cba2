"""Reads the rollouts of Codex, one file per session, as versions from April 2025 (0.1) to 0.169 write them.

Today a rollout is a file of JSON lines, `sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`; archived sessions are in
`archived_sessions/`, and old ones may be compressed (`.jsonl.zst`). In versions such as 0.27 the lines had no envelope,
and the first versions wrote one JSON object (`rollout-<date>-<id>.json`). The name that a user gave a session
is in `session_index.jsonl`.

Older versions of Codex wrote a fork as a copy of the whole session with new timestamps. Messages have no ids there, so
each gets an id made from its content, everything before it, and the id of the session in which it first appeared. A
copy therefore has the ids of its original, and a text that occurs twice in a session gets two ids.
"""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
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
from memoranda.importers.coding_agents.project_notes import find_notes_of_codex, read_notes_of_codex
from memoranda.importers.reader_protocol import (
    Checkpoint,
    ImportedConversation,
    ImportedMessage,
    ImportItem,
    Problem,
    ReadError,
    ReadEvent,
    Skipped,
)
from memoranda.importers.source_files import (
    Line,
    find_files,
    item_at,
    item_beside,
    load_json,
    read_json_lines,
    read_line_events,
)
from memoranda.importers.sources import in_directory
from memoranda.importers.zstandard import compressed_lines

Payload = dict[str, Any]
_ENVELOPES = (
    "session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state", "token_usage_record",
)  # fmt: skip
# Kinds of lines without a message, in addition to the envelopes.
_NO_MESSAGES = (*_ENVELOPES, "draft of a summary", "record state")
# Items of a conversation without a text for the record.
_NO_TEXT = ("ghost_snapshot", "compaction", "compaction_trigger", "context_compaction", "other")
_DIRECTORY = re.compile(r"<cwd>([^<\n]+)</cwd>")
_MAX_OPEN_CALLS = 200
# Facts that a session row stores in addition to its columns.
_FACTS = {
    "version": ("cli_version",),
    "originator": ("originator",),
    "git_branch": ("git", "branch"),
    "git_commit": ("git", "commit_hash"),
    "git_remote": ("git", "repository_url"),
}
# How the texts start that the program writes in the user's role.
_CONTEXT = (
    "<environment_context>", "<user_instructions>", "# AGENTS.md instructions for ", "<turn_aborted>", "<skill>",
    "<permissions instructions>", "<subagent_notification>", "<collaboration_mode>", "<skills_instructions>",
)  # fmt: skip
# The authors of texts in the user's role that the user did not write, such as the notice that a sub-agent finished.
_PROGRAM_AUTHORS = ("harness", "tool")
_ROLLOUT_NAME = re.compile(r"rollout-.*\.(jsonl|jsonl\.zst|json)")
_ID = re.compile(r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\.")
_FOLDERS = ("sessions", "archived_sessions")
_INDEX = "session_index.jsonl"


class Rollout:
    """One file, line by line; a checkpoint restores what the lines before it said."""

    def __init__(self, item: ImportItem, host_id: str, titles: dict[str, str]) -> None:
        kept = item.reader_state()
        self._file = item.file
        self._id: str = kept.get("id", host_id)
        self._known: dict[str, Any] = kept.get("known", {})
        self._has_session: bool = kept.get("begun", False)
        self._chain: str = kept.get("chain", "")
        self._root: str = kept.get("root", self._id)
        self._calls: dict[str, str] = kept.get("calls", {})
        self._titles = titles
        self._yielded: ImportedConversation | None = None

    def state(self) -> str:
        """Return what a checkpoint must store."""
        while len(self._calls) > _MAX_OPEN_CALLS:
            del self._calls[next(iter(self._calls))]
        kept = {"id": self._id, "begun": self._has_session, "root": self._root, "chain": self._chain}
        return json.dumps({**kept, "known": self._known, "calls": self._calls})

    def line_events(self, line: Payload, number: int | None) -> Iterator[ReadEvent]:
        """Yield the messages of a line, or `Skipped`."""
        at, kind, payload = line.get("timestamp"), line.get("type"), line.get("payload")
        if not isinstance(payload, dict):
            if kind is None and isinstance(line.get("id"), str):
                # The first line of versions without envelopes (0.27) is the session itself.
                kind, payload = "session_meta", line
            elif "record_type" in line:
                kind, payload = f"record {line['record_type']}", {}
            elif isinstance(kind, str) and kind not in _ENVELOPES:
                kind, payload = "response_item", line
            else:
                yield Problem(self._file, number, "not a line of a Codex session")
                return
        if get_field(line, "metadata", "compaction_output") is True:
            # The draft of a summary; the summary itself follows.
            kind, payload = "draft of a summary", {}
        events = list(self._convert(str(kind), payload, at, number))
        if any(isinstance(event, ImportedMessage) for event in events):
            yield from self._conversation()
        yield from events

    def _convert(self, kind: str, payload: Payload, at: Any, number: int | None) -> Iterator[ReadEvent]:
        if kind == "response_item":
            yield from self._convert_item(payload, at, number)
        elif kind == "compacted" and (summary := get_text(payload, "message")):
            yield text_message("user", summary, self._next_id("summary", summary), at, number, is_summary=True)
        else:
            if kind == "session_meta":
                self._learn_session(payload)
            elif kind == "turn_context":
                self._learn({"model": get_text(payload, "model"), "directory": get_text(payload, "cwd")})
            event_type = get_text(payload, "type") if kind == "event_msg" else None
            label = f"{kind} ({event_type[:40]})" if event_type else kind[:40]
            yield Skipped(label, is_unknown=kind not in _NO_MESSAGES)

    def _convert_item(self, payload: Payload, at: Any, number: int | None) -> Iterator[ReadEvent]:
        """Convert one item of the conversation as the model sees it."""
        kind = str(payload.get("type") or "message")
        call_id = as_text(payload.get("call_id") or payload.get("id")) or kind
        if kind == "message":
            yield from self._convert_message(payload, at, number)
        elif kind == "reasoning":
            text = content_text(payload.get("summary")) or content_text(payload.get("content"))
            if text:
                yield reasoning_message(text, self._next_id(kind, text), at, number)
            else:
                yield Skipped("reasoning (encrypted)")
        elif kind.endswith("_output") and "output" in payload:
            text = output_text(payload["output"])
            tool = self._calls.pop(call_id, "")
            yield tool_result_message((call_id, tool), text, self._next_id(kind, call_id, text), at, number)
        elif kind.endswith("_call"):
            tool = as_text(payload.get("name")) or kind.removesuffix("_call")
            arguments: Any = next((payload[name] for name in ("arguments", "input", "action") if name in payload), {})
            self._calls[call_id] = tool
            yield tool_call_message(
                (call_id, tool, arguments), self._next_id(kind, call_id, tool, as_text(arguments)), at, number
            )
        else:
            yield Skipped(f"response_item ({kind[:40]})", is_unknown=kind not in _NO_TEXT)

    def _convert_message(self, payload: Payload, at: Any, number: int | None) -> Iterator[ReadEvent]:
        role, text = payload.get("role"), content_text(payload.get("content"))
        if role in ("developer", "system"):
            yield Skipped("instructions of the program")
            return
        if role == "user" and is_context(payload, text):
            if found := _DIRECTORY.search(text):
                self._learn({"directory": found[1].strip()})
            yield Skipped("context given by the program")
            return
        if not text or role not in ("user", "assistant"):
            yield Skipped("message without text")
            return
        # The id is made from the whole text, as it was before parts had authors.
        name = self._next_id(str(role), text)
        typed, added = (text, "") if role == "assistant" else _split_by_author(payload)
        if typed:
            yield text_message(str(role), typed, name, at, number)
        if added:
            yield text_message("system", added, f"{name}:added" if typed else name, at, number)

    def _next_id(self, *content: str) -> str:
        """Return the id of the next message: a digest of its content and of everything before it."""
        self._chain = short_digest(self._chain or self._root, *content)
        return self._chain

    def _learn_session(self, meta: Payload) -> None:
        """Store what a session says about itself; in a copy, this line precedes the first copied message."""
        host_id = get_text(meta, "id") or self._id
        if not self._chain:
            self._root = host_id
        if self._has_session:
            return
        self._has_session = True
        self._id = host_id
        fork, parent = get_text(meta, "forked_from_id"), _spawned_by(meta)
        self._learn(
            {
                "directory": get_text(meta, "cwd"),
                "started_at": parse_timestamp(meta.get("timestamp")),
                "parent": parent or fork,
                "relation": "delegation" if parent else "branch" if fork else None,
                "facts": {name: found for name, path in _FACTS.items() if (found := get_text(meta, *path))} or None,
            }
        )

    def _learn(self, found: dict[str, Any]) -> None:
        """Store facts that are new; the session's first directory and model stay."""
        for name, value in found.items():
            if value is not None:
                self._known.setdefault(name, value)

    def _conversation(self) -> Iterator[ImportedConversation]:
        known = self._known
        conversation = ImportedConversation(
            self._id,
            self._titles.get(self._id),
            known.get("model"),
            known.get("directory"),
            known.get("started_at"),
            known.get("parent"),
            known.get("relation"),
            extra=known.get("facts", {}),
        )
        if conversation != self._yielded:
            self._yielded = conversation
            yield conversation


class Codex:
    name = "codex"

    def __init__(self) -> None:
        self._titles: dict[Path, tuple[float, dict[str, str]]] = {}

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the rollouts of every session, the oldest first, so that a session precedes its forks."""
        path = Path.home() / ".codex" if path is None else path
        if single := item_at(path, "session"):
            return [single]
        folders = [path / name for name in _FOLDERS if (path / name).is_dir()] or [path]
        found = [item for folder in folders for item in find_files(folder, _is_rollout, "session")]
        return sorted(found, key=lambda item: (item.file.name, str(item.file))) + find_notes_of_codex(path)

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        if item.file.suffix == ".md":
            yield from read_notes_of_codex(item)
            return
        id_match = _ID.search(item.file.name)
        host_id = id_match[1] if id_match else item.file.name.split(".")[0]
        rollout = Rollout(item, host_id, self._titles_for(item.file))
        if item.file.suffix == ".json":
            yield from _read_single_object(item, rollout)
            return
        is_compressed = item.file.suffix == ".zst"
        lines = compressed_lines(item) if is_compressed else read_json_lines(item)
        for event in read_line_events(lines, lambda line: rollout.line_events(line.value, line.number), rollout.state):
            # A compressed file cannot be read from the middle.
            if not (is_compressed and isinstance(event, Checkpoint)):
                yield event

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return the command; Codex finds a session by its id anywhere, and continues in the session's directory."""
        return in_directory(f"codex resume {shlex.quote(host_id)}", directory)

    def _titles_for(self, file: Path) -> dict[str, str]:
        """Return the titles that users gave to sessions, from the index next to the directory of a rollout."""
        home = next((folder.parent for folder in file.parents if folder.name in _FOLDERS), None)
        index = item_beside(file, home / _INDEX, "index") if home else None
        if index is None:
            return {}
        known = self._titles.get(index.file)
        if known is None or known[0] != index.modified_at:
            known = self._titles[index.file] = (index.modified_at, _read_index(index))
        return known[1]


def _spawned_by(meta: Payload) -> str | None:
    """Return the session for which a sub-agent worked."""
    source = get_field(meta, "source", "subagent")
    inner = [source, *(source.values() if isinstance(source, dict) else ())]
    found = [get_text(entry, "parent_thread_id") for entry in dicts_in(inner)]
    return next((entry for entry in found if entry), None) or get_text(meta, "parent_thread_id")


def content_text(content: Any) -> str:
    """Return content in any form as text, with a placeholder for an image."""
    if isinstance(content, str):
        return content if content.strip() else ""
    texts = [part_text(entry) for entry in content] if isinstance(content, list) else []
    return "\n\n".join(text for text in texts if text.strip())


def part_text(part: Any) -> str:
    if not isinstance(part, dict):
        return as_text(part)
    if isinstance(part.get("text"), str):
        return str(part["text"])
    if "image" in str(part.get("type")):
        return "[image, not imported]"
    return "" if part.get("type") == "encrypted_content" else as_text(part)


def output_text(output: Any) -> str:
    if isinstance(output, str) and output.startswith('{"output":'):
        # Versions of 2025 wrapped the output of a command in JSON.
        output = _unwrap(output)
    if isinstance(output, dict) and "content" in output:
        return output_text(output["content"])
    return content_text(output) if isinstance(output, list) else as_text(output)


def _unwrap(output: str) -> Any:
    try:
        value = json.loads(output)
    except (ValueError, RecursionError):
        return output
    return {"content": value["output"]} if isinstance(get_field(value, "output"), str) else output


def _authors(payload: Payload) -> list[str | None]:
    """Return who wrote each part of a message, in versions that record it (0.14x and later)."""
    parts = dicts_in(get_field(payload, "internal_chat_message_metadata_passthrough", "content_item_metadata"))
    return [get_text(part, "provenance", "type") for part in parts]


def is_context(payload: Payload, text: str) -> bool:
    """Whether the program wrote a message in the user's role, by its metadata or by how it starts."""
    authors = _authors(payload)
    if authors and all(authors):
        return all(author in _PROGRAM_AUTHORS for author in authors)
    return text.lstrip().startswith(_CONTEXT)


def _split_by_author(payload: Payload) -> tuple[str, str]:
    """Return the text that the user typed and the rest; without authors, what begins as the program's is the rest."""
    content, authors = payload.get("content"), _authors(payload)
    parts = content if isinstance(content, list) else [content]
    texts = [content_text([part]) for part in parts]
    if any(authors):
        is_typed = [author == "user" for author in authors] + [False] * len(texts)
    else:
        is_typed = [not text.lstrip().startswith(_CONTEXT) for text in texts]
    typed = [text for text, own in zip(texts, is_typed, strict=False) if own]
    added = [text for text, own in zip(texts, is_typed, strict=False) if not own]
    return "\n\n".join(filter(str.strip, typed)), "\n\n".join(filter(str.strip, added))


def _is_rollout(file: Path) -> bool:
    return _ROLLOUT_NAME.fullmatch(file.name) is not None


def _read_index(index: ImportItem) -> dict[str, str]:
    """Return titles by session; a later line replaces an earlier one. A broken line loses a title, not a message."""
    lines = [found.value for found in read_json_lines(index) if isinstance(found, Line)]
    pairs = [(get_text(entry, "id"), get_text(entry, "thread_name")) for entry in lines]
    return {host_id: title for host_id, title in pairs if host_id and title}


def _read_single_object(item: ImportItem, rollout: Rollout) -> Iterator[ReadEvent]:
    """Read the format of the first versions: one object with the session and its items."""
    value = load_json(item)
    session, items = get_field(value, "session"), get_field(value, "items")
    if not isinstance(session, dict) or not isinstance(items, list):
        raise ReadError(Problem(item.file, None, "not a rollout of Codex: it has no session with items"))
    yield from rollout.line_events(session, None)
    for number, entry in enumerate(items, start=1):
        if isinstance(entry, dict):
            yield from rollout.line_events(entry, None)
        else:
            yield Problem(item.file, None, f"item {number} is not an object")
