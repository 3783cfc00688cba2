"""What a scripted server may be told to do with a request: answer, refuse, break off, talk nonsense, be slow."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from memoranda.llm.model import Message, Reply, ToolCall, Usage
from memoranda.tools import JsonObject, Tool

Api = Literal["openai", "anthropic"]


@dataclass(frozen=True)
class ReceivedRequest:
    """A request, as it came in."""

    number: int
    at: float
    path: str
    headers: Mapping[str, str]
    text: str

    @cached_property
    def json(self) -> JsonObject:
        """The body; empty when it is no JSON object."""
        try:
            body = json.loads(self.text)
        except ValueError:
            return {}
        return body if isinstance(body, dict) else {}

    @property
    def api(self) -> Api:
        return "anthropic" if self.path.rstrip("/").endswith("/messages") else "openai"

    @property
    def streamed(self) -> bool:
        return bool(self.json.get("stream"))

    @cached_property
    def conversation(self) -> tuple[str, list[Message], tuple[Tool, ...]]:
        """System prompt, messages and tools in chat form, whichever API was called."""
        return _from_anthropic(self.json) if self.api == "anthropic" else _from_openai(self.json)


@dataclass(frozen=True, slots=True)
class Refuse:
    """An error status, in the words of the API that was called."""

    status: int
    message: str = "refused by the script"
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cut:
    """The beginning of an answer: `after` events, and then nothing; `clean` ends the response as if it were whole."""

    reply: Reply
    after: int = 2
    clean: bool = False


@dataclass(frozen=True, slots=True)
class Trouble:
    """An answer that turns into an error event after some events of its stream."""

    reply: Reply
    after: int = 2
    code: str = "overloaded_error"
    message: str = "Overloaded"


@dataclass(frozen=True, slots=True)
class Garbage:
    """A response that is none, as it stands; in a stream, each line becomes the data of an event."""

    text: str = "{not json"
    status: int = 200
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Slow:
    """Another step, with a wait before it and between its events, in seconds."""

    step: "Reply | Refuse | Cut | Trouble | Garbage"
    before: float = 0.0
    between: float = 0.0


Step = Reply | Refuse | Cut | Trouble | Garbage | Slow
Script = Callable[[ReceivedRequest], Step]


def read_step(step: Mapping[str, Any]) -> Step:
    """A step as a script file writes it: a reply with `text` and `tool_calls`, and what goes wrong with it."""
    if "status" in step:
        return _slowly(
            step, Refuse(step["status"], step.get("message", ""), step.get("code", ""), step.get("headers", {}))
        )
    if "garbage" in step:
        return _slowly(step, Garbage(step["garbage"]))
    reply = read_reply(step)
    if "cut_after" in step:
        return _slowly(step, Cut(reply, step["cut_after"], bool(step.get("clean"))))
    if "trouble_after" in step:
        return _slowly(step, Trouble(reply, step["trouble_after"]))
    return _slowly(step, reply)


def read_reply(step: Mapping[str, Any]) -> Reply:
    calls = tuple(
        ToolCall(call.get("id") or f"call_{number}", call["name"], json.dumps(call.get("arguments", {})))
        for number, call in enumerate(step.get("tool_calls", ()))
    )
    return Reply(
        step.get("text", ""),
        calls,
        Usage(**step.get("usage", {})),
        step.get("finish_reason", "tool_calls" if calls else "stop"),
        reasoning=step.get("reasoning", ""),
        reasoning_details=step.get("reasoning_details"),
    )


def _slowly(step: Mapping[str, Any], inner: Reply | Refuse | Cut | Trouble | Garbage) -> Step:
    before, between = float(step.get("before", 0)), float(step.get("between", 0))
    return Slow(inner, before, between) if before or between else inner


def _from_openai(body: JsonObject) -> tuple[str, list[Message], tuple[Tool, ...]]:
    messages = list(body.get("messages") or ())
    system = ""
    if messages and messages[0].get("role") in ("system", "developer"):
        system = str(messages.pop(0).get("content") or "")
    functions = [tool.get("function") or {} for tool in body.get("tools") or ()]
    return system, messages, tuple(_tool(each, "parameters") for each in functions)


def _from_anthropic(body: JsonObject) -> tuple[str, list[Message], tuple[Tool, ...]]:
    system = body.get("system") or ""
    text = system if isinstance(system, str) else "\n".join(block["text"] for block in system)
    messages = [message for entry in body.get("messages") or () for message in _chat(entry)]
    return text, messages, tuple(_tool(each, "input_schema") for each in body.get("tools") or ())


def _chat(entry: Mapping[str, Any]) -> list[Message]:
    content = entry["content"]
    blocks: Sequence[Mapping[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    said = "\n\n".join(block["text"] for block in blocks if block["type"] == "text")
    if entry["role"] == "assistant":
        calls = [
            ToolCall(block["id"], block["name"], json.dumps(block["input"], ensure_ascii=False))
            for block in blocks
            if block["type"] == "tool_use"
        ]
        return [Reply(said, tuple(calls)).message()]
    results: list[Message] = [
        {"role": "tool", "tool_call_id": block["tool_use_id"], "content": _said(block.get("content"))}
        for block in blocks
        if block["type"] == "tool_result"
    ]
    return [*results, {"role": "user", "content": said}] if said or not results else results


def _said(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content or ())


def _tool(described: Mapping[str, Any], schema: str) -> Tool:
    parameters = described.get(schema) or {}
    return Tool(str(described.get("name")), str(described.get("description", "")), parameters, _elsewhere)


def _elsewhere(_: Mapping[str, Any]) -> JsonObject:
    return {"success": False, "error": "This tool lives with the client."}
