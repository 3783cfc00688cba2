"""Finds the sentences that a summary must keep verbatim: the user's standing rules, and open tasks.

Patterns find them, not a model, and every later summary repeats them. An unnecessary sentence costs only a line, so
the patterns are broad and the room for pinned sentences is limited.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memoranda.agent.compression.transcript import SENTENCE_END
from memoranda.memory.record.message_rows import text_of
from memoranda.models.model import Message
from memoranda.models.tokens import estimate_text

_MAX_CHARS = 400
_LONG_MESSAGE = 4_000
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_RULE = re.compile(
    r"(?:^|[,;:–—-]\s*|\b(?:please|you|should|must|to|and|but|we|so|also|i want|that)\s+)(?:always|never)\b"
    r"|\b(?:from now on|going forward|at all times|under no circumstances|in (?:the )?future,|no matter what"
    r"|(?:don'?t|do not) (?:ever|use|touch|change|delete|push|commit|edit|run|modify|ask)\b"
    r"|must (?:not|never|always|be|use|stay|remain|have)|(?:stick|adhere) to|rule:|keep in mind"
    r"|make sure (?:to|that|you)|only ever|whenever you|every time you)"
    r"|\b(?:immer|niemals|ab jetzt|von nun an|auf keinen fall|grundsätzlich)\b"
    r"|\b(?:siempre|nunca|jamás|a partir de ahora)\b|\b(?:toujours|jamais|désormais|à partir de maintenant)\b"
    r"|\b(?:sempre|mai più|d'ora in poi)\b|\b(?:всегда|никогда|отныне)\b"
    r"|总是|永远|从现在|从今以后|始终|务必|一律|不要再|絶対に|必ず|今後は|常に|항상|절대|앞으로는",
    re.IGNORECASE,
)
_TASK = re.compile(
    r"^\s*(?:todo|to do|task|open)\s*:|\b(?:don'?t forget to|remind me to|still (?:need|have|has) to|to be done"
    r"|we still (?:need|have)|left to do)\b|\bnicht vergessen\b|\bnoch zu tun\b|\bpendiente\b|\bà faire\b|待办|别忘了",
    re.IGNORECASE,
)
_BOX = re.compile(r"^\s*(?:[-*+]|\d+[.)])?\s*\[(?P<mark>[ xX✓✔])\]\s*(?P<text>\S.*)$", re.MULTILINE)
_LIST_TOOL = re.compile(r"todo|plan|task", re.IGNORECASE)
_FINISHED = frozenset({"completed", "complete", "done", "cancelled", "canceled", "finished"})


@dataclass(frozen=True, slots=True)
class Pinned:
    """The user's rules, and open tasks as they were written."""

    rules: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()


def find_pinned(messages: Iterable[Message], previous: Pinned, room: int) -> Pinned:
    """The previous pinned sentences and those of the messages; if they exceed `room` tokens, the newest are kept."""
    collector = _PinCollector(previous)
    for message in messages:
        collector.add(message)
    rules, tasks = list(collector.rules), list(collector.tasks)
    return Pinned(_newest_that_fit(rules, room * 2 // 3), _newest_that_fit(tasks, room // 3))


class _PinCollector:
    """Collects pinned sentences, each once, in the order in which they were last mentioned."""

    def __init__(self, previous: Pinned) -> None:
        self.rules = dict.fromkeys(previous.rules)
        self.tasks = dict.fromkeys(previous.tasks)
        self._task_list: list[str] = []

    def add(self, message: Message) -> None:
        text = _CODE.sub("\n", text_of(message.get("content")))
        if message.get("role") == "user":
            self._add_sentences(text)
        if message.get("role") in ("user", "assistant"):
            self._add_checkboxes(text)
        open_items = _open_items(message)
        if open_items is not None:
            self._replace_task_list(open_items)

    def _add_sentences(self, text: str) -> None:
        for sentence in _sentences(text):
            if _RULE.search(sentence):
                _move_to_end(self.rules, sentence)
            elif _TASK.search(sentence):
                _move_to_end(self.tasks, sentence)

    def _add_checkboxes(self, text: str) -> None:
        for match in _BOX.finditer(text):
            task = " ".join(match["text"].split())[:_MAX_CHARS]
            if match["mark"] == " ":
                _move_to_end(self.tasks, task)
            else:
                self.tasks.pop(task, None)

    def _replace_task_list(self, open_items: list[str]) -> None:
        """A task-list tool sends the whole list in each call."""
        for task in self._task_list:
            self.tasks.pop(task, None)
        self._task_list = open_items
        for task in open_items:
            _move_to_end(self.tasks, task)


def _move_to_end(entries: dict[str, None], text: str) -> None:
    entries.pop(text, None)
    entries[text] = None


def _sentences(text: str) -> Iterator[str]:
    if len(text) > _LONG_MESSAGE:
        # A pasted text: the user's own words are before or after it.
        text = f"{text[: _LONG_MESSAGE // 2]}\n{text[-_LONG_MESSAGE // 2 :]}"
    for sentence in SENTENCE_END.split(text):
        words = " ".join(sentence.split())
        if words and len(words) <= _MAX_CHARS and not words.startswith((">", "[", "|")):
            yield words


def _open_items(message: Mapping[str, Any]) -> list[str] | None:
    """The open items of a task list that the assistant writes with a tool; None if the message writes no list."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping) and _LIST_TOOL.search(str(function.get("name"))):
            items = _parse_items(function.get("arguments"))
            if items is not None:
                return items
    return None


def _parse_items(arguments: Any) -> list[str] | None:
    try:
        parsed = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return None
    lists = [value for value in parsed.values() if isinstance(value, list)] if isinstance(parsed, dict) else []
    entries = [item for item in lists[0] if isinstance(item, dict)] if lists else []
    if not entries or not all("status" in item for item in entries):
        return None
    texts = []
    for item in entries:
        text = next((item[name] for name in ("content", "step", "text", "title", "task") if item.get(name)), None)
        if isinstance(text, str) and str(item["status"]).casefold() not in _FINISHED:
            texts.append(" ".join(text.split())[:_MAX_CHARS])
    return texts


def _newest_that_fit(entries: Sequence[str], room: int) -> tuple[str, ...]:
    kept: list[str] = []
    for entry in reversed(entries):
        room -= estimate_text(entry) + 2
        if room < 0:
            break
        kept.append(entry)
    return tuple(reversed(kept))
