"""Conversations to compress, and models that summarise them well or badly."""

from collections.abc import Sequence
from typing import Any

from memoranda.agent.compression.prompts import SECTIONS
from memoranda.memory.record.rotation import LiveMessage
from memoranda.models.model import Message, Reply
from memoranda.support.tool import Tool
from memoranda.testing.scripted.model import ScriptedModel

_SENTENCE = "the parser reads a file and the cache keeps what was read so that nobody waits for the disk again"
WORDS = _SENTENCE.split()


def numbered(messages: Sequence[Message], start: int = 100, summaries: Sequence[int] = ()) -> list[LiveMessage]:
    """Messages as a session has them in its context; `summaries` are places."""
    return [
        LiveMessage(start + place * 3, message, is_summary=place in summaries)
        for place, message in enumerate(messages)
    ]  # fmt: skip


def said(role: str, text: Any) -> Message:
    return {"role": role, "content": text}


def calls(*ids: str, name: str = "terminal", arguments: str = '{"command": "ls"}') -> Message:
    """An assistant message with one call per id."""
    made = [{"id": each, "type": "function", "function": {"name": name, "arguments": arguments}} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(call: str, text: str = "done", name: str = "terminal") -> Message:
    return {"role": "tool", "content": text, "tool_call_id": call, "tool_name": name}


def work(steps: int, output: str) -> list[Message]:
    """So many calls of a tool, each with a long output."""
    return [
        each for step in range(steps) for each in (calls(f"c{step}"), result(f"c{step}", f"{output} {step} " * 600))
    ]


def chatter(turns: int, words: int = 40) -> list[Message]:
    """A conversation of so many turns, each of about so many words a message."""
    made = []
    for turn in range(turns):
        text = " ".join(WORDS[(turn + place) % len(WORDS)] for place in range(words))
        made += [said("user", f"Request {turn}: {text}."), said("assistant", f"Answer {turn}: {text}.")]
    return made


def sections(**given: str) -> str:
    """A summary as a model should write it."""
    filled = {name: given.get(name.split()[0].lower(), "- the parser reads a file") for name in SECTIONS}
    return "\n\n".join(f"## {name}\n{text}" for name, text in filled.items())


def good_model(window: int = 128_000) -> ScriptedModel:
    """A model that writes the same good summary each time, with the number of the call in it."""
    count = [0]

    def answer(system: str, messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
        count[0] += 1
        return Reply(sections(goal=f"- the cache keeps what was read, request {count[0]}"))

    return ScriptedModel(answer, window=window)
