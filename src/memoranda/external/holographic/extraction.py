"""Extracts statements worth keeping from the user's messages of a session.

The patterns are conservative: they accept sentences that plainly say what the user prefers or always does, or what was
decided in the project. They skip requests, questions, wishes, guesses and sentences that depend on their context ("I
like this one").
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from memoranda.safety.fence import sanitize_context

_MIN_CHARS, _MAX_CHARS = 10, 300
_MAX_PER_SESSION = 20

_CODE = re.compile(r"```.*?(?:```|\Z)|^[ \t]*>[^\n]*", re.DOTALL | re.MULTILINE)
_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:\.(?=\S)[^.!?。！？\n]*)*[.!?。！？]*")
_THINGS = r"(?!(?:it|this|that|these|those|them|him|her|you|your|the (?:first|second|last|idea|way)|to see|how|what)\b)"
_PREFERENCE = re.compile(
    rf"^(?:(?:btw|fyi|by the way|note that|also|and)[,:]?\s+)?(?:"
    rf"i (?:really |strongly |much )?(?:prefer|like|love|dislike|hate|avoid|favou?r) {_THINGS}\w"
    rf"|i (?:always|never|usually|generally|mostly) (?!(?:get|got|see|forget|wanted|thought|had|said|knew|wonder)\b)\w"
    rf"|i (?:use|write|live|work|speak) {_THINGS}\w"
    rf"|i am (?:allergic|vegetarian|vegan)\b|i'm (?:allergic|vegetarian|vegan)\b"
    rf"|my (?:\w+ ){{0,3}}(?:is|are) {_THINGS}\w)",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"^(?:(?:ok|okay|fyi|btw|by the way|note that|also|and|so)[,:]?\s+)?(?:"
    r"we (?:(?:have |'ve )?(?:decided|agreed|chose|chosen|settled on)|always|never|use|deploy|run|host|store|require)"
    r" \w"
    r"|(?:the|our|this) (?:[\w-]+ ){0,2}"
    r"(?:uses|requires|runs on|is written in|is hosted|lives in|listens on|is deployed) \w)",
    re.IGNORECASE,
)
_NOT_A_STATEMENT = re.compile(
    r"\?|^\s*(?:can|could|would|will|please|help|let|should|do|does|did|is|are|what|how|why|when|where|who|if)\b"
    r"|\b(?:i need|i want|i'd like|i would like|need help|help me|please|can you|could you|maybe|perhaps|might|would"
    r"|i think|i guess|not sure|probably|wonder|for example|e\.g\.|suppose|imagine|let's|error|fails?|failing|broken)\b"
    r"|请|請|ください|\bif\b",
    re.IGNORECASE,
)
_PROBLEM = re.compile(
    r"\bmy (?:question|problem|issue|code|goal|point|guess|idea|bad|plan|task|first|next)\b", re.IGNORECASE
)


class Statement(NamedTuple):
    """A sentence of the user, its category, and the id of its message."""

    text: str
    category: str
    message: str


def extract_statements(messages: Iterable[Any]) -> list[Statement]:
    """The user's statements in these messages, each once."""
    found: dict[str, Statement] = {}
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping) or message.get("role") != "user":
            continue
        origin = str(message.get("id") or message.get("message_id") or f"message {number + 1}")
        for text in _texts(message.get("content")):
            for sentence in _sentences(text):
                category = category_of(sentence)
                if category is not None:
                    found.setdefault(sentence.casefold(), Statement(sentence, category, origin))
    return list(found.values())[:_MAX_PER_SESSION]


def category_of(sentence: str) -> str | None:
    """The category of a statement; None if the sentence is not a statement."""
    plain = sentence.replace("’", "'").strip()
    if not _MIN_CHARS <= len(plain) <= _MAX_CHARS or _NOT_A_STATEMENT.search(plain) or _PROBLEM.search(plain):
        return None
    if _DECISION.search(plain):
        return "project"
    return "user_pref" if _PREFERENCE.search(plain) else None


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, Mapping) and isinstance(part.get("text"), str):
                yield part["text"]


def _sentences(text: str) -> Iterator[str]:
    # Recalled text is not the user's: otherwise a memory would create itself again.
    text = _CODE.sub("\n", sanitize_context(text))
    for match in _SENTENCE.finditer(text):
        yield " ".join(match.group().split()).lstrip("-*• ")
