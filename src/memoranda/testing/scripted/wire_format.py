"""Writes a Reply in the form of both APIs: as one JSON object, or as the events of a stream."""

import json
from collections.abc import Iterator
from typing import Any

from memoranda.models.model import Reply, ToolCall, Usage
from memoranda.support.tool import JsonObject
from memoranda.testing.scripted.steps import Api, Refuse

_PIECE = 8
_STOPS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
Event = tuple[str, str]
"""The name of an event, empty for OpenAI, and its data."""


def whole(api: Api, reply: Reply, number: int) -> JsonObject:
    """The answer as one JSON object."""
    return _message(reply, number) if api == "anthropic" else _completion(reply, number)


def events(api: Api, reply: Reply, number: int, *, with_usage: bool) -> Iterator[Event]:
    """The answer as a stream; the arguments of tool calls come in fragments."""
    stream = _anthropic_events(reply, number) if api == "anthropic" else _openai_events(reply, number, with_usage)
    for name, data in stream:
        yield name, data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)


def error_body(api: Api, step: Refuse) -> JsonObject:
    if api == "anthropic":
        kind = step.code or _KINDS.get(step.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": step.message}}
    return {"error": {"message": step.message, "type": step.code or "error", "param": None, "code": step.code or None}}


def trouble(api: Api, code: str, message: str) -> Event:
    """An error in the middle of a stream."""
    if api == "anthropic":
        return "error", json.dumps({"type": "error", "error": {"type": code, "message": message}})
    return "", json.dumps({"error": {"message": message, "type": code, "code": code}})


_KINDS = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error",
}  # fmt: skip


def _completion(reply: Reply, number: int) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": reply.text or None}
    if reply.tool_calls:
        message["tool_calls"] = [call.as_json() for call in reply.tool_calls]
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.reasoning_details:
        message["reasoning_details"] = reply.reasoning_details
    choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason, "logprobs": None}
    usage = _openai_usage(reply.usage)
    return _openai_frame(reply, number, "chat.completion") | {"choices": [choice], "usage": usage}


def _openai_frame(reply: Reply, number: int, kind: str) -> JsonObject:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 1, "model": reply.model or "scripted-model"}


def _openai_usage(usage: Usage) -> JsonObject:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _openai_events(reply: Reply, number: int, with_usage: bool) -> Iterator[tuple[str, Any]]:
    frame = _openai_frame(reply, number, "chat.completion.chunk")

    def chunk(delta: JsonObject, finish: str | None = None) -> tuple[str, JsonObject]:
        return "", frame | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(reply.reasoning):
        yield chunk({"reasoning_content": piece})
    if reply.reasoning_details:
        yield chunk({"reasoning_details": reply.reasoning_details})
    for piece in _pieces(reply.text):
        yield chunk({"content": piece})
    for index, call in enumerate(reply.tool_calls):
        for fragment in _fragments(call, index):
            yield chunk({"tool_calls": [fragment]})
    yield chunk({}, reply.finish_reason)
    if with_usage:
        yield "", frame | {"choices": [], "usage": _openai_usage(reply.usage)}
    yield "", "[DONE]"


def _fragments(call: ToolCall, index: int) -> Iterator[JsonObject]:
    start = {"name": call.name, "arguments": ""}
    yield {"index": index, "id": call.id, "type": "function", "function": start}
    for piece in _pieces(call.arguments):
        yield {"index": index, "function": {"arguments": piece}}


def _message(reply: Reply, number: int) -> JsonObject:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": reply.model or "scripted-model",
        "content": _blocks(reply),
        "stop_reason": _STOPS.get(reply.finish_reason, reply.finish_reason),
        "stop_sequence": None,
        "usage": _anthropic_usage(reply.usage),
    }


def _blocks(reply: Reply) -> list[JsonObject]:
    texts = [{"type": "text", "text": reply.text}] if reply.text else []
    uses = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments or "{}")}
        for call in reply.tool_calls
    ]
    return [*(reply.reasoning_details or ()), *texts, *uses]


def _anthropic_usage(usage: Usage) -> JsonObject:
    return {
        "input_tokens": usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
    }


def _anthropic_events(reply: Reply, number: int) -> Iterator[tuple[str, Any]]:
    message = _message(reply, number)
    usage = message["usage"]
    start = message | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
    yield "message_start", {"type": "message_start", "message": start}
    yield "ping", {"type": "ping"}
    for index, block in enumerate(message["content"]):
        empty, deltas = _split_block(block)
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    output = {"output_tokens": usage["output_tokens"], "output_tokens_details": usage["output_tokens_details"]}
    yield "message_delta", {"type": "message_delta", "delta": end, "usage": output}
    yield "message_stop", {"type": "message_stop"}


def _split_block(block: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
    """A block as its stream starts, and the deltas that complete it."""
    match block["type"]:
        case "text":
            return block | {"text": ""}, [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
            signature = {"type": "signature_delta", "signature": block.get("signature", "")}
            return block | {"thinking": "", "signature": ""}, [*deltas, signature]
        case "tool_use":
            arguments = json.dumps(block["input"], ensure_ascii=False)
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *_pieces(arguments))]
            return block | {"input": {}}, deltas
    return block, []


def _pieces(text: str) -> list[str]:
    return [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]
