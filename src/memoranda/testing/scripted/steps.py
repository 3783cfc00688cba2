"""The steps of a scripted server: answer, refuse, disconnect, send garbage, be slow."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from memoranda.models.model import Message, Reply, ToolCall, Usage
from memoranda.support.json_object import parse_object
from memoranda.support.tool import JsonObject, Tool

Api = Literal["openai", "anthropic"]


@dataclass(frozen=True)
class ReceivedRequest:
    """A request as the server received it."""

    number: int
    at: float
    path: str
    headers: Mapping[str, str]
    text: str

    @cached_property
    def json(self) -> JsonObject:
        """The body; empty if it is not a JSON object."""
        return parse_object(self.text) or {}

    @property
    def resource(self) -> str:
        """The path without its query, which some clients of Anthropic's API send (`?beta=true`)."""
        return self.path.partition("?")[0].rstrip("/")

    @property
    def api(self) -> Api:
        return "anthropic" if self.resource.endswith("/messages") else "openai"

    @property
    def streamed(self) -> bool:
        return bool(self.json.get("stream"))

    @cached_property
    def conversation(self) -> tuple[str, list[Message], tuple[Tool, ...]]:
        """System prompt, messages and tools in chat form, for either API."""
        return _from_anthropic(self.json) if self.api == "anthropic" else _from_openai(self.json)


@dataclass(frozen=True, slots=True)
class Refuse:
    """An error response in the form of the called API."""

    status: int
    message: str = "refused by the script"
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cut:
    """Ends an answer after `after` events; `clean` ends the response as if it were complete."""

    reply: Reply
    after: int = 2
    clean: bool = False


@dataclass(frozen=True, slots=True)
class Trouble:
    """Sends an error event after `after` events of an answer's stream."""

    reply: Reply
    after: int = 2
    code: str = "overloaded_error"
    message: str = "Overloaded"


@dataclass(frozen=True, slots=True)
class Garbage:
    """An invalid response; in a stream, each line becomes the data of an event."""

    text: str = "{not json"
    status: int = 200
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Body:
    """A JSON body that is sent as it is, whichever API was called."""

    json: JsonObject
    status: int = 200


@dataclass(frozen=True, slots=True)
class Slow:
    """Another step with a wait before it and between its events, in seconds."""

    step: "Reply | Refuse | Cut | Trouble | Garbage | Body"
    before: float = 0.0
    between: float = 0.0


Step = Reply | Refuse | Cut | Trouble | Garbage | Body | Slow
Script = Callable[[ReceivedRequest], Step]


def read_step(step: Mapping[str, Any]) -> Step:
    """Reads a step of a script file: a reply with `text` (or `json`) and `tool_calls`, a whole `body`, or a failure."""
    if "body" in step:
        return _with_delays(step, Body(step["body"], step.get("status", 200)))
    if "status" in step:
        return _with_delays(
            step, Refuse(step["status"], step.get("message", ""), step.get("code", ""), step.get("headers", {}))
        )
    if "garbage" in step:
        return _with_delays(step, Garbage(step["garbage"]))
    reply = read_reply(step)
    if "cut_after" in step:
        return _with_delays(step, Cut(reply, step["cut_after"], bool(step.get("clean"))))
    if "trouble_after" in step:
        return _with_delays(step, Trouble(reply, step["trouble_after"]))
    return _with_delays(step, reply)


def read_reply(step: Mapping[str, Any]) -> Reply:
    calls = tuple(
        ToolCall(call.get("id") or f"call_{number}", call["name"], json.dumps(call.get("arguments", {})))
        for number, call in enumerate(step.get("tool_calls", ()))
    )
    text = json.dumps(step["json"], ensure_ascii=False) if "json" in step else step.get("text", "")
    return Reply(
        text,
        calls,
        Usage(**step.get("usage", {})),
        step.get("finish_reason", "tool_calls" if calls else "stop"),
        reasoning=step.get("reasoning", ""),
        reasoning_details=step.get("reasoning_details"),
    )


def _with_delays(step: Mapping[str, Any], inner: Reply | Refuse | Cut | Trouble | Garbage | Body) -> Step:
    before, between = float(step.get("before", 0)), float(step.get("between", 0))
    return Slow(inner, before, between) if before or between else inner


def _from_openai(body: JsonObject) -> tuple[str, list[Message], tuple[Tool, ...]]:
    messages = list(body.get("messages") or ())
    system = ""
    if messages and messages[0].get("role") in ("system", "developer"):
        system = str(messages.pop(0).get("content") or "")
    functions = [tool.get("function") or {} for tool in body.get("tools") or ()]
    return system, messages, tuple(_tool(function, "parameters") for function in functions)


def _from_anthropic(body: JsonObject) -> tuple[str, list[Message], tuple[Tool, ...]]:
    system = body.get("system") or ""
    text = system if isinstance(system, str) else "\n".join(block["text"] for block in system)
    messages = [message for entry in body.get("messages") or () for message in _chat_messages(entry)]
    return text, messages, tuple(_tool(tool, "input_schema") for tool in body.get("tools") or ())


def _chat_messages(entry: Mapping[str, Any]) -> list[Message]:
    content = entry["content"]
    blocks: Sequence[Mapping[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = "\n\n".join(block["text"] for block in blocks if block["type"] == "text")
    if entry["role"] == "assistant":
        calls = [
            ToolCall(block["id"], block["name"], json.dumps(block["input"], ensure_ascii=False))
            for block in blocks
            if block["type"] == "tool_use"
        ]
        return [Reply(text, tuple(calls)).message()]
    results: list[Message] = [
        {"role": "tool", "tool_call_id": block["tool_use_id"], "content": _result_text(block.get("content"))}
        for block in blocks
        if block["type"] == "tool_result"
    ]
    return [*results, {"role": "user", "content": text}] if text or not results else results


def _result_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content or ())


def _tool(description: Mapping[str, Any], schema: str) -> Tool:
    parameters = description.get(schema) or {}
    return Tool(str(description.get("name")), str(description.get("description", "")), parameters, _not_callable)


def _not_callable(_: Mapping[str, Any]) -> JsonObject:
    return {"success": False, "error": "Only the client can call this tool."}
