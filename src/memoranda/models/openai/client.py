"""The client for OpenAI's chat completions and compatible services: OpenRouter, vLLM, Ollama, llama.cpp …"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from memoranda.models.model import Message, OnText, Reply
from memoranda.models.model_call import FailedAttemptError
from memoranda.models.openai.response import OpenAIStream, parse_reply
from memoranda.models.sdk_model import SdkModel
from memoranda.models.tool_call_repair import repair_call
from memoranda.models.vendor_errors import incomplete_stream, unreadable_reply
from memoranda.support.tool import JsonObject, Tool

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
