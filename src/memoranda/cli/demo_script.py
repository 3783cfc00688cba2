"""The model's part in `memoranda demo`: which tools it calls and how it words its answers.

The lines are written in advance; the facts in them are not. An answer quotes them from the system prompt or from the
result of a tool, so it fails when the memory behind it fails.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from memoranda.agent.compression import prompts as compression_prompts
from memoranda.agent.review import prompts as review_prompts
from memoranda.errors import ModelUnreachableError
from memoranda.models.model import Message, Reply, ToolCall
from memoranda.support.tool import Tool
from memoranda.testing.scripted.model import Step

_REVIEW = "[Background review."
_HIGHLIGHT = re.compile(">>>|<<<")
_NOT_FOUND = "I cannot find that."
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n")


def save(target: str, content: str) -> list[Step]:
    """Save an entry with the memory tool, and repeat what the tool reports."""
    return [_call("memory", target=target, action="add", content=content), _report_write]


def answer_from_prompt(word: str) -> list[Step]:
    """Answer with the sentence of the system prompt that contains this word."""

    def answer(system: str, messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
        return Reply(_quote(word, [system]))

    return [answer]


def answer_from_search(query: str, word: str) -> list[Step]:
    """Search past conversations, and answer with the sentence of the result that contains this word."""

    def answer(system: str, messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
        return Reply(_quote(word, _strings(json.loads(messages[-1]["content"]))))

    return [_call("session_search", query=query), answer]


def listen(system: str, messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
    """Acknowledge every message and write no summary: compression then keeps an extract of the conversation."""
    if system == compression_prompts.SYSTEM:
        raise ModelUnreachableError("the demo has no model that could write a summary")
    if str(messages[-1].get("content")).startswith(_REVIEW):
        return Reply(review_prompts.NOTHING)
    return Reply("Noted. I keep the list up to date; please continue with the next shelf.")


def _call(name: str, **arguments: str) -> Reply:
    return Reply(tool_calls=(ToolCall(f"call_{name}", name, json.dumps(arguments, ensure_ascii=False)),))


def _report_write(system: str, messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
    return Reply(str(json.loads(messages[-1]["content"]).get("message", _NOT_FOUND)))


def _quote(word: str, texts: Iterable[str]) -> str:
    sentences = (sentence.strip() for text in texts for sentence in _SENTENCE_END.split(_HIGHLIGHT.sub("", text)))
    return next((f"“{sentence}”" for sentence in sentences if word in sentence), _NOT_FOUND)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)
