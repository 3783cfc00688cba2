"""The records of a session: messages, changes to what is known of it, and messages that were taken back.

A record with an id that was there before takes its place, with the results of tools added. Words, calls and results are
given under names of their own, made of what they say, so that each is taken in once and nothing is passed over. What a
person took back was said all the same, and stays.
"""

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
# What the program says in the user's place, and what it lets the model answer.
_CONTEXT = ("<session_context>", "<hook_context>", "This is the Gemini CLI. We are setting up the context")
_ACKNOWLEDGED = "Got it. Thanks for the context!"


def learned(record: Record) -> dict[str, Any]:
    """What a record says of its session."""
    inner = record.get("$set")
    source = inner if isinstance(inner, dict) else record
    models = [record, *dicts_in(source.get("messages"))]
    found = {
        "id": get_text(source, "sessionId"),
        "project": get_text(source, "projectHash"),
        "kind": get_text(source, "kind"),
        "title": get_text(source, "summary"),
        "started_at": parse_timestamp(source.get("startTime")),
        "model": next((model for each in models if (model := get_text(each, "model"))), None),
    }
    return {name: value for name, value in found.items() if value is not None}


def given_by(file: Path, record: Record, line: int | None) -> Iterator[ReadEvent]:
    """The messages of a record, or what it is instead."""
    change = record.get("$set")
    if isinstance(change, dict) or isinstance(record.get("sessionId"), str):
        yield from _session(file, change if isinstance(change, dict) else record, line)
    elif isinstance(record.get("id"), str):
        yield from _message(record, line)
    elif "$rewindTo" in record:
        yield Skipped("rewind")
    else:
        yield Problem(file, line, "not a record of Gemini CLI")


def _session(file: Path, record: Record, line: int | None) -> Iterator[ReadEvent]:
    yield Skipped("facts of the session")
    messages = record.get("messages")
    for number, each in enumerate(messages if isinstance(messages, list) else [], start=1):
        if isinstance(each, dict) and isinstance(each.get("id"), str):
            yield from _message(each, line)
        else:
            yield Problem(file, line, f"message {number} has no id")


def _message(record: Record, line: int | None) -> Iterator[ReadEvent]:
    kind, name, at = record.get("type"), str(record["id"]), record.get("timestamp")
    if kind not in ("user", "gemini"):
        yield Skipped(f"notice of the program ({str(kind)[:40]})")
        return
    parts = _parts(record.get("content"))
    text = _text(parts)
    made: list[ImportedMessage] = []
    if kind == "gemini":
        if shown := "\n\n".join(filter(None, (_thought(each) for each in dicts_in(record.get("thoughts"))))):
            made.append(reasoning_message(shown, f"{name}:thought:{short_digest(shown)}", at, line))
        if text:
            made.append(text_message("assistant", text, f"{name}:{short_digest(text)}", at, line))
        made += [each for part in parts if "functionCall" in part for each in _call(part["functionCall"], at, line)]
        made += [each for call in dicts_in(record.get("toolCalls")) for each in _call(call, at, line)]
    elif text.lstrip().startswith(_CONTEXT):
        yield Skipped("context given by the program")
        return
    elif text:
        made.append(text_message("user", text, f"{name}:{short_digest(text)}", at, line))
    made += _results(parts, "", at, line)
    yield from made
    if not made:
        yield Skipped("message without words")


def _call(call: Any, at: Any, line: int | None) -> list[ImportedMessage]:
    """A tool call, and its result as soon as there is one."""
    if not isinstance(call, dict):
        return []
    tool, arguments = as_text(call.get("name")), call.get("args")
    call_id = as_text(call.get("id")) or short_digest(tool, as_text(arguments), as_text(at))
    name = f"{call_id}:call:{short_digest(tool, as_text(arguments))}"
    made = [tool_call_message((call_id, tool, arguments), name, call.get("timestamp") or at, line)]
    return made + _results(_parts(call.get("result")), call_id, call.get("timestamp") or at, line, tool)


def _results(parts: list[Record], call_id: str, at: Any, line: int | None, tool: str = "") -> list[ImportedMessage]:
    """What tools gave back; the program writes it once with the call and once as what the model was told."""
    made = []
    for part in parts:
        response = part.get("functionResponse")
        if isinstance(response, dict):
            of, text = as_text(response.get("id")) or call_id, _output(response.get("response"))
            name = as_text(response.get("name")) or tool
        elif call_id:
            of, text, name = call_id, _text([part]), tool
        else:
            continue
        if text:
            made.append(tool_result_message((of, name), text, f"{of}:result:{short_digest(text)}", at, line))
    return made


def _output(response: Any) -> str:
    for name in ("output", "error", "content"):
        if found := get_text(response, name):
            return found
    return as_text(response)


def _parts(content: Any) -> list[Record]:
    listed = content if isinstance(content, list) else [] if content is None else [content]
    return [each if isinstance(each, dict) else {"text": as_text(each)} for each in listed]


def _text(parts: list[Record]) -> str:
    """The words of parts that are shown; a file is named."""
    texts = []
    for part in parts:
        if isinstance(part.get("text"), str) and not part.get("thought"):
            texts.append(part["text"])
        elif kind := get_text(part, "inlineData", "mimeType") or get_text(part, "fileData", "mimeType"):
            texts.append(f"[{kind}, not imported]")
    joined = "\n".join(texts)
    return joined if joined.strip() else ""


def _thought(entry: Record) -> str:
    subject, description = get_text(entry, "subject"), get_text(entry, "description")
    return ": ".join(filter(None, (subject, description)))


def saved(file: Path, value: Any, directory: str | None) -> Iterator[ReadEvent]:
    """A conversation that was saved under a tag: the contents as the model knows them, without ids and times."""
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
        made = list(_content(content))
        if not made:
            yield Skipped("context given by the program")
        for each in made:
            # The same words twice are two messages: each is known by everything before it.
            chain = short_digest(chain, each.message["role"], each.message["content"], each.message["external_id"])
            yield ImportedMessage({**each.message, "external_id": chain}, None)


def _content(content: Record) -> Iterator[ImportedMessage]:
    parts = _parts(content.get("parts"))
    text, role = _text(parts), "assistant" if content.get("role") == "model" else "user"
    if text and not text.lstrip().startswith((*_CONTEXT, _ACKNOWLEDGED)):
        yield text_message(role, text, "", None)
    for part in parts:
        yield from _call(part.get("functionCall"), None, None)
    yield from _results(parts, "", None, None)
