"""Parses a query: words, "phrases", prefix*, AND OR NOT, -word, ( ), or a plain question.

No text is an error. A query has parts that must match together, an exclusion (`excluded`), and single terms that are
searched when all parts together find too little.
"""

import re
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise

from memoranda.search.index.postings import And, Or, Pattern, Phrase, Prefix, Without, Word
from memoranda.search.index.prefixes import prefix_pattern
from memoranda.search.index.stop_words import STOP_WORDS, tokens_of
from memoranda.search.index.tokenizer import (
    camel_case_parts,
    is_single_character,
    is_unspaced,
    query_words,
    token_spans,
    tokenize,
)
from memoranda.search.syntax import AllOf, AnyOf, Not, SyntaxTree, TermKind, TypedTerm, parse_syntax, without_negation

MAX_QUERY = 2_000
_MAX_PARTS = 32
_MAX_TERMS = 40
_MAX_PAIRS = 6
# More words than these, stop words not counted, are a description: they need not all occur.
_FEW_WORDS = 3
# In a script without spaces, a longer run is a sentence.
_LONG_RUN = 8
# In a query this short even stop words form pairs: "not working".
_SHORT_QUERY = 4
_HASH = re.compile(r"[0-9a-f]{7,40}")
_BROKEN = re.compile(r"[\ud800-\udfff\x00]")
_WIDE_BREAK = re.compile(r"[\u3000-\u3004\u3008-\u3020\u30fb\uff01-\uff0f\uff1a-\uff1f]+")
_EDGES = " \t\n.,;:!?'`´’‘()[]{}<>"
# Words that only frame a question ("remind me", "how many days") say what kind of answer is wanted, not its subject.
_FRAMING_WORDS = """
kind type sort number amount total often item summary summarize summarise comprehensive aspect detail different
various several specific specifically particular order list overall across throughout remind remember recall say ask
talk discuss conversation chat previous previously earlier past wonder wondering look looking going please bring walk
since ago pass recent recently current currently ever already day week month today first last second third one think
thought help know want happen happened back
"""
# Chinese, Japanese and Korean text without spaces is a question when it contains one of these.
_ASKS = re.compile(
    r"什么|甚麼|什麼|哪|谁|誰|怎|为何|為何|多少|几[个年月日次]|是否|吗|嗎|何|いつ|どこ|どの|どう|なぜ|だれ|いくつ|ですか|ますか|か。|무엇|어디|언제|누구|왜"
)
_FIRST_PERSON = re.compile(r"\b(?:i|my|me|mine|we|our|us)\b|我|私|僕|俺", re.IGNORECASE)
# The assistant's words: "you recommended", "did you say", "your suggestion". Not "can you recommend".
_SECOND_PERSON = re.compile(
    r"\b(?:did|had|have) you\b"
    r"|\byou(?:['’]ve|['’]d| had| have)? (?:(?!remembered)\w+ed|said|told|gave|wrote|made|put|found|sent)\b"
    r"|\byour (?:\w+ )?(?:suggestion|recommendation|advice|answer|reply|list|tip)s?\b",
    re.IGNORECASE,
)
# "Remind me which deli that was" asks for the assistant's words; "remind me where I parked" for the user's own.
_REMIND = re.compile(r"\bremind me\b(?!.*\b(?:i|my|mine)\b)", re.IGNORECASE | re.DOTALL)
# A summary is about what both said.
_SUMMARY = re.compile(r"\b(?:summar(?:y|ies|i[sz]e)|overview|recap)\b", re.IGNORECASE)
FRAMING = tokens_of(_FRAMING_WORDS) - STOP_WORDS


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the query: a word, a phrase, a prefix, or a group."""

    text: str
    pattern: Pattern
    tokens: tuple[str, ...]
    exact: bool = False
    """Quoted, with a star, or grouped: it is meant literally."""
    small: bool = False
    prefix: bool = False
    grouped: bool = False


@dataclass(frozen=True, slots=True)
class Term:
    """One token or pattern that is searched by itself; framing words count for less."""

    text: str
    pattern: Pattern
    token: str = ""
    framing: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query. Without parts it can find nothing."""

    text: str
    parts: tuple[Part, ...] = ()
    leaves: tuple[Part, ...] = ()
    """Every part as typed, including those within groups, without excluded parts."""
    excluded: Pattern | None = None
    unwanted: Pattern | None = None
    """Everything that is excluded, also within groups."""
    question: bool = False
    """A sentence rather than keywords: its words need not all occur."""
    terms: tuple[Term, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    """Tokens that are neighbours in the query."""

    @property
    def alternatives(self) -> bool:
        """Whether the query consists only of words joined by OR."""
        pattern = self.parts[0].pattern if len(self.parts) == 1 and self.parts[0].grouped else None
        return isinstance(pattern, Or) and all(isinstance(part, Word | Phrase) for part in pattern.parts)

    @property
    def exact(self) -> bool:
        """Whether some part is meant literally."""
        return self.excluded is not None or any(part.exact for part in self.parts)


def parse(text: str) -> Query:
    """Parses what a person or a model typed. Every text is a query; no syntax is an error."""
    text = _BROKEN.sub(" ", text[:MAX_QUERY])
    tree = parse_syntax(text)
    found = _QueryParts()
    found.add(tree)
    if not found.parts:
        # Only exclusions: returning everything else would not be an answer, so the excluded parts are searched.
        found = _QueryParts()
        found.add(without_negation(tree))
    meaningful = [part for part in found.parts if part.exact or not part.small]
    return Query(
        text,
        tuple(dict.fromkeys(meaningful or found.parts))[:_MAX_PARTS],
        tuple(dict.fromkeys(found.leaves)),
        _any_of(found.excluded),
        _any_of([*found.excluded, *found.unwanted]),
        bool(meaningful) and _is_question(found.parts),
        _terms(found.leaves),
        _pairs(found.parts),
    )


class _QueryParts:
    """Collects the parts of a syntax tree, the leaves below them, and what is excluded."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.leaves: list[Part] = []
        self.excluded: list[Pattern] = []
        self.unwanted: list[Pattern] = []

    def add(self, tree: SyntaxTree) -> None:
        for node in tree.nodes if isinstance(tree, AllOf) else (tree,):
            if isinstance(node, TypedTerm):
                leaves = _leaves(node)
                self.parts += leaves
                self.leaves += leaves
            elif isinstance(node, Not):
                pattern = _pattern(node.node, [], [])
                self.excluded += [] if pattern is None else [pattern]
            else:
                self._add_group(node)

    def _add_group(self, node: AllOf | AnyOf) -> None:
        inner: list[Part] = []
        pattern = _pattern(node, inner, self.unwanted)
        if pattern is None:
            return
        text = (" OR " if isinstance(node, AnyOf) else " ").join(part.text for part in inner)
        tokens = tuple(token for part in inner for token in part.tokens)
        self.parts.append(Part(text, pattern, tokens, exact=True, grouped=True))
        self.leaves += inner


def _pattern(tree: SyntaxTree, leaves: list[Part], unwanted: list[Pattern]) -> Pattern | None:
    """The pattern of a syntax tree; None if it has no tokens.

    Adds its leaves to `leaves`, and what it excludes to `unwanted`.
    """
    match tree:
        case TypedTerm():
            # Within a group even a stop word counts.
            found = [replace(part, small=False) for part in _leaves(tree)]
            leaves += found
            return _all_of([part.pattern for part in found])
        case Not():
            # As an alternative it would mean "everything else".
            return None
        case AnyOf(nodes):
            return _any_of([pattern for node in nodes if (pattern := _pattern(node, leaves, unwanted)) is not None])
        case AllOf(nodes):
            keep = [_pattern(node, leaves, unwanted) for node in nodes if not isinstance(node, Not)]
            drop = [negated for node in nodes if isinstance(node, Not) and (negated := _pattern(node.node, [], []))]
            unwanted += drop
            kept, dropped = _all_of([pattern for pattern in keep if pattern]), _any_of(drop)
            return Without(kept, dropped) if kept and dropped else kept


def _all_of(patterns: list[Pattern]) -> Pattern | None:
    return patterns[0] if len(patterns) == 1 else And(tuple(patterns)) if patterns else None


def _any_of(patterns: list[Pattern]) -> Pattern | None:
    return patterns[0] if len(patterns) == 1 else Or(tuple(patterns)) if patterns else None


def _leaves(typed: TypedTerm) -> list[Part]:
    if typed.kind is TermKind.PHRASE:
        return _phrase(typed.text)
    if typed.kind is TermKind.PREFIX:
        pattern = prefix_pattern(typed.text)
        tokens = tuple(token for word in query_words(typed.text) for token in word)
        return [] if pattern is None else [Part(f"{typed.text}*", pattern, tokens, exact=True, prefix=True)]
    found = []
    for piece in _WIDE_BREAK.split(typed.text):
        text = piece.strip(_EDGES) or piece
        words = query_words(piece)
        for tokens in words:
            others = _other_forms(piece, tokens) if len(words) == 1 else []
            pattern = Or((_sequence(tokens), *others)) if others else _sequence(tokens)
            found.append(Part(text, pattern, tokens, small=STOP_WORDS.issuperset(tokens)))
    return found


def _other_forms(text: str, tokens: tuple[str, ...]) -> list[Pattern]:
    """Other forms of a typed word: inside a longer name, in snake_case, or as the start of a full hash."""
    parts = camel_case_parts(text)
    if parts != tuple(tokenize(text)):
        return [Phrase(parts)]
    is_hash = len(tokens) == 1 and _HASH.fullmatch(tokens[0]) and not tokens[0].isalpha() and not tokens[0].isdigit()
    return [Prefix(tokens[0])] if is_hash else []


def _phrase(text: str) -> list[Part]:
    """A quoted phrase: its words in order."""
    sequences = {_open_ended(tokenize(text))}
    if not text.isascii():
        # In a script without spaces, the text may lack a space that the query has.
        sequences.add(_open_ended(tokenize("".join(text.split()))))
    patterns = [_in_order(tokens) for tokens in sorted(sequences) if tokens]
    pattern = _any_of(patterns)
    tokens = tuple(token for word in query_words(text) for token in word)
    return [] if pattern is None else [Part(f'"{text}"', pattern, tokens, exact=True)]


def _open_ended(tokens: list[str]) -> tuple[str, ...]:
    """Drops the single last character of an unspaced run: the text may continue after it."""
    if len(tokens) > 1 and is_single_character(tokens[-1]) and len(tokens[-2]) > 1 and tokens[-2].endswith(tokens[-1]):
        tokens = tokens[:-1]
    return tuple(tokens)


def _sequence(tokens: tuple[str, ...]) -> Pattern:
    return Word(tokens[0]) if len(tokens) == 1 else Phrase(tokens)


def _in_order(tokens: tuple[str, ...]) -> Pattern:
    unspaced = len(tokens) > 1 and any(map(is_unspaced, tokens))
    return Phrase(tokens, in_order=True) if unspaced else _sequence(tokens)


def _is_question(parts: list[Part]) -> bool:
    """Stop words or many words make a sentence; a question mark does not."""
    plain = [part for part in parts if not part.exact]
    if any(part.small for part in plain) or sum(not part.small for part in plain) > _FEW_WORDS:
        return True
    unspaced = [part for part in plain if is_single_character(part.tokens[0][0])]
    return any(len(part.tokens) >= _LONG_RUN or is_question(part.text) for part in unspaced)


def _terms(leaves: list[Part]) -> tuple[Term, ...]:
    """The terms, each once; stop words only when there are no others."""
    found: dict[str, Term] = {}
    small: dict[str, Term] = {}
    for part in leaves:
        if part.prefix:
            found.setdefault(part.text, Term(part.text, part.pattern, part.tokens[-1]))
            continue
        spellings = _spellings(part.text) if len(part.tokens) > 1 else {}
        for token in part.tokens:
            text = spellings.get(token, token) if spellings else part.text
            is_small = part.small or (token in STOP_WORDS and len(part.tokens) > 1) or is_single_character(token)
            terms = small if is_small else found
            pattern = part.pattern if len(part.tokens) == 1 else Word(token)
            terms.setdefault(token, Term(text, pattern, token, token in FRAMING))
    return tuple((found or small).values())[:_MAX_TERMS]


def _spellings(text: str) -> dict[str, str]:
    """The spelling of each token in the text."""
    return {token: text[span.start : span.end] for span in token_spans(text) for token in span.tokens}


def _pairs(parts: list[Part]) -> tuple[tuple[str, str], ...]:
    """Neighbouring words of scripts with spaces."""
    tokens = [token for part in parts if not part.grouped and not part.prefix for token in part.tokens]
    with_small = len(tokens) <= _SHORT_QUERY
    found = []
    for left, right in pairwise(tokens):
        small = (left in STOP_WORDS) + (right in STOP_WORDS)
        meaningful = small == 0 or (small == 1 and with_small)
        if meaningful and left != right and not is_single_character(left[0]) and not is_single_character(right[0]):
            found.append((left, right))
    return tuple(dict.fromkeys(found))[:_MAX_PAIRS]


class Perspective(Enum):
    """The speaker that a question asks about."""

    ANYONE = "anyone"
    USER = "user"
    ASSISTANT = "assistant"
    SUMMARY = "summary"
    """Asks for a summary: what the user said leads to the sessions, and what both said in them answers."""


def find_perspective(text: str) -> Perspective:
    """The speaker of the answer: "what did you recommend" the assistant, "how many books have I read" the user."""
    if _SUMMARY.search(text):
        return Perspective.SUMMARY
    if _SECOND_PERSON.search(text) or _REMIND.search(text):
        return Perspective.ASSISTANT
    return Perspective.USER if _FIRST_PERSON.search(text) else Perspective.ANYONE


def is_question(text: str) -> bool:
    """Whether a text in a script without spaces contains a question word."""
    return _ASKS.search(text) is not None
