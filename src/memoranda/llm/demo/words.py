"""Which words of a sentence carry its meaning, and how much of a question another sentence covers."""

import re
from collections.abc import Iterable

_SMALL_WORDS = """
a an the and or but if of at by for with about to from in on off over under up down out into is are was were be been
being am do does did done have has had i me my mine we us our you your yours he she it its they them their this that
these those what which who whom whose when where why how can could will would should shall may might must please tell
show know remember recall say said not no yes so as than then there here just also any some all again user users s t m
re ve ll d let now still one ones thing things kind sort way mean means last time times before earlier ago yesterday
previous previously discussed talked session conversation call called find search look
"""
_SMALL = frozenset(_SMALL_WORDS.split())
_WORD = re.compile(r"[^\W_]+(?:[-.'’/][^\W_]+)*")
_CJK = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_ENDINGS = ("ing", "ed", "es", "s", "e")


def content_words(text: str) -> frozenset[str]:
    """The words that matter, without their endings; runs of Chinese or Japanese as pairs of characters."""
    found: set[str] = set()
    for match in _WORD.finditer(text.lower().replace("’", "'")):
        word = match[0].removesuffix("'s")
        if runs := _CJK.findall(word):
            found.update(run[place : place + 2] for run in runs for place in range(max(1, len(run) - 1)))
        elif word not in _SMALL:
            found.add(_stem(word))
    return frozenset(found)


def sentences(text: str) -> list[str]:
    """The sentences of a text, blank ones left out."""
    return [piece.strip() for piece in _SENTENCE.split(text) if piece and piece.strip()]


def covered(question: frozenset[str], text: str) -> float:
    """The share of the question's words that a text has."""
    return len(question & content_words(text)) / len(question) if question else 0.0


def best(question: frozenset[str], texts: Iterable[str], *, least: float = 0.5) -> list[str]:
    """The texts that cover most of the question, the best first; none below `least`."""
    scored = [(covered(question, text), -place, text) for place, text in enumerate(texts)]
    top = max((score for score, _, _ in scored), default=0.0)
    if top < least:
        return []
    return [text for score, _, text in sorted(scored, reverse=True) if score >= max(least, top - 0.01)]


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
