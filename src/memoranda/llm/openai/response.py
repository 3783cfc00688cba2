"""How an answer in OpenAI's form, whole or in pieces, becomes a Reply."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memoranda.llm.model import OnText, Reply, ToolCall, Usage
from memoranda.tools import JsonObject

_FINISH = {"function_call": "tool_calls", "content_filter": "refusal", "eos": "stop", "end_turn": "stop"}
# Services name the model's visible thinking in one of these ways.
_REASONING = ("reasoning_content", "reasoning")
# Fields of an opaque block that grow from piece to piece.
_GROWING = ("text", "summary", "data")


def parse_reply(answer: Mapping[str, Any]) -> Reply:
    """A whole answer; raises KeyError, IndexError, TypeError or ValueError for what is none."""
    choice = answer["choices"][0]
    message = choice["message"]
    calls = _told_apart([
        ToolCall(call.get("id") or "", _name(call["function"]), _arguments(call["function"]))
        for call in message.get("tool_calls") or ()
    ])  # fmt: skip
    return _reply(
        text=_text(message.get("content")) or _text(message.get("refusal")),
        calls=calls,
        finish="refusal" if message.get("refusal") else _text(choice.get("finish_reason")),
        usage=parse_usage(answer.get("usage")),
        model=_text(answer.get("model")),
        reasoning=next((_text(message[key]) for key in _REASONING if message.get(key)), ""),
        details=message.get("reasoning_details"),
    )


def parse_usage(usage: Any) -> Usage:
    """What a service says it used; nothing when it says nothing."""
    if not isinstance(usage, Mapping):
        return Usage()
    sent = usage.get("prompt_tokens_details") or {}
    written = usage.get("completion_tokens_details") or {}
    return Usage(
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        # DeepSeek has a name of its own for what the cache served.
        cache_read_tokens=_count(sent, "cached_tokens") or _count(usage, "prompt_cache_hit_tokens"),
        cache_write_tokens=_count(sent, "cache_write_tokens"),
        reasoning_tokens=_count(written, "reasoning_tokens"),
    )


@dataclass(slots=True)
class _StreamedCall:
    """A tool call whose arguments come in fragments."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class OpenAIStream:
    """An answer that comes in chunks."""

    def __init__(self, say: OnText) -> None:
        self._say = say
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
        """Whether the service said that the answer is complete."""
        return bool(self._finish)

    def take(self, chunk: Any) -> None:
        """One chunk; raises TypeError and the like for what is none."""
        self._model = _text(chunk.get("model")) or self._model
        if chunk.get("usage"):
            self._usage = parse_usage(chunk["usage"])
        for choice in (chunk.get("choices") or ())[:1]:
            self._take_delta(choice.get("delta") or {})
            self._finish = _text(choice.get("finish_reason")) or self._finish

    def reply(self) -> Reply:
        """The whole answer."""
        failure_from_status = "".join(self._refusal)
        return _reply(
            text="".join(self._text) or failure_from_status,
            calls=_told_apart([ToolCall(call.id, call.name, "".join(call.arguments)) for call in self._calls]),
            finish="refusal" if failure_from_status else self._finish,
            usage=self._usage,
            model=self._model,
            reasoning="".join(self._reasoning),
            details=self._details,
        )

    def _take_delta(self, delta: Mapping[str, Any]) -> None:
        for pieces, key in ((self._text, "content"), (self._refusal, "refusal")):
            if piece := _text(delta.get(key)):
                pieces.append(piece)
                self._say(piece)
        self._reasoning += [_text(delta[key]) for key in _REASONING if delta.get(key)][:1]
        for number, detail in enumerate(delta.get("reasoning_details") or ()):
            self._take_detail(detail, number)
        for number, fragment in enumerate(delta.get("tool_calls") or ()):
            self._take_fragment(fragment, number)

    def _take_fragment(self, fragment: Mapping[str, Any], number: int) -> None:
        index, name = fragment.get("index"), fragment.get("id") or ""
        place = number if index is None else int(index)
        call = self._by_index.get(place)
        # Some services number every call 0 and tell them apart by their ids alone.
        if call is None or (name and call.id and name != call.id):
            call = self._by_index[place] = _StreamedCall()
            self._calls.append(call)
        function = fragment.get("function") or {}
        call.id = call.id or name
        call.name = call.name or _text(function.get("name"))
        call.arguments.append(_arguments(function))

    def _take_detail(self, detail: Mapping[str, Any], number: int) -> None:
        index = detail.get("index", number)
        for known in self._details:
            if known.get("type") == detail.get("type") and known.get("index", number) == index:
                grown = {key: _text(known.get(key)) + _text(detail[key]) for key in _GROWING if detail.get(key)}
                known.update({key: value for key, value in detail.items() if value is not None} | grown)
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
        # Some services say "stop" beside tool calls.
        finish_reason="tool_calls" if calls and finish == "stop" else finish,
        model=model,
        reasoning=reasoning,
        reasoning_details=details if isinstance(details, list) and details else None,
    )


def _text(value: Any) -> str:
    """Text, also where a service sends it in parts; raises TypeError for anything else."""
    if value is None:
        return ""
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in value)
    if not isinstance(value, str):
        raise TypeError(f"text was expected, not {value!r}")
    return value


def _name(function: Mapping[str, Any]) -> str:
    return _text(function["name"])


def _arguments(function: Mapping[str, Any]) -> str:
    """The arguments as JSON text; some local servers send them as an object."""
    arguments = function.get("arguments")
    if isinstance(arguments, Mapping):
        return json.dumps(arguments, ensure_ascii=False)
    return _text(arguments)


def _count(numbers: Mapping[str, Any], name: str) -> int:
    value = numbers.get(name)
    return value if isinstance(value, int) else 0


def _told_apart(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls with an id of its own for each, where a service gives none or the same to two."""
    seen: set[str] = set()
    kept = []
    for call in calls:
        name = call.id if call.id and call.id not in seen else _new_id()
        seen.add(name)
        kept.append(replace(call, id=name))
    return tuple(kept)


def _new_id() -> str:
    return f"call_{secrets.token_hex(12)}"
