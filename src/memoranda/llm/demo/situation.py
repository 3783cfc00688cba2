"""What lies before the demo model in one call: what is asked, what it knows, what it may do, what just came back."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memoranda.llm.model import Message
from memoranda.safety.fence import sanitize_context
from memoranda.tools import JsonObject, Tool

_BLOCK = re.compile(
    r"^═+\n(?P<label>MEMORY|USER PROFILE)[^\n]*\n═+\n(?P<body>.*?)(?=\n\n═|\Z)", re.DOTALL | re.MULTILINE
)
_FENCED = re.compile(r"<memory-context>(.*?)</memory-context>", re.DOTALL)
_NOTE = re.compile(r"^\[.*\]$")
_NEW, _GONE = re.compile(r"^New in \w+\.md: "), re.compile(r"^No longer in \w+\.md: ")
_DELIMITER = "\n§\n"


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool answered, and what it was asked."""

    name: str
    arguments: JsonObject
    answer: JsonObject


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that an answer depends on."""

    system: str
    said: str
    known: tuple[str, ...]
    recalled: tuple[str, ...]
    earlier: tuple[str, ...]
    forgotten: tuple[str, ...]
    results: tuple[Result, ...]
    tools: frozenset[str]


def understand(system: str, messages: Sequence[Message], tools: Sequence[Tool]) -> Situation:
    """Read a request."""
    last = max((place for place, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    asked = text_of(messages[last].get("content")) if last >= 0 else ""
    results = _results(messages)
    return Situation(
        system=system,
        said=sanitize_context(asked).strip(),
        known=tuple(
            entry
            for entry in _known(system, [result for _, result in results])
            if entry not in {_GONE.sub("", line) for line in _fenced(asked) if _GONE.match(line)}
        ),
        recalled=tuple(_NEW.sub("", line) for line in _fenced(asked) if not _GONE.match(line)),
        earlier=tuple(
            sanitize_context(text_of(message.get("content")))
            for message in messages[: max(last, 0)]
            if message.get("role") == "user" and message.get("content")
        ),
        forgotten=tuple(
            str(change["before"])
            for _, result in results
            for change in result.answer.get("changed") or ()
            if isinstance(change, Mapping) and change.get("action") == "remove"
        ),
        results=tuple(result for place, result in results if place > last),
        tools=frozenset(tool.name for tool in tools),
    )


def text_of(content: Any) -> str:
    """The words of a message."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(text_of, content)))
    if isinstance(content, Mapping):
        return str(content.get("text") or "")
    return ""


def _known(system: str, results: Sequence[Result]) -> tuple[str, ...]:
    """The entries of memory: those in the prompt, and as the latest tool results show them."""
    shown: dict[str, list[str]] = {}
    for block in _BLOCK.finditer(system):
        target = "memory" if block["label"] == "MEMORY" else "user"
        # Behind the last entry, and an empty line, the prompt goes on with something else.
        *entries, last = block["body"].split(_DELIMITER)
        shown[target] = [entry.strip() for entry in (*entries, last.split("\n\n")[0]) if entry.strip()]
    for result in results:
        entries = result.answer.get("current_entries")
        if result.name == "memory" and isinstance(entries, list):
            shown[str(result.answer.get("target", "memory"))] = [str(entry) for entry in entries]
    return tuple(entry for entries in shown.values() for entry in entries)


def _fenced(asked: str) -> tuple[str, ...]:
    """What was fenced into the user's message for this turn."""
    lines = [line.strip(" -*•\t") for block in _FENCED.findall(asked) for line in block.splitlines()]
    return tuple(line for line in lines if line and not _NOTE.match(line))


def _results(messages: Sequence[Message]) -> list[tuple[int, Result]]:
    calls: dict[str, Mapping[str, Any]] = {}
    found: list[tuple[int, Result]] = []
    for place, message in enumerate(messages):
        for call in message.get("tool_calls") or ():
            calls[str(call.get("id"))] = call.get("function") or {}
        if message.get("role") == "tool":
            function = calls.get(str(message.get("tool_call_id")), {})
            name = str(function.get("name") or message.get("tool_name") or message.get("name") or "")
            answer = _object(text_of(message.get("content")))
            found.append((place, Result(name, _object(function.get("arguments")), answer)))
    return found


def _object(text: Any) -> JsonObject:
    try:
        value = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return {"text": text}
    return value if isinstance(value, dict) else {"text": str(value)}
