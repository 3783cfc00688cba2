"""The mix of fifty queries, chosen from the corpus itself so that each finds what its class promises.

Both programs search what people and the model said, so words are counted there and not in tool output.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from benchmarks.sessions.corpus import CHINESE_PHRASES, PHRASES, SEED, Session
from benchmarks.sessions.words import CHINESE, COMMON, RARE

NO_MATCH = "no match"
_NOWHERE = ["quizzaciously", "xylovantric", "brontoquell", "zephyrgarn", "wolkendrift", "mnemoclasp"]
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Query:
    kind: str
    text: str


def queries(sessions: list[Session]) -> list[Query]:
    """Seven common and seven rare words, and six of each other class."""
    texts = list(_spoken_texts(sessions))
    words = [frozenset(_WORD.findall(text.casefold())) for text in texts]
    frequency = Counter(word for found in words for word in found)
    everything = "\n".join(texts)
    common = [word for word in COMMON if 0.1 <= frequency[word] / len(texts) <= 0.4]
    rare = [word for word in RARE if 1 <= frequency[word] <= 3]
    triples = _triples(words, frequency, len(texts))
    # The two ways to ask for all of three words.
    together = [" AND ".join(triple) if number % 2 else " ".join(triple) for number, triple in enumerate(triples)]
    kinds = {
        "common word": _pick_evenly(common, 7),
        "rare word": _pick_evenly(rare, 7),
        "three-word phrase": [f'"{phrase}"' for phrase in _pick_evenly(_occurring(PHRASES, everything), 6)],
        "three terms": together,
        "prefix": [f"{word[:5]}*" for word in _pick_evenly([word for word in common if len(word) > 5], 6)],
        "two Chinese characters": _pick_evenly(_occurring(CHINESE, everything)[:60], 6),
        "four Chinese characters": _pick_evenly(_occurring(CHINESE_PHRASES, everything), 6),
        NO_MATCH: _NOWHERE,
    }
    return [Query(kind, text) for kind, chosen in kinds.items() for text in chosen]


def _spoken_texts(sessions: list[Session]) -> Iterator[str]:
    return (message.content for session in sessions for message in session.messages if message.role != "tool")


def _pick_evenly(items: list[str], count: int) -> list[str]:
    """Return `count` of the items, evenly from the first to the last."""
    return [items[index * (len(items) - 1) // (count - 1)] for index in range(count)]


def _occurring(phrases: list[str], text: str) -> list[str]:
    return [phrase for phrase in phrases if phrase in text]


def _triples(words: list[frozenset[str]], frequency: Counter[str], total: int) -> list[list[str]]:
    """Return sets of three words that occur in the same message and are neither rare nor very common."""
    rng = random.Random(SEED)
    usable = {word for word in COMMON if 0.005 <= frequency[word] / total <= 0.25}
    found = (sorted(usable & rng.choice(words)) for _ in iter(int, 1))
    return [rng.sample(choice, 3) for choice in islice((choice for choice in found if len(choice) >= 3), 6)]
