"""The demo model and past conversations: what to look for, and what to say about what was found."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memoranda.llm.demo.situation import Result
from memoranda.llm.demo.words import content_words, covered, sentences

_PAST = re.compile(
    r"(?i)\b(?:did (?:we|i|you)|(?:have|had) (?:we|i|you) (?:ever |already )?\w+(?:ed|en|one|ut|alked|old|aid)\b"
    r"|last (?:time|week|month|year|session|night)|yesterday|earlier|previous(?:ly)?|\w+ ago|back then|remember when"
    r"|we (?:discussed|talked|decided|fixed|agreed|said|tried|found|chose|solved|settled|changed|planned)"
    r"|i (?:told|said|mentioned|asked)|you (?:told|said|suggested|recommended)|what happened)\b"
)
_SEARCH = re.compile(r"(?i)^(?:please )?(?:search|look|look it up|find)(?: for| up)?[: ]+(?P<query>.+?)[.?!]*$")
_LONGEST = 280
# The demo model's own set phrases; they say nothing about what was.
_PHRASES = (
    "I have noted that",
    "I'll remember that",
    "I know that already",
    "From our conversation",
    "I looked through",
)


def asks_about_the_past(text: str) -> bool:
    """Whether somebody asks for something that was said or done before."""
    return bool(_PAST.search(text))


def search_order(text: str) -> str:
    """What to search for when somebody says so in so many words."""
    found = _SEARCH.match(text)
    return found["query"] if found else ""


def answer_from(result: Result) -> str:
    """An answer out of evidence alone."""
    query = str(result.arguments.get("query", ""))
    if not result.answer.get("success"):
        return f"I could not look into past conversations: {result.answer.get('error', 'no reason was given')}"
    found = [each for each in result.answer.get("results") or () if isinstance(each, Mapping)]
    if not found:
        return (
            f"I looked through our past conversations for “{query}” and found nothing. That is as far as the "
            "demo model goes."
        )
    wanted = content_words(query)
    told = [(place, *_told(each, wanted)) for place, each in enumerate(found)]
    # The conversation whose words fit best; among equals, the one that search put first.
    _, score, lines = max(told, key=lambda each: (each[1], -each[0]))
    if not lines or score == 0:
        return f"I looked through our past conversations for “{query}” and found nothing that answers it."
    first = found[next(place for place, _, shown in told if shown is lines)]
    title = f" (“{first['title']}”)" if first.get("title") else ""
    more = len(found) - 1
    rest = f"\n\n{more} more conversation{'s' * (more > 1)} may bear on it; ask me to search for more." if more else ""
    return f"From our conversation of {_day(str(first.get('when', '')))}{title}:\n" + "\n".join(lines) + rest


def _told(found: Mapping[str, Any], wanted: frozenset[str]) -> tuple[float, list[str]]:
    """How well a conversation fits, and the exchange in it that does."""
    messages = [message for message in found.get("messages") or () if message.get("role") in ("user", "assistant")]
    anchor = next((place for place, message in enumerate(messages) if message.get("anchor")), 0)
    if not messages:
        snippet = re.sub(r">>>|<<<", "", str(found.get("snippet", "")))
        return covered(wanted, snippet), [f"- {snippet}"] if snippet else []
    start = anchor - 1 if messages[anchor]["role"] == "assistant" and anchor else anchor
    exchange = messages[start : start + 2]
    text = " ".join(str(message.get("content") or "") for message in exchange)
    said = [message for message in exchange if message.get("content") and not _is_phrase(str(message["content"]))]
    return covered(wanted, text), [_line(message, wanted) for message in said]


def _is_phrase(text: str) -> bool:
    return text.startswith(_PHRASES)


def _line(message: Mapping[str, Any], wanted: frozenset[str]) -> str:
    who = "you said" if message["role"] == "user" else "I answered"
    return f"- {who}: “{_part(str(message['content']), wanted)}”"


def _part(text: str, wanted: frozenset[str]) -> str:
    """The sentences that matter, in their order, as many as are read at a glance."""
    if len(text) <= _LONGEST:
        return " ".join(text.split())
    said: Sequence[str] = sentences(text)
    kept: list[str] = []
    for sentence in sorted(said, key=lambda each: -covered(wanted, each)):
        if sum(map(len, kept)) + len(sentence) > _LONGEST and kept:
            break
        kept.append(sentence[:_LONGEST])
    return " … ".join(sentence for sentence in said if sentence[:_LONGEST] in kept)


def _day(when: str) -> str:
    try:
        moment = datetime.fromisoformat(when)
    except ValueError:
        return "an earlier day"
    return f"{moment.day} {moment:%B %Y}"
