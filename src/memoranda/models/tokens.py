"""Estimates how many tokens a text, a conversation or a set of tools takes, without a tokenizer.

Callers use the estimate until the provider's own count is known. Latin text has about four characters per token, other
alphabets about two, and Chinese, Japanese and Korean about one. Vendors differ by a third and more.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any

from memoranda.support.tool import Tool

_PER_MESSAGE = 4
_PER_CALL = 8
_PER_IMAGE = 1_200
_CJK = re.compile(r"[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]")
_OTHER = re.compile(r"[^\x00-\u024f\u2000-\u206f]")
_NUMBER_OR_SIGN = re.compile(r"[0-9]{1,3}|[^\w\s]")
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
