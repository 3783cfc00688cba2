"""The client for Anthropic's messages API, which reads whole or streamed responses into a Reply."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from memoranda.models.anthropic.request import add_cache_breakpoints, to_anthropic_messages
from memoranda.models.anthropic.thinking import bind_thinking, fingerprint, keep_thinking, without_thinking
from memoranda.models.model import Message, OnText, Reply, ToolCall, Usage
from memoranda.models.model_call import FailedAttemptError, incomplete_stream, unreadable_reply
from memoranda.models.sdk_model import SdkModel, import_sdk
from memoranda.models.tokens import max_answer_tokens
from memoranda.support.tool import JsonObject, Tool

_FINISH = {
    "end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length",
    "model_context_window_exceeded": "length",
}  # fmt: skip
# The field of a block that each type of delta extends.
_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
_INPUT = "input_json"


def parse_reply(answer: Mapping[str, Any]) -> Reply:
    """Reads a whole response; raises KeyError, TypeError or ValueError when it is invalid."""
    content = answer["content"]
    if not isinstance(content, list):
        raise TypeError(f"a list of blocks was expected, not {content!r}")
    return _reply(content, answer.get("stop_reason"), answer.get("usage") or {}, str(answer.get("model") or ""))


class AnthropicStream:
    """Collects a streamed response event by event."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._blocks: dict[int, JsonObject] = {}
        self._usage: JsonObject = {}
        self._stop: str | None = None
        self._model = ""
        self.finished = False

    def add(self, event: Any) -> None:
        """Adds one event; unknown types are ignored, as the API requires."""
        match event["type"]:
            case "message_start":
                self._model = str(event["message"].get("model") or "")
                self._usage |= event["message"].get("usage") or {}
            case "content_block_start":
                self._blocks[event["index"]] = dict(event["content_block"])
                self._on_text(event["content_block"].get("text") or "")
            case "content_block_delta":
                self._add_delta(self._blocks[event["index"]], event["delta"])
            case "message_delta":
                self._stop = event["delta"].get("stop_reason") or self._stop
                self._usage |= {key: value for key, value in (event.get("usage") or {}).items() if value is not None}
            case "message_stop":
                self.finished = True

    def reply(self) -> Reply:
        """The complete answer."""
        return _reply([self._blocks[index] for index in sorted(self._blocks)], self._stop, self._usage, self._model)

    def _add_delta(self, block: JsonObject, delta: Mapping[str, Any]) -> None:
        if delta["type"] == "input_json_delta":
            block[_INPUT] = block.get(_INPUT, "") + delta["partial_json"]
        elif delta["type"] in _DELTAS:
            key = _DELTAS[delta["type"]]
            block[key] = (block.get(key) or "") + delta[key]
            if key == "text":
                self._on_text(delta[key])


def parse_usage(usage: Mapping[str, Any]) -> Usage:
    """The usage of a response. Anthropic counts cached input separately; `Usage.input_tokens` includes it."""
    read, written = _count(usage, "cache_read_input_tokens"), _count(usage, "cache_creation_input_tokens")
    return Usage(
        input_tokens=_count(usage, "input_tokens") + read + written,
        output_tokens=_count(usage, "output_tokens"),
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=_count(usage.get("output_tokens_details") or {}, "thinking_tokens"),
    )


def _reply(content: Sequence[Mapping[str, Any]], stop: str | None, usage: Mapping[str, Any], model: str) -> Reply:
    calls = tuple(
        ToolCall(str(block["id"]), str(block["name"]), _arguments(block))
        for block in content
        if block["type"] == "tool_use"
    )
    return Reply(
        text="".join(str(block.get("text") or "") for block in content if block["type"] == "text"),
        tool_calls=calls,
        usage=parse_usage(usage),
        finish_reason=_FINISH.get(stop or "", stop or "stop"),
        model=model,
        reasoning="\n".join(filter(None, (block.get("thinking") for block in content if block["type"] == "thinking"))),
        reasoning_details=keep_thinking(content),
    )


def _arguments(block: Mapping[str, Any]) -> str:
    if streamed := block.get(_INPUT):
        return str(streamed)
    return json.dumps(block.get("input") or {}, ensure_ascii=False)


def _count(numbers: Mapping[str, Any], name: str) -> int:
    value = numbers.get(name)
    return value if isinstance(value, int) else 0


ANTHROPIC = "https://api.anthropic.com"


class AnthropicMessages(SdkModel):
    package = "anthropic"

    def _make_client(self, sdk: Any) -> Any:
        # ModelCall retries within the deadline, so the SDK must not. The SDK adds the version to the address itself.
        address = (self._settings.base_url or ANTHROPIC).rstrip("/").removesuffix("/v1")
        return sdk.Anthropic(api_key=self._api_key or "none", base_url=address, max_retries=0)

    def _body(self, system: str, messages: Sequence[Message], tools: Sequence[Tool], max_tokens: int) -> JsonObject:
        body: JsonObject = {"model": self.name, "max_tokens": max_tokens or max_answer_tokens(self.name)}
        if tools:
            body["tools"] = [tool.anthropic_schema() for tool in tools]
        if system:
            body["system"] = [{"type": "text", "text": system}]
        return body | {"messages": to_anthropic_messages(messages, self.name, fingerprint(body))}

    def _ask(self, body: JsonObject, on_text: OnText | None, seconds_left: float) -> Reply:
        try:
            reply = self._ask_once(body, on_text, seconds_left)
        except import_sdk(self.package).BadRequestError as error:
            without = without_thinking(body)
            if without == body or not _is_about_thinking(error):
                raise
            # A conversation that can continue is worth more than thinking blocks that the service refuses.
            body = without
            reply = self._ask_once(without, on_text, seconds_left)
        return bind_thinking(reply, self.name, body)

    def _ask_once(self, body: JsonObject, on_text: OnText | None, seconds_left: float) -> Reply:
        marked = add_cache_breakpoints(body)
        if on_text is None:
            answer = self._post("/v1/messages", marked, seconds_left)
            if not isinstance(answer, Mapping):
                raise FailedAttemptError(unreadable_reply(self.label, answer))
            return parse_reply(answer)
        stream = AnthropicStream(on_text)
        for event in self._stream("/v1/messages", marked, seconds_left):
            stream.add(event)
        if not stream.finished:
            raise FailedAttemptError(incomplete_stream(self.label))
        return stream.reply()


def _is_about_thinking(error: Exception) -> bool:
    message = str(error).lower()
    return "thinking" in message or "signature" in message
