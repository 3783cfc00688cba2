"""What must not be put into other words: the user's standing rules, and tasks that are still open.

They are found by rules, not by a model, and stand verbatim in every summary from then on. Finding a sentence too many
costs a line; so the signs are broad, and the room is limited.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memoranda.compression.transcript import SENTENCE_END
from memoranda.llm.model import Message
from memoranda.llm.tokens import estimate_text
from memoranda.sessions.message_rows import text_of

_LONGEST = 400
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
    """Sentences of the user, and open tasks as they were written."""

    rules: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()


def find_pinned(messages: Iterable[Message], known: Pinned, room: int) -> Pinned:
    """What is pinned after some more messages; of more than there is room for, the newest stay."""
    rules, tasks = dict.fromkeys(known.rules), dict.fromkeys(known.tasks)
    listed: list[str] = []
    for message in messages:
        text = _CODE.sub("\n", text_of(message.get("content")))
        if message.get("role") == "user":
            for sentence in _sentences(text):
                if _RULE.search(sentence):
                    _put_last(rules, sentence)
                elif _TASK.search(sentence):
                    _put_last(tasks, sentence)
        if message.get("role") in ("user", "assistant"):
            for mark, task in _boxes(text):
                _put_last(tasks, task)
                if mark != " ":
                    del tasks[task]
        found = _listed(message)
        if found is not None:
            # A tool that keeps a list says all of it each time.
            for task in listed:
                tasks.pop(task, None)
            listed = found
            for task in found:
                _put_last(tasks, task)
    return Pinned(_fitting(list(rules), room * 2 // 3), _fitting(list(tasks), room // 3))


def _put_last(entries: dict[str, None], text: str) -> None:
    entries.pop(text, None)
    entries[text] = None


def _sentences(text: str) -> Iterator[str]:
    if len(text) > _LONG_MESSAGE:
        # Something that was pasted; the user's own words stand before or behind it.
        text = f"{text[: _LONG_MESSAGE // 2]}\n{text[-_LONG_MESSAGE // 2 :]}"
    for sentence in SENTENCE_END.split(text):
        words = " ".join(sentence.split())
        if words and len(words) <= _LONGEST and not words.startswith((">", "[", "|")):
            yield words


def _boxes(text: str) -> Iterator[tuple[str, str]]:
    for match in _BOX.finditer(text):
        yield match["mark"], " ".join(match["text"].split())[:_LONGEST]


def _listed(message: Mapping[str, Any]) -> list[str] | None:
    """The open items of a list that the assistant keeps by a tool; None when the message keeps none."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping) and _LIST_TOOL.search(str(function.get("name"))):
            items = _items(function.get("arguments"))
            if items is not None:
                return items
    return None


def _items(arguments: Any) -> list[str] | None:
    try:
        given = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return None
    lists = [value for value in given.values() if isinstance(value, list)] if isinstance(given, dict) else []
    entries = [item for item in lists[0] if isinstance(item, dict)] if lists else []
    if not entries or not all("status" in item for item in entries):
        return None
    texts = []
    for item in entries:
        text = next((item[name] for name in ("content", "step", "text", "title", "task") if item.get(name)), None)
        if isinstance(text, str) and str(item["status"]).casefold() not in _FINISHED:
            texts.append(" ".join(text.split())[:_LONGEST])
    return texts


def _fitting(entries: Sequence[str], room: int) -> tuple[str, ...]:
    kept: list[str] = []
    for entry in reversed(entries):
        room -= estimate_text(entry) + 2
        if room < 0:
            break
        kept.append(entry)
    return tuple(reversed(kept))
