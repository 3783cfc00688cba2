"""The statements of a text and the sentences that answer a question, by rules."""

import json
import re
from collections.abc import Iterable
from typing import Any

from memoranda.models.model import Message
from memoranda.search.index.stop_words import STOP_WORDS

_SECTIONS = (
    re.compile(r"<messages>\n?(.*?)</messages>", re.DOTALL),
    re.compile(r"^## New Messages\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE),
    re.compile(r"^### New facts\n(.*?)(?=^### |\Z)", re.DOTALL | re.MULTILINE),
    re.compile(r"^(?:Content|Text):\n(.*)\Z", re.DOTALL | re.MULTILINE),
)
_SPEAKER = re.compile(r"^\s*(?:\[[^\]]*\]\s*)?(?:\d{4}-\d\d-\d\d[T ]?[\d:.+Z-]*\s+)?(?:([\w.@-]{1,64}):\s+)?(?=\S)")
_OTHER_SPEAKERS = ("assistant", "ai", "system", "tool", "bot", "model")
_TRAILING_LABELS = re.compile(r"\s*\(\w+=[^()]*\)$", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_MIN_WORDS = 3
_MAX_FACTS = 50


def message_text(message: Message) -> str:
    """The text of a message, whose content may be a text or a list of parts."""
    content: Any = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content or () if isinstance(part, dict))


def find_facts(prompt: str) -> tuple[str, ...]:
    """The statements of the user in a prompt, each once; questions and what an assistant said are not facts.

    A prompt that asks for an extraction marks the text that it means; without a mark it is the whole prompt.
    """
    facts = dict.fromkeys(
        sentence
        for text in _user_texts(_marked_text(prompt))
        for sentence in split_sentences(text)
        if _is_fact(sentence)
    )
    return tuple(facts)[:_MAX_FACTS]


def answer_question(question: str, context: Iterable[str], limit: int = 3) -> str:
    """The sentences of the context that share most words with the question, best first; empty where none does."""
    asked = _words(question)
    sentences = dict.fromkeys(sentence for text in context for sentence in split_sentences(text))
    ranked = sorted(((len(asked & _words(sentence)), sentence) for sentence in sentences), key=lambda pair: -pair[0])
    return " ".join(sentence for shared, sentence in ranked[:limit] if shared >= 2)


def split_sentences(text: str) -> list[str]:
    return [sentence.strip() for sentence in _SENTENCE_END.split(text) if sentence.strip()]


def _marked_text(prompt: str) -> str:
    for section in _SECTIONS:
        found = section.search(prompt)
        if found:
            return _TRAILING_LABELS.sub("", found[1].strip())
    return prompt


def _user_texts(text: str) -> list[str]:
    """What the user said in a transcript, in JSON or with the speaker before each line."""
    try:
        turns = json.loads(text)
    except ValueError:
        return _spoken_lines(text)
    if not isinstance(turns, list):
        return [text]
    return [message_text(turn) for turn in turns if isinstance(turn, dict) and turn.get("role", "user") == "user"]


def _spoken_lines(text: str) -> list[str]:
    """The lines without speakers and times; lines of assistants are omitted, and so are those that continue them."""
    lines: list[str] = []
    skip = False
    for line in text.splitlines():
        prefix = _SPEAKER.match(line)
        speaker = prefix[1] if prefix else None
        if speaker:
            skip = speaker.casefold() in _OTHER_SPEAKERS
        if not skip:
            lines.append(line[prefix.end() :] if prefix else line)
    return lines


def _is_fact(sentence: str) -> bool:
    return not sentence.endswith(("?", "？")) and (len(sentence.split()) >= _MIN_WORDS or not sentence.isascii())


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.casefold()) if word not in STOP_WORDS}
