"""Names the entries and notes that share most with a new text: it may be the new value of the same thing.

Two texts share as much as the weight of the words that both have, of the weight of all their words. A word weighs the
more the fewer texts of the same memory have it, so a name that stands in every entry says little. Whether the new text
replaces the other is not decided here.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import log

from memoranda.errors import StorageError
from memoranda.memory.curated.facts import show_days
from memoranda.memory.curated.settings import NOTES, Target
from memoranda.memory.curated.store import MemoryStore
from memoranda.search.index.tokenizer import STOP_WORDS, is_single_character, tokenize

_log = logging.getLogger(__name__)

MAX_SIMILAR = 2
# What two texts must have in common of the weight of their words to be shown.
_LEAST = 0.18
_MAX_NOTES = 200


def similar_entries(store: MemoryStore, target: Target, texts: Sequence[str]) -> list[str]:
    """The entries and notes of a memory that share most with texts, the closest first, as they are shown.

    A memory that cannot be read has none: the write that asks is done.
    """
    try:
        owner = (store.project or "memory") if target == NOTES else target
        entries = store.valid_entries(owner)
        notes = store.notes.all(owner, limit=_MAX_NOTES) if store.notes is not None else []
        known = [*entries, *(note.text for note in notes if not note.replaced)]
        found = closest(texts, [text for text in dict.fromkeys(known) if text not in texts])
        shown = [text for text in found if text in entries or store.visible_text(owner, text) == text]
        return show_days(shown[:MAX_SIMILAR], lambda: store.facts(owner))
    except (OSError, StorageError) as error:
        _log.warning("what is similar is not known: %s", error)
        return []


def closest(new: Iterable[str], texts: Sequence[str]) -> list[str]:
    """The texts that share enough with one of the new ones, the closest first."""
    words = {text: _words(text) for text in texts}
    counts = Counter(word for each in words.values() for word in each)

    def weigh(these: frozenset[str]) -> float:
        return sum(log(1 + (len(texts) + 1) / (counts[word] + 0.5)) for word in these)

    def shared(own: frozenset[str], text: str) -> float:
        return 2 * weigh(own & words[text]) / ((weigh(own) + weigh(words[text])) or 1.0)

    def scored() -> Iterator[tuple[float, str]]:
        owns = [_words(text) for text in new]
        for text in texts:
            yield max((shared(own, text) for own in owns), default=0.0), text

    return [text for score, text in sorted(scored(), key=lambda pair: -pair[0]) if score >= _LEAST]


def _words(text: str) -> frozenset[str]:
    """The words that say something; the single characters of unspaced scripts are also parts of pairs."""
    words = frozenset(tokenize(text)) - STOP_WORDS
    return frozenset(word for word in words if not is_single_character(word)) or words
