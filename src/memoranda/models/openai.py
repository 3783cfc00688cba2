"""The client for OpenAI's chat completions and compatible services: OpenRouter, vLLM, Ollama, llama.cpp …

It reads whole or streamed responses into a Reply.
"""

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any
from urllib.parse import urlsplit

from memoranda.models.model import Message, OnText, Reply, ToolCall, Usage
from memoranda.models.model_call import FailedAttemptError, incomplete_stream, unreadable_reply
from memoranda.models.sdk_model import SdkModel, repair_call
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import JsonObject, Tool

_FINISH = {"function_call": "tool_calls", "content_filter": "refusal", "eos": "stop", "end_turn": "stop"}
# Fields in which services send the model's visible reasoning.
_REASONING_FIELDS = ("reasoning_content", "reasoning")
# Fields of an opaque block that later chunks extend.
_EXTENDED_FIELDS = ("text", "summary", "data")


def parse_reply(answer: Mapping[str, Any]) -> Reply:
    """Reads a whole response; raises KeyError, IndexError, TypeError or ValueError when it is invalid."""
    choice = answer["choices"][0]
    message = choice["message"]
    calls = _with_unique_ids([
        ToolCall(call.get("id") or "", _text(call["function"]["name"]), _arguments(call["function"]))
        for call in message.get("tool_calls") or ()
    ])  # fmt: skip
    return _reply(
        text=_text(message.get("content")) or _text(message.get("refusal")),
        calls=calls,
        finish="refusal" if message.get("refusal") else _text(choice.get("finish_reason")),
        usage=parse_usage(answer.get("usage")),
        model=_text(answer.get("model")),
        reasoning=next((_text(message[key]) for key in _REASONING_FIELDS if message.get(key)), ""),
        details=message.get("reasoning_details"),
    )


def parse_usage(usage: Any) -> Usage:
    """The tokens that a service reports; zeros when it reports none."""
    if not isinstance(usage, Mapping):
        return Usage()
    sent = usage.get("prompt_tokens_details") or {}
    written = usage.get("completion_tokens_details") or {}
    return Usage(
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        # DeepSeek has its own field for cached tokens.
        cache_read_tokens=_count(sent, "cached_tokens") or _count(usage, "prompt_cache_hit_tokens"),
        cache_write_tokens=_count(sent, "cache_write_tokens"),
        reasoning_tokens=_count(written, "reasoning_tokens"),
    )


@dataclass(slots=True)
class _StreamedCall:
    """A tool call that arrives in fragments."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class OpenAIStream:
    """Collects a streamed response chunk by chunk."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._reasoning: list[str] = []
        self._details: list[JsonObject] = []
        self._calls: list[_StreamedCall] = []
        self._by_index: dict[int, _StreamedCall] = {}
        self._usage = Usage()
        self._finish = ""
        self._model = ""

    @property
    def finished(self) -> bool:
        """Whether the service reported the end of the answer."""
        return bool(self._finish)

    def add(self, chunk: Any) -> None:
        """Adds one chunk; raises KeyError, AttributeError, TypeError or ValueError if it is invalid."""
        self._model = _text(chunk.get("model")) or self._model
        if chunk.get("usage"):
            self._usage = parse_usage(chunk["usage"])
        for choice in (chunk.get("choices") or ())[:1]:
            self._add_delta(choice.get("delta") or {})
            self._finish = _text(choice.get("finish_reason")) or self._finish

    def reply(self) -> Reply:
        """The complete answer."""
        refusal = "".join(self._refusal)
        return _reply(
            text="".join(self._text) or refusal,
            calls=_with_unique_ids([ToolCall(call.id, call.name, "".join(call.arguments)) for call in self._calls]),
            finish="refusal" if refusal else self._finish,
            usage=self._usage,
            model=self._model,
            reasoning="".join(self._reasoning),
            details=self._details,
        )

    def _add_delta(self, delta: Mapping[str, Any]) -> None:
        for pieces, key in ((self._text, "content"), (self._refusal, "refusal")):
            if piece := _text(delta.get(key)):
                pieces.append(piece)
                self._on_text(piece)
        self._reasoning += [_text(delta[key]) for key in _REASONING_FIELDS if delta.get(key)][:1]
        for number, detail in enumerate(delta.get("reasoning_details") or ()):
            self._add_detail(detail, number)
        for number, fragment in enumerate(delta.get("tool_calls") or ()):
            self._add_fragment(fragment, number)

    def _add_fragment(self, fragment: Mapping[str, Any], number: int) -> None:
        call_id = fragment.get("id") or ""
        index = number if fragment.get("index") is None else int(fragment["index"])
        call = self._by_index.get(index)
        # Some services give every call the index 0; then only the ids differ.
        if call is None or (call_id and call.id and call_id != call.id):
            call = self._by_index[index] = _StreamedCall()
            self._calls.append(call)
        function = fragment.get("function") or {}
        call.id = call.id or call_id
        call.name = call.name or _text(function.get("name"))
        call.arguments.append(_arguments(function))

    def _add_detail(self, detail: Mapping[str, Any], number: int) -> None:
        index = detail.get("index", number)
        for existing in self._details:
            if existing.get("type") == detail.get("type") and existing.get("index", number) == index:
                longer = {
                    key: _text(existing.get(key)) + _text(detail[key]) for key in _EXTENDED_FIELDS if detail.get(key)
                }
                existing.update({key: value for key, value in detail.items() if value is not None} | longer)
                return
        self._details.append(dict(detail))


