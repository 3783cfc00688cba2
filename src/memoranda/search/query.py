"""Parses a query: words, "phrases", prefix*, AND OR NOT, -word, ( ), or a plain question.

No text is an error. The grammar splits typed text into words, phrases, prefixes, operators and groups. AND binds
tighter than OR, and joins words side by side. Operators without operands, brackets without a partner and single
quotation marks are ignored. A prefix (`migrati*`) matches the tokens of all words that begin with it.

A query has parts that must match together, an exclusion (`excluded`), and single terms that are searched when all parts
together find too little.

A query that found nothing is widened to longer words: "Datenbank" to "Datenbankserver", a city to its other cases.
Languages that join words or change their endings have many words that contain the one that was typed, and so have names
in code. These are not exactly what was typed, so they are searched only if nothing else is found.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from itertools import pairwise

from memoranda.search.index.postings import And, Or, Pattern, Phrase, Prefix, Without, Word
from memoranda.search.index.stemmer import stem
from memoranda.search.index.tokenizer import (
    STOP_WORDS,
    camel_case_parts,
    is_single_character,
    is_unspaced,
    query_words,
    token_spans,
    tokenize,
    tokens_of_words,
)
from memoranda.support.lazy_dataclass import dataclass

_MAX_DEPTH = 20
_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»＂", '"') | {"（": "(", "）": ")", "＊": "*", "－": "-"})
_PIECE = re.compile(r'(?P<minus>(?<!\S)-)?"(?P<phrase>[^"]*)"(?P<star>\*?)|(?P<bracket>(?<!\S)-\(|[()])|[^\s()"]+')
_OPERATORS = {"AND": "AND", "OR": "OR", "NOT": "NOT", "&&": "AND", "||": "OR", "|": "OR"}
# An excluded word; -5 is a number, -n and --flag are options.
_MINUS = re.compile(r"-(?=[^\W\d_]\w)")
_STARRED = re.compile(r"(?P<head>[^*]{2,}|\w(?=\*$))\*")
_MIN_SHOUTED_WORDS = 3


class TermKind(Enum):
    """How a term was typed."""

    WORD = "word"
    PHRASE = "phrase"
    PREFIX = "prefix"


@dataclass(frozen=True, slots=True)
class TypedTerm:
    """One term between spaces, or between quotation marks."""

    text: str
    kind: TermKind = TermKind.WORD


@dataclass(frozen=True, slots=True)
class Not:
    """An exclusion."""

    node: "SyntaxTree"


@dataclass(frozen=True, slots=True)
class AllOf:
    """All of these."""

    nodes: "tuple[SyntaxTree, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Any of these."""

    nodes: "tuple[SyntaxTree, ...]"


SyntaxTree = TypedTerm | Not | AllOf | AnyOf


def parse_syntax(text: str) -> AllOf:
    """Parses a text into a tree of terms, alternatives and groups."""
    tree = _QueryParser(_pieces(text.translate(_QUOTES))).alternatives(0)
    return tree if isinstance(tree, AllOf) else AllOf((tree,))


def without_negation(tree: SyntaxTree) -> SyntaxTree:
    """The same tree with its exclusions turned into inclusions."""
    match tree:
        case TypedTerm():
            return tree
        case Not(node):
            return without_negation(node)
        case AllOf(nodes):
            return AllOf(tuple(map(without_negation, nodes)))
        case AnyOf(nodes):
            return AnyOf(tuple(map(without_negation, nodes)))


def _pieces(text: str) -> list[str | TypedTerm]:
    """The words and phrases as terms, operators and brackets as text."""
    shouted = _is_shouted(text)
    pieces: list[str | TypedTerm] = []
    for match in _PIECE.finditer(text):
        piece = match.group()
        if match["phrase"] is not None:
            pieces += ["NOT"] if match["minus"] else []
            pieces.append(TypedTerm(match["phrase"], TermKind.PREFIX if match["star"] else TermKind.PHRASE))
        elif match["bracket"]:
            pieces += ["NOT", "("] if len(piece) > 1 else [piece]
        elif piece in _OPERATORS and not shouted:
            pieces.append(_OPERATORS[piece])
        elif _MINUS.match(piece):
            pieces += ["NOT", _term(piece[1:])]
        else:
            pieces.append(_term(piece))
    return pieces


