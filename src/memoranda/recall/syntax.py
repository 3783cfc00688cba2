"""The grammar of queries: how typed text falls into words, phrases, prefixes, operators and groups.

OR binds weaker than AND, and words side by side are joined by AND. Operators without anything to join, brackets
without a partner and lone quotation marks are passed over.
"""

import re
from dataclasses import dataclass
from enum import Enum

_DEEPEST = 20
_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»＂", '"') | {"（": "(", "）": ")", "＊": "*", "－": "-"})
_PIECE = re.compile(r'(?P<minus>(?<!\S)-)?"(?P<phrase>[^"]*)"(?P<star>\*?)|(?P<bracket>(?<!\S)-\(|[()])|[^\s()"]+')
_OPERATORS = {"AND": "AND", "OR": "OR", "NOT": "NOT", "&&": "AND", "||": "OR", "|": "OR"}
# A word to leave out; -5 is a number, -n and --flag are options.
_MINUS = re.compile(r"-(?=[^\W\d_]\w)")
_STARRED = re.compile(r"(?P<head>[^*]{2,}|\w(?=\*$))\*")
_SHOUTED = 3


class Kind(Enum):
    """How a piece was typed."""

    WORD = "word"
    PHRASE = "phrase"
    PREFIX = "prefix"


@dataclass(frozen=True, slots=True)
class Typed:
    """One piece between spaces, or between quotation marks."""

    text: str
    kind: Kind = Kind.WORD


@dataclass(frozen=True, slots=True)
class Not:
    """What must not be there."""

    node: "Tree"


@dataclass(frozen=True, slots=True)
class Every:
    """All of these."""

    nodes: "tuple[Tree, ...]"


@dataclass(frozen=True, slots=True)
class Either:
    """Any of these."""

    nodes: "tuple[Tree, ...]"


Tree = Typed | Not | Every | Either


def read(text: str) -> Every:
    """The tree of a text: a row of pieces, alternatives and groups."""
    tree = _Reading(_pieces(text.translate(_QUOTES))).alternatives(0)
    return tree if isinstance(tree, Every) else Every((tree,))


def affirmed(tree: Tree) -> Tree:
    """The same tree with nothing left out."""
    match tree:
        case Typed():
            return tree
        case Not(node):
            return affirmed(node)
        case Every(nodes):
            return Every(tuple(map(affirmed, nodes)))
        case Either(nodes):
            return Either(tuple(map(affirmed, nodes)))


def _pieces(text: str) -> list[str | Typed]:
    """Words and phrases as `Typed`, operators and brackets as they are."""
    shouted = _is_shouted(text)
    pieces: list[str | Typed] = []
    for match in _PIECE.finditer(text):
        piece = match.group()
        if match["phrase"] is not None:
            pieces += ["NOT"] if match["minus"] else []
            pieces.append(Typed(match["phrase"], Kind.PREFIX if match["star"] else Kind.PHRASE))
        elif match["bracket"]:
            pieces += ["NOT", "("] if len(piece) > 1 else [piece]
        elif piece in _OPERATORS and not shouted:
            pieces.append(_OPERATORS[piece])
        elif _MINUS.match(piece):
            pieces += ["NOT", _typed(piece[1:])]
        else:
            pieces.append(_typed(piece))
    return pieces


def _is_shouted(text: str) -> bool:
    """Whether a whole sentence is in capitals, so that its AND, OR and NOT are words like the others."""
    words = text.split()
    operators = sum(word in _OPERATORS for word in words)
    spoken = sum(word.isupper() for word in words) - operators
    return text.isupper() and spoken > _SHOUTED and spoken > 2 * operators + 1


def _typed(piece: str) -> Typed:
    """A word, or a prefix when a star follows its first letters; stars around a word are mere emphasis."""
    starred = _STARRED.match(piece)
    return Typed(starred["head"], Kind.PREFIX) if starred else Typed(piece)


class _Reading:
    """Goes through the pieces once, from left to right."""

    def __init__(self, pieces: list[str | Typed]) -> None:
        self._pieces = pieces
        self._at = 0

    def alternatives(self, depth: int) -> Tree:
        rows = [self._row(depth)]
        while self._peek() == "OR":
            self._at += 1
            rows.append(self._row(depth))
        rows = [row for row in rows if row.nodes]
        if len(rows) > 1:
            return Either(tuple(_bare(row) for row in rows))
        return rows[0] if rows else Every(())

    def _row(self, depth: int) -> Every:
        nodes: list[Tree] = []
        negated = False
        while (piece := self._peek()) is not None and piece != "OR" and not (piece == ")" and depth):
            self._at += 1
            if piece == "NOT":
                negated = True
                continue
            if isinstance(piece, Typed):
                node: Tree = piece
            elif piece == "(" and depth < _DEEPEST:
                node = self.alternatives(depth + 1)
                self._at += self._peek() == ")"
                if isinstance(node, Every) and not negated:
                    # Brackets around words that belong together anyway.
                    nodes += node.nodes
                    continue
            else:
                continue
            nodes.append(Not(node) if negated else node)
            negated = False
        return Every(tuple(nodes))

    def _peek(self) -> str | Typed | None:
        return self._pieces[self._at] if self._at < len(self._pieces) else None


def _bare(row: Every) -> Tree:
    return row.nodes[0] if len(row.nodes) == 1 else row
