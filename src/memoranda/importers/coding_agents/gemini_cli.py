"""Reads the sessions that Gemini CLI records by itself (as 0.5 to 0.61 do), and what users saved with `/chat save`.

They are in `~/.gemini/tmp/<project>/`: `chats/session-<time>-<id>.jsonl` today, one JSON object `….json` before that.
Those of a sub-agent are in a folder named after its session; `checkpoint-<tag>.json` was saved under a tag. The project
is a name (`.project_root` contains its directory) or, in older versions, a digest of the directory.

A record whose id appeared before replaces the earlier one, and adds the results of tools. Texts, calls and results get
separate ids, made from their content, so that each is imported once and none is missed. Messages that the user rewound
are imported too, because they were part of the conversation.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

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
from memoranda.importers.reader_protocol import (
    ImportedConversation,
    ImportedMessage,
    ImportItem,
    Problem,
    ReadEvent,
    Skipped,
)
from memoranda.importers.source_files import (
    find_files,
    item_at,
    item_beside,
    load_json,
    read_bytes,
    read_json_lines,
    read_line_events,
)
from memoranda.importers.sources import in_directory
from memoranda.support.json_object import parse_object

# Files whose keys are directories.
_PROJECT_LISTS = ("projects.json", "trustedFolders.json")
Record = dict[str, Any]
# What the program writes in the user's role, and the answer that it writes for the model.
_CONTEXT = ("<session_context>", "This is the Gemini CLI. We are setting up the context")
# What hooks added to a prompt, before it or as a part of its own. The program escapes angle brackets in it.
_HOOK_CONTEXT = re.compile(r"<hook_context>.*?</hook_context>\s*", re.DOTALL)
_CONTEXT_ANSWER = "Got it. Thanks for the context!"
_CHECKPOINT = "checkpoint"
_NOTICES = ("info", "error", "warning")


class GeminiCli:
    name = "gemini-cli"

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the recordings of every project, the oldest first; sub-agents after the sessions they worked for."""
        path = Path.home() / ".gemini" if path is None else path
        if single := item_at(path, _label(path)):
            return [single]
        # Users can move the directory above `.gemini`, and can name either of them or the folder of one project.
        candidates = (path / ".gemini" / "tmp", path / "tmp", path)
        directory = next((candidate for candidate in candidates if candidate.is_dir()), path)
        found = [replace(item, label=_label(item.file)) for item in find_files(directory, _is_recording, "session")]
        order = ("session", "sub-agent", _CHECKPOINT)
        return sorted(found, key=lambda item: (order.index(item.label), item.file.name, str(item.file)))

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        if item.file.suffix == ".jsonl":
            recording = _Recording(item, item.reader_state())
            lines = read_json_lines(item)
            yield from read_line_events(lines, lambda x: recording.record_events(x.value, x.number), recording.state)
            return
        value = load_json(item)
        if item.label == _CHECKPOINT:
            yield from saved_chat_events(item.file, value, directory_of(item.file, None))
        elif isinstance(value, dict) and get_text(value, "sessionId"):
            yield from _Recording(item, {}).record_events(value, None)
        else:
            yield Problem(item.file, None, "not a recording of Gemini CLI: it names no session")

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return the command, which works only in the session's directory; "" for a saved chat, which has none."""
        if host_id.startswith(f"{_CHECKPOINT}-"):
            return ""
        return in_directory(f"gemini --resume {shlex.quote(host_id)}", directory)


def directory_of(file: Path, project: str | None) -> str | None:
    """Return the directory of the project that a file belongs to; `project` is the digest in the file."""
    folder = next((parent for parent in file.parents if parent.parent.name == "tmp"), None)
    return _lookup(folder, project or "") if folder else None


@lru_cache(maxsize=256)
def _lookup(folder: Path, project: str) -> str | None:
    if root := _read_text(folder, folder / ".project_root").strip():
        return root
    for name in _PROJECT_LISTS:
        listed = parse_object(_read_text(folder, folder.parent.parent / name)) or {}
        inner = listed.get("projects")
        for path, known_as in (inner if isinstance(inner, dict) else listed).items():
            if known_as == folder.name or _digest(path) in (folder.name, project):
                return str(path)
    return None