def _is_shouted(text: str) -> bool:
    """Whether the whole sentence is in capitals, so that its AND, OR and NOT are ordinary words."""
    words = text.split()
    operators = sum(word in _OPERATORS for word in words)
    spoken = sum(word.isupper() for word in words) - operators
    return text.isupper() and spoken > _MIN_SHOUTED_WORDS and spoken > 2 * operators + 1


def _term(piece: str) -> TypedTerm:
    """A word, or a prefix if a star follows it; stars around a word are emphasis."""
    starred = _STARRED.match(piece)
    return TypedTerm(starred["head"], TermKind.PREFIX) if starred else TypedTerm(piece)


class _QueryParser:
    """Parses the pieces once, from left to right."""

    def __init__(self, pieces: list[str | TypedTerm]) -> None:
        self._pieces = pieces
        self._at = 0

    def alternatives(self, depth: int) -> SyntaxTree:
        rows = [self._row(depth)]
        while self._peek() == "OR":
            self._at += 1
            rows.append(self._row(depth))
        rows = [row for row in rows if row.nodes]
        if len(rows) > 1:
            return AnyOf(tuple(_unwrap(row) for row in rows))
        return rows[0] if rows else AllOf(())

    def _row(self, depth: int) -> AllOf:
        nodes: list[SyntaxTree] = []
        negated = False
        while (piece := self._peek()) is not None and piece != "OR" and not (piece == ")" and depth):
            self._at += 1
            if piece == "NOT":
                negated = True
                continue
            if isinstance(piece, TypedTerm):
                node: SyntaxTree = piece
            elif piece == "(" and depth < _MAX_DEPTH:
                node = self.alternatives(depth + 1)
                self._at += self._peek() == ")"
                if isinstance(node, AllOf) and not negated:
                    # Brackets around words that AND joins anyway.
                    nodes += node.nodes
                    continue
            else:
                continue
            nodes.append(Not(node) if negated else node)
            negated = False
        return AllOf(tuple(nodes))

    def _peek(self) -> str | TypedTerm | None:
        return self._pieces[self._at] if self._at < len(self._pieces) else None


def _unwrap(row: AllOf) -> SyntaxTree:
    return row.nodes[0] if len(row.nodes) == 1 else row


_ENDINGS = (
    "s", "es", "ies", "ed", "ied", "ing", "ings", "ion", "ions", "ation", "ations", "ment", "ments", "ly", "ness",
)  # fmt: skip


def prefix_pattern(text: str) -> Pattern | None:
    """The pattern for every word with this prefix; None if the text has no tokens.

    A token is a stem, and the stem of "migration" does not begin with "migrati". So the pattern also contains, as
    words, the stems that common endings would produce.
    """
    tokens = [token for word in query_words(text) for token in word]
    if not tokens:
        return None
    open_end = _open_end(text, tokens[-1])
    if len(tokens) == 1:
        return open_end
    return And((*map(Word, tokens[:-1]), open_end))


def _open_end(text: str, last: str) -> Pattern:
    # A letter after the text prevents the stemmer from removing its end.
    typed = tokenize(text.strip() + "x")[-1].removesuffix("x")
    if not (typed.isascii() and typed.isalpha()):
        return Prefix(last)
    stems = {stem(typed + rest) for rest in _possible_endings(typed)}
    others = sorted(token for token in stems if not token.startswith(typed))
    return Or((Prefix(typed), *map(Word, others))) if others else Prefix(typed)


def _possible_endings(typed: str) -> set[str]:
    """What may follow the typed text: nothing, an ending, or the rest of an ending that the text begins."""
    rests = {ending[size:] for ending in _ENDINGS for size in range(len(ending)) if typed.endswith(ending[:size])}
    return rests | {""}


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
# Longer prompts are tasks, whatever their tense.
MAX_QUESTION = 400
_ASKS_BACK = re.compile(
    r"\b(?:did|had|was|were)\s+(?!to\b)\w|^\W*(?:have|has)\b|\b(?:have|has)\s+(?:i|we|you|they|he|she|it|there)\b"
    r"|\b(?:remember|recall|remind|last (?:time|week|month|year)|earlier|previous(?:ly)?|ago|yesterday|used to|once"
    r"|back then|already|decided?|agreed|chose|discussed|talked|mentioned|told|said)\b",
    re.IGNORECASE,
)
FRAMING = tokens_of_words(_FRAMING_WORDS) - STOP_WORDS

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
EVERYDAY = tokens_of_words(_EVERYDAY_WORDS)


