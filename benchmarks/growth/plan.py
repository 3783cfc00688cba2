"""What is planted into a corpus and asked of it: a hundred notes, reference words, and searches of seven kinds.

A note is one message with five middling words, by turns of a user and of the model, in conversations that are spread
evenly over the corpus; a tenth of the notes are in sessions of source cron. The words of the other searches are chosen
by how often they occur in the first 10,000 messages. Standard library only.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

from benchmarks.growth.conversation import Conversation
from benchmarks.growth.corpora import Corpus
from benchmarks.growth.middling_words import MIDDLING
from benchmarks.sessions.words import COMMON

NOTES, CRON_NOTES = 100, 10
# Kinds of searches. The first two ask for the notes.
QUESTION, WORDS = "question, 8 to 12 words", "five plain words"
SHORT, COMMON_QUESTION, COMMON_WORD = "question, 6 words", "question of common words", "common word"
PHRASE, CJK = "phrase", "Chinese"
KINDS = (QUESTION, WORDS, SHORT, COMMON_QUESTION, COMMON_WORD, PHRASE, CJK)

_SAMPLE = 10_000
_SEED = 41
_PER_KIND = 20
_REFERENCE_EVERY = 50
_WORD = re.compile(r"[a-z]+")
_HAN = re.compile("[\u4e00-\u9fff]{4,}")
_NOTE_FORMS = (
    "The {} stays beside the {}; the {} follows the {}, never the {}.",
    "Keep {} and {} apart: first the {}, then the {}, last the {}.",
    "We put the {} under the {} because the {} needs a {} and a {}.",
    "Before the {} comes the {}, after it the {}; a {} replaces the {}.",
)
_QUESTION_FORMS = (
    "What did we decide about the {}, {}, {}, {} and {}?",
    "Where is it written how {} and {} need {}, {}, {}?",
    "Which {} {} belongs to the {} {} and {}?",
    "How does {} {} change {} {} {}?",
)
_COMMON_FORMS = ("what is the {} of the {}", "how does the {} use the {}", "why is a {} in the {}")
_NOTHING = ("quizzaciously", "xylovantric", "brontoquell", "zephyrgarn", "wolkendrift", "mnemoclasp")

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Note:
    """A planted message: in which conversation, by whom, and its five words."""

    number: int
    session_id: str
    role: str
    cron: bool
    text: str
    words: list[str]


@dataclass(frozen=True, slots=True)
class SearchText:
    """A search, and the number of the note it asks for."""

    kind: str
    text: str
    note: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is planted into the corpus at one size, and everything that is asked."""

    notes: list[Note]
    searches: list[SearchText]
    nothing: list[str] = field(default_factory=lambda: list(_NOTHING))

    def as_data(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> "Plan":
        notes = [Note(**note) for note in data["notes"]]
        return cls(notes, [SearchText(**search) for search in data["searches"]], data["nothing"])

    def read(self, corpus: Corpus, messages: int) -> Iterator[Conversation]:
        """Yield the conversations with what is planted into them."""
        planted = {note.number: note for note in self.notes}
        for number, conversation in corpus.read(messages):
            yield _plant(conversation, number, planted.get(number))


def reference_word(number: int) -> str | None:
    """Return the word that occurs in this conversation and nowhere else; every fiftieth has one."""
    if number % _REFERENCE_EVERY != _REFERENCE_EVERY // 2:
        return None
    return "zq" + "".join(random.Random(f"reference/{number}").choices("bcdfghjklmnpqrtvwxz", k=12))


def make_plan(corpus: Corpus, messages: int) -> Plan:
    """Choose the conversations of the notes and the words of all searches."""
    sample = [conversation for _, conversation in corpus.read(min(messages, _SAMPLE))]
    headers = [header for header in corpus.headers(messages) if not header.chinese and header.messages >= 4][:-1]
    cron = _pick_evenly([header.number for header in headers if header.source == "cron"], CRON_NOTES)
    others = _pick_evenly([header.number for header in headers if header.source != "cron"], NOTES - CRON_NOTES)
    rng = random.Random(_SEED)
    words = _words_by_frequency(sample, MIDDLING, 0.004, 0.02)
    notes = []
    for index, number in enumerate(sorted([*cron, *others])):
        chosen = rng.sample(words, 5)
        text = _NOTE_FORMS[index % len(_NOTE_FORMS)].format(*chosen)
        role = "user" if index % 2 else "assistant"
        notes.append(Note(number, corpus.session_id(number), role, number in cron, text, chosen))
    return Plan(notes, [*_note_searches(notes, rng), *_other_searches(sample, notes, rng)])


def _note_searches(notes: list[Note], rng: random.Random) -> Iterator[SearchText]:
    """Yield both forms for each note, with its words in another order."""
    for index, note in enumerate(notes):
        form = _QUESTION_FORMS[rng.randrange(len(_QUESTION_FORMS))]
        yield SearchText(QUESTION, form.format(*rng.sample(note.words, 5)), index)
        yield SearchText(WORDS, " ".join(rng.sample(note.words, 5)), index)


def _other_searches(sample: list[Conversation], notes: list[Note], rng: random.Random) -> Iterator[SearchText]:
    for note in _pick_evenly(notes, _PER_KIND):
        first, second = note.words[:2]
        yield SearchText(SHORT, f"what about the {first} and {second}?")
    common = _words_by_frequency(sample, COMMON, 0.05, 0.4)
    for index in range(_PER_KIND):
        form = _COMMON_FORMS[index % len(_COMMON_FORMS)]
        yield SearchText(COMMON_QUESTION, form.format(*rng.sample(common, 2)))
    for word in _pick_evenly(common, _PER_KIND):
        yield SearchText(COMMON_WORD, word)
    for phrase in _pick_evenly(_frequent_phrases(sample), _PER_KIND):
        yield SearchText(PHRASE, f'"{phrase}"')
    for text in _pick_evenly(_frequent_chinese(sample), _PER_KIND):
        yield SearchText(CJK, text)


def _spoken(sample: list[Conversation]) -> list[str]:
    return [message.content for found in sample for message in found.messages if message.role != "tool"]


def _words_by_frequency(sample: list[Conversation], words: Sequence[str], low: float, high: float) -> list[str]:
    """Return the words that are in this share of the messages, the most frequent first."""
    wanted = set(words)
    texts = [message.content.casefold() for found in sample for message in found.messages]
    frequency = Counter(word for text in texts for word in wanted.intersection(_WORD.findall(text)))
    return [word for word, count in frequency.most_common() if low <= count / len(texts) <= high]


def _frequent_phrases(sample: list[Conversation]) -> list[str]:
    """Return sequences of three words, two of them content, that people or the model said at least five times."""
    content = set(COMMON)
    counts: Counter[str] = Counter()
    for text in _spoken(sample):
        words = text.casefold().split()
        for three in zip(words, words[1:], words[2:], strict=False):
            if len(content.intersection(three)) >= 2 and all(word.isalpha() for word in three):
                counts[" ".join(three)] += 1
    return [phrase for phrase, count in counts.most_common() if count >= 5]


def _frequent_chinese(sample: list[Conversation]) -> list[str]:
    """Return texts of two and of four characters, by turns, that occur more than once."""
    counts: Counter[str] = Counter()
    for text in _spoken(sample):
        for run in _HAN.findall(text):
            counts.update(run[start : start + size] for size in (2, 4) for start in range(len(run) - size + 1))
    frequent = [text for text, count in counts.most_common() if count > 1]
    pairs = [[text for text in frequent if len(text) == size][:400] for size in (2, 4)]
    return [text for both in zip(*pairs, strict=False) for text in both]


def _plant(conversation: Conversation, number: int, note: Note | None) -> Conversation:
    messages = list(conversation.messages)
    reference = reference_word(number)
    if reference is not None:
        messages[0] = replace(messages[0], content=f"{messages[0].content} The reference is {reference}.")
    if note is not None:
        places = [place for place, message in enumerate(messages) if message.role == note.role]
        place = places[-1]
        messages[place] = replace(messages[place], content=note.text, tool_calls=None)
    return replace(conversation, messages=messages)


def _pick_evenly(items: Sequence[_Item], count: int) -> list[_Item]:
    """Return `count` of the items, evenly from the first to the last."""
    if len(items) < count:
        raise SystemExit(f"The corpus is too small to choose {count} of {len(items)}.")
    return [items[index * (len(items) - 1) // (count - 1)] for index in range(count)]
