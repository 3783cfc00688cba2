"""The client for Anthropic's messages API: content blocks, cache breakpoints, signed thinking blocks."""

from collections.abc import Mapping, Sequence
from typing import Any

from memoranda.models.anthropic.cache_breakpoints import add_cache_breakpoints
from memoranda.models.anthropic.messages import to_anthropic_messages
from memoranda.models.anthropic.response import AnthropicStream, parse_reply
from memoranda.models.anthropic.thinking import bind_thinking, fingerprint, without_thinking
from memoranda.models.context_windows import max_answer_tokens
from memoranda.models.model import Message, OnText, Reply
from memoranda.models.model_call import FailedAttemptError
from memoranda.models.sdk_model import SdkModel, import_sdk
from memoranda.models.vendor_errors import incomplete_stream, unreadable_reply
from memoranda.support.tool import JsonObject, Tool

ANTHROPIC = "https://api.anthropic.com"


class AnthropicMessages(SdkModel):
    """A Claude model."""

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
