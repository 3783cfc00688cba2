"""What the words of a prompt say about its kind: a question or a task, about the past or about what is on the screen.

Most prompts to an agent are tasks and general questions, which nothing in the record answers. The kind alone decides
nothing; it raises or lowers what a hit must have in common with the prompt (`memoranda.search.calibration`).
"""

import re
from dataclasses import dataclass

from memoranda.search.index.stop_words import STOP_WORDS, tokens_of
from memoranda.search.index.tokenizer import tokenize
from memoranda.search.query import Perspective, find_perspective, is_question

# Longer prompts are tasks, whatever their tense.
_MAX_QUESTION = 400
_ASKS_BACK = re.compile(
    r"\b(?:did|had|was|were|have|has)\s+(?!to\b)\w"
    r"|\b(?:remember|recall|remind|last (?:time|week|month|year)|earlier|previous(?:ly)?|ago|yesterday|used to|once"
    r"|back then|already|decided?|agreed|chose|discussed|talked|mentioned|told|said)\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"^\W*(?:(?:and|so|hey|hi|ok|okay|well|also|but|then),?\s+)*(?:what|when|where|who|whom|whose|which|why|how|did|do"
    r"|does|is|are|was|were|has|have|had|can|could|would|should|will)\b|[?？]",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(
    r"\b(?:ich|mein\w*|mir|mich|wir|unser\w*|je|mon|mes|nous|notre|yo|mis|nuestr\w+|meu|minha|noss[oa]s?|mia|miei"
    r"|nostr\w|я|мне|мой|моя|мы|наш\w*)\b|\bj['’]",
    re.IGNORECASE,
)
# What the prompt points at is on the screen, not in the record.
_HERE = re.compile(r"\b(?:this|these|that|those|above|below|here|it)\b", re.IGNORECASE)
_HOW_TO = re.compile(
    r"\bhow (?:do|can|should|would|could) (?:i|you|we|one)\b|\bhow to\b|\bwhat(?:['’]s| is| are) (?:an?|the"
    r" (?:difference|best))\b|\bwhat does .* (?:do|mean)\b|\bexplain\b|\bwhat (?:should|would)\b|\bwhich .* should\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[\w,;:’'\"]\s)[A-Z][a-z]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
# Words of nearly every prompt to an agent: what to do, and with what. They do not name a subject.
_EVERYDAY_WORDS = """
add build change check clean clear code command commit compile config connect convert copy create debug delete deploy
dependency directory docs document edit error example execute explain export extract fail feature file find fix folder
format function generate git handle implement import improve input install library line lint list load log main make
merge method migrate mock module move name open option optimize output package page parse path print problem program
project pull push query read refactor release remove rename replace reset restart result return review rewrite run save
script search select server set setup show simplify skip snippet sort source split start stop string structure suggest
summarize table task terminal test text tool translate try type undo update upgrade use validate value variable version
view warning way work write app data database branch class approach better best good right wrong next new old same other
different thing point part step idea answer question word sentence paragraph email letter message story poem date time
today tomorrow look see tell give take get put let keep go come do mean say need like
"""
EVERYDAY = tokens_of(_EVERYDAY_WORDS)


@dataclass(frozen=True, slots=True)
class PromptKind:
    """The kind of one prompt, as far as its words tell."""

    question: bool
    """It asks, or it asks back ("remind me of ..."), in a few lines."""
    about_past: bool
    """It asks about the past."""
    personal: bool
    """It speaks of its author or of what the assistant said, or its script has no capitals to tell names by."""
    here: bool
    """It points at something ("this", "above")."""
    how_to: bool
    """It asks how something is done or what something means, in general."""
    names: frozenset[str]
    """The tokens of capitalised words within a sentence."""


def find_kind(prompt: str) -> PromptKind:
    short = len(prompt) <= _MAX_QUESTION
    about_past = asks_about_the_past(prompt)
    return PromptKind(
        about_past or (short and bool(_QUESTION.search(prompt) or is_question(prompt))),
        about_past,
        find_perspective(prompt) is not Perspective.ANYONE
        or bool(_FIRST_PERSON.search(prompt) or _UNSPACED.search(prompt)),
        bool(_HERE.search(prompt)),
        bool(_HOW_TO.search(prompt)),
        frozenset(token for name in _NAME.findall(prompt) for token in tokenize(name)) - STOP_WORDS,
    )


def asks_about_the_past(prompt: str) -> bool:
    """Whether a prompt asks about the past, as far as its words tell."""
    return len(prompt) <= _MAX_QUESTION and bool(_ASKS_BACK.search(prompt) or is_question(prompt))
