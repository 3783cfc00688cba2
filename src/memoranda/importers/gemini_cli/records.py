"""Converts the records of a session: messages, changes to the session, and rewinds.

A record whose id appeared before replaces the earlier one, and adds the results of tools. Texts, calls and results get
separate ids, made from their content, so that each is imported once and none is missed. Messages that the user rewound
are imported too, because they were part of the conversation.
"""

import re
from collections.abc import Iterator
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
from memoranda.importers.reader_protocol import ImportedConversation, ImportedMessage, Problem, ReadEvent, Skipped

Record = dict[str, Any]
# What the program writes in the user's role, and the answer that it writes for the model.
_CONTEXT = ("<session_context>", "This is the Gemini CLI. We are setting up the context")
# What hooks added to a prompt, before it or as a part of its own. The program escapes angle brackets in it.
_HOOK_CONTEXT = re.compile(r"<hook_context>.*?</hook_context>\s*", re.DOTALL)
_CONTEXT_ANSWER = "Got it. Thanks for the context!"


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


def record_events(file: Path, record: Record, line: int | None) -> Iterator[ReadEvent]:
    """Yield the messages of a record, or `Skipped` or a problem."""
    change = record.get("$set")
    if isinstance(change, dict) or isinstance(record.get("sessionId"), str):
        yield from _session_events(file, change if isinstance(change, dict) else record, line)
    elif isinstance(record.get("id"), str):
        yield from _message_events(record, line)
    elif "$rewindTo" in record:
        yield Skipped("rewind")
    else:
        yield Problem(file, line, "not a record of Gemini CLI")


def _session_events(file: Path, record: Record, line: int | None) -> Iterator[ReadEvent]:
    yield Skipped("facts of the session")
    messages = record.get("messages")
    for number, entry in enumerate(messages if isinstance(messages, list) else [], start=1):
        if isinstance(entry, dict) and isinstance(entry.get("id"), str):
            yield from _message_events(entry, line)
        else:
            yield Problem(file, line, f"message {number} has no id")


def _message_events(record: Record, line: int | None) -> Iterator[ReadEvent]:
    kind, name, at = record.get("type"), str(record["id"]), record.get("timestamp")
    if kind not in ("user", "gemini"):
        yield Skipped(f"notice of the program ({str(kind)[:40]})")
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
    elif prompt := _without_hook_context(text):
        # The id is made from the whole text, as it was before hook context was recognized.
        messages.append(text_message("user", prompt, f"{name}:{short_digest(text)}", at, line))
    elif text:
        yield Skipped("context given by hooks")
        return
    messages += _tool_results(parts, "", at, line)
    yield from messages
    if not messages:
        yield Skipped("message without text")


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