def _reply(
    *, text: str, calls: tuple[ToolCall, ...], finish: str, usage: Usage, model: str, reasoning: str, details: Any
) -> Reply:
    finish = _FINISH.get(finish, finish) or "stop"
    return Reply(
        text=text,
        tool_calls=calls,
        usage=usage,
        # Some services report "stop" although the answer has tool calls.
        finish_reason="tool_calls" if calls and finish == "stop" else finish,
        model=model,
        reasoning=reasoning,
        reasoning_details=details if isinstance(details, list) and details else None,
    )


def _text(value: Any) -> str:
    """The text, even if a service sends it in parts; raises TypeError for anything else."""
    if value is None:
        return ""
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in value)
    if not isinstance(value, str):
        raise TypeError(f"text was expected, not {value!r}")
    return value


def _arguments(function: Mapping[str, Any]) -> str:
    """The arguments as JSON text; some local servers send them as an object."""
    arguments = function.get("arguments")
    if isinstance(arguments, Mapping):
        return json.dumps(arguments, ensure_ascii=False)
    return _text(arguments)


def _count(numbers: Mapping[str, Any], name: str) -> int:
    value = numbers.get(name)
    return value if isinstance(value, int) else 0


def _with_unique_ids(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """Gives a new id to calls that have none, or the id of an earlier call."""
    seen: set[str] = set()
    unique = []
    for call in calls:
        call_id = call.id if call.id and call.id not in seen else f"call_{secrets.token_hex(12)}"
        seen.add(call_id)
        unique.append(replace(call, id=call_id))
    return tuple(unique)


OPENAI = "https://api.openai.com/v1"
# The fields of a message that chat APIs know; other fields of the record are not sent.
_API_FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id")


class OpenAIChat(SdkModel):
    """A model of an OpenAI-compatible service."""

    package = "openai"

    @property
    def _is_openai(self) -> bool:
        return (urlsplit(self._settings.base_url or OPENAI).hostname or "").endswith("openai.com")

    def _make_client(self, sdk: Any) -> Any:
        # ModelCall retries within the deadline, so the SDK must not. Local servers need no key, but the SDK does.
        return sdk.OpenAI(api_key=self._api_key or "none", base_url=self._settings.base_url or OPENAI, max_retries=0)

    def _body(self, system: str, messages: Sequence[Message], tools: Sequence[Tool], max_tokens: int) -> JsonObject:
        sent = [self._api_message(message) for message in messages]
        if system:
            sent.insert(0, {"role": "system", "content": system})
        body: JsonObject = {"model": self.name, "messages": sent}
        if tools:
            body["tools"] = [tool.openai_schema() for tool in tools]
        if self._is_openai and system:
            # OpenAI routes requests with the same key to the machine that has their prefix in its cache.
            body["prompt_cache_key"] = hashlib.sha256(system.encode("utf-8", "replace")).hexdigest()[:32]
        if self.provider == "openrouter" and "claude" in self.name:
            # OpenRouter passes this on to Anthropic, which caches only on request.
            body["cache_control"] = {"type": "ephemeral"}
        if max_tokens:
            # OpenAI renamed the field; most other services know only the old name.
            body["max_completion_tokens" if self._is_openai else "max_tokens"] = max_tokens
        return body

    def _api_message(self, message: Message) -> Message:
        kept = {key: message[key] for key in _API_FIELDS if message.get(key) is not None}
        if isinstance(kept.get("tool_calls"), list):
            kept["tool_calls"] = [repair_call(call) for call in kept["tool_calls"] if isinstance(call, Mapping)]
        kept.setdefault("content", None if kept.get("tool_calls") else "")
        details = message.get("reasoning_details")
        if (
            isinstance(details, list)
            and not self._is_openai
            and (own := [item for item in details if _is_own_detail(item)])
        ):
            kept["reasoning_details"] = own
        return kept

    def _ask(self, body: JsonObject, on_text: OnText | None, seconds_left: float) -> Reply:
        if on_text is None:
            answer = self._post("/chat/completions", body, seconds_left)
            if not isinstance(answer, Mapping):
                raise FailedAttemptError(unreadable_reply(self.label, answer))
            return parse_reply(answer)
        stream = OpenAIStream(on_text)
        for chunk in self._stream(
            "/chat/completions", body | {"stream_options": {"include_usage": True}}, seconds_left
        ):
            stream.add(chunk)
        if not stream.finished:
            raise FailedAttemptError(incomplete_stream(self.label))
        return stream.reply()


def _is_own_detail(detail: Any) -> bool:
    """Whether an opaque block came from this kind of API; Anthropic's blocks have other types."""
    return isinstance(detail, Mapping) and str(detail.get("type", "")).startswith("reasoning.")
