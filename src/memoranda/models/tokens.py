"""Token estimates without a tokenizer, and the context windows and maximum answer lengths of known models.

Callers use an estimate until the provider's own count is known. Latin text has about four characters per token, other
alphabets about two, and Chinese, Japanese and Korean about one. Vendors differ by a third and more.

Windows are found by patterns of model names. The names change faster than Memoranda's releases, so unknown ones get a
cautious default. The setting `model.window` overrides both.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any

from memoranda.support.lazy_pattern import compile_later
from memoranda.support.tool import Tool

_PER_MESSAGE = 4
_PER_CALL = 8
_PER_IMAGE = 1_200
_CJK = compile_later(r"[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]")
_OTHER = compile_later(r"[^\x00-\u024f\u2000-\u206f]")
_NUMBER_OR_SIGN = compile_later(r"[0-9]{1,3}|[^\w\s]")
# Fields that are sent to the model in addition to the content.
_SENT = ("reasoning_details",)


def estimate_text(text: str) -> int:
    if not text:
        return 0
    if text.isascii():
        wide = other = 0
    else:
        wide = len(_CJK.findall(text))
        other = len(_OTHER.findall(text)) - wide
    latin = len(text) - wide - other
    # Code and JSON have more punctuation and digits than prose, and each of these is nearly a token.
    dense = sum(1 for _ in _NUMBER_OR_SIGN.finditer(text))
    return ceil(max(latin / 4, min(latin / 2, latin / 5.5 + dense / 2)) + wide * 1.1 + other / 2)


def estimate_content(content: Any) -> int:
    """Tokens of a message's content, which is text or a list of text and image parts."""
    if content is None:
        return 0
    if isinstance(content, str):
        return estimate_text(content)
    if isinstance(content, list | tuple):
        return sum(map(estimate_content, content))
    if isinstance(content, Mapping):
        kind = str(content.get("type", ""))
        if "image" in kind:
            return _PER_IMAGE
        if isinstance(content.get("text"), str):
            return estimate_text(content["text"])
        return estimate_text(_json(content))
    return estimate_text(str(content))


def estimate_message(message: Mapping[str, Any]) -> int:
    """Tokens of one message, including tool calls."""
    tokens = _PER_MESSAGE + estimate_content(message.get("content"))
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        tokens += _PER_CALL + estimate_text(_json(call.get("function") if isinstance(call, Mapping) else call))
    return tokens + sum(estimate_text(_json(message[name])) for name in _SENT if message.get(name))


def estimate_messages(messages: Iterable[Mapping[str, Any]]) -> int:
    return sum(map(estimate_message, messages))


def estimate_tools(tools: Iterable[Tool]) -> int:
    return sum(_PER_CALL + estimate_text(_json(tool.anthropic_schema())) for tool in tools)


def estimate_request(system: str, messages: Sequence[Mapping[str, Any]], tools: Sequence[Tool] = ()) -> int:
    """Tokens of everything that one model call sends."""
    return estimate_text(system) + estimate_messages(messages) + estimate_tools(tools)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


DEFAULT_WINDOW = 128_000
_DEFAULT_ANSWER_TOKENS = 16_000

# The first matching pattern wins. A name may start with its vendor, as in "anthropic/claude-sonnet-5".
_WINDOWS = tuple(
    (re.compile(pattern), window)
    for pattern, window in (
        (r"claude-(opus|sonnet|fable|mythos)-5|claude-opus-4[-.][678]|claude-sonnet-4[-.]6", 1_000_000),
        (r"claude-(2|instant)", 100_000),
        (r"claude", 200_000),
        (r"gpt-5[.]\d+-(mini|nano)", 400_000),
        (r"gpt-6|gpt-5[.][4-9]", 922_000),
        (r"gpt-5", 400_000),
        (r"gpt-4[.]1", 1_047_576),
        (r"gpt-4o|gpt-4-turbo|gpt-4-1106|gpt-4-0125|gpt-oss|chatgpt-4o", 128_000),
        (r"gpt-4-32k", 32_768),
        (r"gpt-4", 8_192),
        (r"gpt-3[.]5", 16_385),
        (r"(^|/)o[134](-|$)", 200_000),
        (r"gemini", 1_048_576),
        (r"gemma-?2", 8_192),
        (r"llama-?3(-|:|$)|llama-?2", 8_192),
        (r"mixtral|mistral-7b", 32_768),
        (r"phi-?3", 4_096),
        (r"kimi-k2|qwen3", 256_000),
    )
)
_ANSWER_TOKENS = (
    (re.compile(r"claude-3-(opus|sonnet|haiku)|claude-(2|instant)"), 4_096),
    (re.compile(r"claude-3"), 8_192),
)


def context_window(name: str) -> int:
    return next((window for pattern, window in _WINDOWS if pattern.search(name.lower())), DEFAULT_WINDOW)


def max_answer_tokens(name: str) -> int:
    """The answer limit for services that require one."""
    return next((tokens for pattern, tokens in _ANSWER_TOKENS if pattern.search(name.lower())), _DEFAULT_ANSWER_TOKENS)
