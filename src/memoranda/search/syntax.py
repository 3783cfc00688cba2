"""The grammar of queries: splits typed text into words, phrases, prefixes, operators and groups.

AND binds tighter than OR, and joins words side by side. Operators without operands, brackets without a partner and
single quotation marks are ignored.
"""

import re
from dataclasses import dataclass
from enum import Enum

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