def content_words(text: str) -> frozenset[str]:
    """The tokens of a text without stop words, framing words and single characters of unspaced scripts."""
    words = frozenset(tokenize(text)) - STOP_WORDS
    if not text.isascii():
        words = frozenset(word for word in words if not is_single_character(word))
    return words - FRAMING or words


def find_places(text: str) -> dict[tuple[str, ...], set[str]]:
    """The words of a text by the words beside them: the last one before that means something, and the next one."""
    tokens = tokenize(text)
    meaning = [number for number, token in enumerate(tokens) if token not in STOP_WORDS]
    found: dict[tuple[str, ...], set[str]] = {}
    for before, after in pairwise(meaning):
        found.setdefault(("before", *tokens[before:after]), set()).add(tokens[after])
        found.setdefault(("after", *tokens[before + 1 : after + 1]), set()).add(tokens[before])
    return found


_MIN_LETTERS = 4


def may_name(token: str) -> bool:
    """Whether a token may name something: a number, or a word; shorter ones are small words in some language."""
    return token.isdigit() or (token.isalpha() and len(token) >= _MIN_LETTERS and not is_unspaced(token))


def words_in_place(
    word: str, places: Mapping[tuple[str, ...], set[str]], said: Mapping[tuple[str, ...], set[str]]
) -> set[str]:
    """The words that a text says in the places of another word, and that may name another one of the same kind."""
    found = {other for place, words in places.items() if word in words for other in said.get(place, ())}
    return {other for other in found if may_name(other) and other.isdigit() == word.isdigit()}


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


def names_the_past(text: str) -> bool:
    """Whether a text speaks of the past, as far as English words tell."""
    return _ASKS_BACK.search(text) is not None


def asks_about_the_past(prompt: str) -> bool:
    """Whether a prompt asks about the past, as far as its words tell."""
    return len(prompt) <= MAX_QUESTION and (names_the_past(prompt) or is_question(prompt))


def is_question(text: str) -> bool:
    """Whether a text in a script without spaces contains a question word."""
    return _ASKS.search(text) is not None


# Shorter words are in too many others. Other scripts have more letters, and write fewer of them.
_MIN_LETTERS, _MIN_OTHERS = 4, 3


def widen(query: Query, find_longer: Callable[[Collection[str]], Mapping[str, Sequence[str]]]) -> Query | None:
    """The query with the longer words of each of its words; None if there are none, or if it is meant literally.

    `find_longer` returns the words of the index that contain some texts.
    """
    inside = [] if query.exact else [part for part in query.parts if _may_be_inside(part)]
    longer = find_longer({part.tokens[0] for part in inside}) if inside else {}
    parts: list[Part] = []
    leaves: list[Part] = []
    terms: list[Term] = []
    for part in inside:
        if words := longer[part.tokens[0]]:
            parts.append(replace(part, pattern=Or(tuple(map(Word, words))), tokens=tuple(words), grouped=True))
            leaves += [Part(word, Word(word), (word,)) for word in words]
            # With the token as typed, which no text has: so a hit never counts as sure.
            terms.append(Term(part.text, parts[-1].pattern, part.tokens[0]))
    if not parts:
        return None
    return replace(query, parts=tuple(parts), leaves=tuple(leaves), terms=tuple(terms), pairs=())


def _may_be_inside(part: Part) -> bool:
    """Whether a part is a word that others may contain."""
    word = part.tokens[0]
    is_long = len(word) >= (_MIN_LETTERS if word.isascii() else _MIN_OTHERS)
    return len(part.tokens) == 1 and is_long and word.isalpha() and not is_unspaced(word)