def _digest(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()


def _read_text(folder: Path, file: Path) -> str:
    found = item_beside(folder / file.name, file, "")
    raw = read_bytes(found) if found else b""
    # Of a file that cannot be read, only the directory of the session is lost.
    return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else ""


def session_facts(record: Record) -> dict[str, Any]:
    """Return what a record says about its session."""
    inner = record.get("$set")
    source = inner if isinstance(inner, dict) else record
    models = [record, *dicts_in(source.get("messages"))]
    found = {
        "id": get_text(source, "sessionId"),
        "project": get_text(source, "projectHash"),
        "kind": get_text(source, "kind"),
        "title": get_text(source, "summary"),
        "started_at": parse_timestamp(source.get("startTime")),
        "model": next((model for entry in models if (model := get_text(entry, "model"))), None),
    }
    return {name: value for name, value in found.items() if value is not None}


def record_events(file: Path, record: Record, line: int | None, newest: float = 0.0) -> Iterator[ReadEvent]:
    """Yield the messages of a record, or `Skipped` or a problem; `newest` is the time of the latest message before."""
    change = record.get("$set")
    if isinstance(change, dict) or isinstance(record.get("sessionId"), str):
        yield from _session_events(file, change if isinstance(change, dict) else record, line, newest)
    elif isinstance(record.get("id"), str):
        yield from _message_events(record, line)
    elif "$rewindTo" in record:
        yield Skipped("rewind")
    else:
        yield Problem(file, line, "not a record of Gemini CLI")


def _session_events(file: Path, record: Record, line: int | None, newest: float) -> Iterator[ReadEvent]:
    yield Skipped("facts of the session")
    messages = record.get("messages")
    for number, entry in enumerate(messages if isinstance(messages, list) else [], start=1):
        if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
            yield Problem(file, line, f"message {number} has no id")
            continue
        # Each turn has a record of its own, so a compression wrote what is newer: a summary and repeated turns.
        is_rewritten = 0 < newest < (parse_timestamp(entry.get("timestamp")) or 0)
        for event in _message_events(entry, line):
            if is_rewritten and isinstance(event, ImportedMessage):
                event.message["is_summary"] = True
            yield event


def _message_events(record: Record, line: int | None) -> Iterator[ReadEvent]:
    kind, name, at = record.get("type"), str(record["id"]), record.get("timestamp")
    if kind not in ("user", "gemini"):
        yield Skipped(f"notice of the program ({str(kind)[:40]})", is_unknown=kind not in _NOTICES)
        return
    parts = _parts(record.get("content"))
    text = _text(parts)
    messages: list[ImportedMessage] = []
    if kind == "gemini":
        if thoughts := "\n\n".join(filter(None, (_thought_text(entry) for entry in dicts_in(record.get("thoughts"))))):
            messages.append(reasoning_message(thoughts, f"{name}:thought:{short_digest(thoughts)}", at, line))
        if text:
            messages.append(text_message("assistant", text, f"{name}:{short_digest(text)}", at, line))
        messages += [
            entry for part in parts if "functionCall" in part for entry in _tool_call(part["functionCall"], at, line)
        ]
        messages += [entry for call in dicts_in(record.get("toolCalls")) for entry in _tool_call(call, at, line)]
    elif text.lstrip().startswith(_CONTEXT):
        yield Skipped("context given by the program")
        return
    elif shown := _without_hook_context(text):
        # The id is made from the whole text, as it was before hook context was recognized.
        own_id = f"{name}:{short_digest(text)}"
        typed, added = _split_prompt(parts, _without_hook_context(_text(_parts(record.get("displayContent")))))
        messages.append(text_message("user", typed or shown, own_id, at, line))
        if added:
            messages.append(text_message("system", added, f"{own_id}:added", at, line))
    elif text:
        yield Skipped("context given by hooks")
        return
    messages += _tool_results(parts, "", at, line)
    yield from messages
    if not messages:
        yield Skipped("message without text")


def _split_prompt(parts: list[Record], displayed: str) -> tuple[str, str]:
    """Return what the user typed and what the program added: an expanded command, or files that a prompt names.

    The program displays what was typed. Without that, the first text is the prompt; attachments belong to it.
    """
    texts = [(part, shown) for part in parts if (shown := _without_hook_context(_text([part])))]
    first = next((number for number, (part, _) in enumerate(texts) if "text" in part), 0)
    own = (
        []
        if displayed
        else [shown for number, (part, shown) in enumerate(texts) if number == first or "text" not in part]
    )
    return displayed or "\n".join(own), "\n".join(shown for _, shown in texts if shown not in (*own, displayed))


def _without_hook_context(text: str) -> str:
    shown = _HOOK_CONTEXT.sub("", text)
    return text if shown == text else shown.strip()


def _tool_call(call: Any, at: Any, line: int | None) -> list[ImportedMessage]:
    """Convert a tool call, with its result if there is one."""
    if not isinstance(call, dict):
        return []
    tool, arguments = as_text(call.get("name")), call.get("args")
    call_id = as_text(call.get("id")) or short_digest(tool, as_text(arguments), as_text(at))
    name = f"{call_id}:call:{short_digest(tool, as_text(arguments))}"
    messages = [tool_call_message((call_id, tool, arguments), name, call.get("timestamp") or at, line)]
    return messages + _tool_results(_parts(call.get("result")), call_id, call.get("timestamp") or at, line, tool)


def _tool_results(
    parts: list[Record], call_id: str, at: Any, line: int | None, tool: str = ""
) -> list[ImportedMessage]:
    """Convert the results of tools; the program writes them with the call, and again as input of the model."""
    messages = []
    for part in parts:
        response = part.get("functionResponse")
        if isinstance(response, dict):
            answered_call, text = as_text(response.get("id")) or call_id, _output(response.get("response"))
            name = as_text(response.get("name")) or tool
        elif call_id:
            answered_call, text, name = call_id, _text([part]), tool
        else:
            continue
        if text:
            external_id = f"{answered_call}:result:{short_digest(text)}"
            messages.append(tool_result_message((answered_call, name), text, external_id, at, line))
    return messages


def _output(response: Any) -> str:
    for name in ("output", "error", "content"):
        if found := get_text(response, name):
            return found
    return as_text(response)


def _parts(content: Any) -> list[Record]:
    listed = content if isinstance(content, list) else [] if content is None else [content]
    return [entry if isinstance(entry, dict) else {"text": as_text(entry)} for entry in listed]


def _text(parts: list[Record]) -> str:
    """Return the text of the visible parts, with a placeholder for a file."""
    texts = []
    for part in parts:
        if isinstance(part.get("text"), str) and not part.get("thought"):
            texts.append(part["text"])
        elif kind := get_text(part, "inlineData", "mimeType") or get_text(part, "fileData", "mimeType"):
            texts.append(f"[{kind}, not imported]")
    joined = "\n".join(texts)
    return joined if joined.strip() else ""


def _thought_text(entry: Record) -> str:
    subject, description = get_text(entry, "subject"), get_text(entry, "description")
    return ": ".join(filter(None, (subject, description)))


def saved_chat_events(file: Path, value: Any, directory: str | None) -> Iterator[ReadEvent]:
    """Yield a conversation that was saved under a tag; its contents are what the model sees, without ids and times."""
    contents = value if isinstance(value, list) else get_field(value, "history")
    if not isinstance(contents, list):
        yield Problem(file, None, "not a checkpoint of Gemini CLI: it has no list of contents")
        return
    tag = unquote(file.stem.removeprefix("checkpoint").removeprefix("-")) or "untitled"
    host_id = f"checkpoint-{file.parent.name[:12]}-{tag}"
    yield ImportedConversation(host_id, tag, directory=directory)
    chain = host_id
    for number, content in enumerate(contents, start=1):
        if not isinstance(content, dict):
            yield Problem(file, None, f"content {number} is not an object")
            continue
        messages = list(_content_messages(content))
        if not messages:
            yield Skipped("context given by the program")
        for entry in messages:
            # The same text twice is two messages, so each id is made from everything before it.
            chain = short_digest(chain, entry.message["role"], entry.message["content"], entry.message["external_id"])
            yield ImportedMessage({**entry.message, "external_id": chain}, None)


def _content_messages(content: Record) -> Iterator[ImportedMessage]:
    parts = _parts(content.get("parts"))
    text, role = _without_hook_context(_text(parts)), "assistant" if content.get("role") == "model" else "user"
    if text and not text.lstrip().startswith((*_CONTEXT, _CONTEXT_ANSWER)):
        yield text_message(role, text, "", None)
    for part in parts:
        yield from _tool_call(part.get("functionCall"), None, None)
    yield from _tool_results(parts, "", None, None)


class _Recording:
    """One recording: what its records say about the session so far."""

    def __init__(self, item: ImportItem, known: dict[str, Any]) -> None:
        self._item = item
        self._newest: float = known.pop("newest", 0.0)
        self.known = known
        self._yielded: dict[str, Any] | None = None

    def state(self) -> str:
        return json.dumps({**self.known, "newest": self._newest})

    def record_events(self, record: dict[str, Any], line: int | None) -> Iterator[ReadEvent]:
        """Yield the events of a record; the conversation precedes its first message, and follows a new title."""
        old_title = self.known.get("title")
        found = session_facts(record)
        self.known = found | self.known | {name: found[name] for name in ("title",) if name in found}
        if self.known.get("title") != old_title:
            yield from self._conversation()
        if "id" in record:
            self._newest = max(self._newest, parse_timestamp(record.get("timestamp")) or 0.0)
        for event in record_events(self._item.file, record, line, self._newest):
            if isinstance(event, ImportedMessage):
                yield from self._conversation()
            yield event

    def _conversation(self) -> Iterator[ImportedConversation]:
        known, file = self.known, self._item.file
        if known == self._yielded:
            return
        self._yielded = known
        is_agent = known.get("kind") == "subagent" or self._item.label == "sub-agent"
        yield ImportedConversation(
            known.get("id") or file.stem,
            known.get("title"),
            known.get("model"),
            directory_of(file, known.get("project")),
            known.get("started_at"),
            file.parent.name if is_agent and file.parent.name != "chats" else None,
            "delegation" if is_agent and file.parent.name != "chats" else None,
        )


def _is_recording(file: Path) -> bool:
    if file.parent.name == "chats":
        return file.name.startswith("session-") and file.suffix in (".json", ".jsonl")
    if file.parent.parent.name == "chats":
        return file.suffix == ".jsonl"
    return file.name.startswith("checkpoint") and file.suffix == ".json"


def _label(file: Path) -> str:
    if file.name.startswith("checkpoint"):
        return _CHECKPOINT
    return "sub-agent" if file.parent.parent.name == "chats" else "session"
