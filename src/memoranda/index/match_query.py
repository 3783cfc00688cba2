"""Patterns as questions to the full-text tables.

A pattern whose tokens are all in one table is one MATCH expression. One that needs both is put together from the row
numbers that its parts find.
"""

from typing import Literal, NamedTuple, assert_never

from memoranda.index.postings import And, Or, Pattern, Phrase, Prefix, Without, Word
from memoranda.index.tokenizer import is_single_character, is_unspaced

Table = Literal["words", "pairs"]

# SQLite's parser has an end; nobody types so many brackets in earnest.
_DEEPEST = 40


class MatchQuery(NamedTuple):
    """What to ask: a MATCH expression for one table, or a query for row numbers (`table` is None) with its values."""

    table: Table | None
    text: str
    values: tuple[str, ...] = ()

    def rows(self) -> "MatchQuery":
        """The same as a query for row numbers."""
        if self.table is None:
            return self
        return MatchQuery(None, f"SELECT rowid FROM {self.table} WHERE {self.table} MATCH ?", (self.text,))


def match_query(pattern: Pattern, depth: int = 0) -> MatchQuery | None:
    """The question that a pattern asks; None when nothing can match it. It is never a syntax error."""
    if depth > _DEEPEST:
        return None
    match pattern:
        case Word(token):
            return _phrase((token,))
        case Prefix(token):
            return _match((token,), " *")
        case Phrase(tokens):
            return _phrase(tokens)
        case And(parts):
            asked = [match_query(part, depth + 1) for part in parts]
            return None if None in asked else _combined("AND", "INTERSECT", [part for part in asked if part])
        case Or(parts):
            asked = [match_query(part, depth + 1) for part in parts]
            return _combined("OR", "UNION", [part for part in asked if part])
        case Without(keep, drop):
            kept, dropped = match_query(keep, depth + 1), match_query(drop, depth + 1)
            return _combined("NOT", "EXCEPT", [kept, dropped]) if kept and dropped else kept
        case _:
            assert_never(pattern)


def _phrase(tokens: tuple[str, ...]) -> MatchQuery | None:
    """A phrase of words is one; pairs must all be there; a phrase of both is the pieces of each."""
    pieces: list[tuple[str, ...]] = []
    for token in tokens:
        if pieces and not is_unspaced(token) and not is_unspaced(pieces[-1][-1]):
            pieces[-1] += (token,)
        else:
            pieces.append((token,))
    # A single character begins some pair, wherever it stands in a run.
    asked = [_match(piece, " *" if is_single_character(piece[-1]) else "") for piece in dict.fromkeys(pieces)]
    return None if None in asked else _combined("AND", "INTERSECT", [part for part in asked if part])


def _match(tokens: tuple[str, ...], ending: str) -> MatchQuery | None:
    plain = all(token and all(c.isalnum() or not c.isascii() for c in token) for token in tokens)
    if not plain:
        return None
    return MatchQuery("pairs" if is_unspaced(tokens[0]) else "words", f'"{" ".join(tokens)}"{ending}')


def _combined(operator: str, compound: str, parts: list[MatchQuery]) -> MatchQuery | None:
    if not parts:
        return None
    if operator != "NOT":
        parts = [joined for table in ("words", "pairs", None) for joined in _of_table(table, operator, parts)]
    if len(parts) == 1:
        return parts[0]
    if len({part.table for part in parts}) == 1 and parts[0].table is not None:
        return MatchQuery(parts[0].table, _joined(operator, parts))
    rows = [part.rows() for part in parts]
    text = f" {compound} ".join(f"SELECT * FROM ({part.text})" for part in rows)
    return MatchQuery(None, text, tuple(value for part in rows for value in part.values))


def _of_table(table: Table | None, operator: str, parts: list[MatchQuery]) -> list[MatchQuery]:
    """The parts that ask one table, as one; those that ask both stay apart."""
    found = [part for part in parts if part.table == table]
    return [MatchQuery(table, _joined(operator, found))] if table is not None and len(found) > 1 else found


def _joined(operator: str, parts: list[MatchQuery]) -> str:
    return f" {operator} ".join(f"({part.text})" for part in parts)
