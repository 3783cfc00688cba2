"""The types of a query to the index and its answer: patterns of tokens, filters, and postings."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from memoranda.search.index.tokenizer import is_unspaced
from memoranda.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from memoranda.memory.record.scope import Scope

USER, ASSISTANT, TOOL, TITLE = range(4)


class Posting(NamedTuple):
    """One message (or session title) that matches."""

    message: int
    """The message's id; 0 for a session title."""
    session: int
    """The index's number of the session."""
    ordinal: int
    """Counts the session's indexed messages: neighbours differ by one. -1 for a title."""
    role: int
    """USER, ASSISTANT, TOOL (everything else) or TITLE."""
    length: int
    """In tokens."""
    time: float
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Which messages a search may see.

    `columns` are the values that a column of the session may have, `roles` the roles of the record, both compared
    exactly. `titles` says whether session titles count. `without` are the ids of messages to exclude.
    """

    scope: "Scope"
    columns: tuple[tuple[str, frozenset[str]], ...] = ()
    excluded_sources: frozenset[str] = frozenset()
    roles: frozenset[str] | None = None
    since: float | None = None
    until: float | None = None
    titles: bool = True
    without: frozenset[int] = frozenset()

    def values_of(self, column: str) -> frozenset[str] | None:
        """The values that a column may have; None for all."""
        return dict(self.columns).get(column)

    def with_values(self, column: str, values: Collection[str] | None) -> "Filters":
        """The same filters with other values for a column."""
        others = {name: allowed for name, allowed in self.columns if name != column}
        chosen = others if values is None else {**others, column: frozenset(values)}
        return replace(self, columns=tuple(sorted(chosen.items())))


class IndexSize(NamedTuple):
    """How much is indexed."""

    messages: int
    sessions: int
    tokens: int


class IndexedSession(NamedTuple):
    """A session as the index knows it."""

    id: str
    conversation_id: str
    user_id: str | None
    source: str
    title: str | None
    started_at: float


@dataclass(frozen=True, slots=True)
class Word:
    """One token. A single character of an unspaced script matches every token that begins with it."""

    token: str


@dataclass(frozen=True, slots=True)
class Prefix:
    """Every token with this prefix."""

    token: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """These tokens, one right after the other.

    Tokens of unspaced scripts only have to occur, in any order, unless `in_order` is set.
    """

    tokens: tuple[str, ...]
    in_order: bool = False

    @property
    def sequences(self) -> list[tuple[str, ...]]:
        """The tokens that must follow each other."""
        if self.in_order:
            return [self.tokens]
        runs = (tuple(run) for unspaced, run in groupby(self.tokens, is_unspaced) if not unspaced)
        return [run for run in runs if len(run) > 1]


@dataclass(frozen=True, slots=True)
class And:
    """All of these, in one message."""

    parts: "tuple[Pattern, ...]"


@dataclass(frozen=True, slots=True)
class Or:
    """Any of these."""

    parts: "tuple[Pattern, ...]"


@dataclass(frozen=True, slots=True)
class Without:
    """Messages that match `keep` and do not match `drop`."""

    keep: "Pattern"
    drop: "Pattern"


Pattern = Word | Prefix | Phrase | And | Or | Without


def tokens_of(pattern: Pattern) -> Iterator[str]:
    """The tokens of a pattern, without prefixes and what is excluded."""
    match pattern:
        case Word(token):
            yield token
        case Phrase(tokens):
            yield from tokens
        case And(parts) | Or(parts):
            for part in parts:
                yield from tokens_of(part)
        case Without(keep, _):
            yield from tokens_of(keep)


def has_phrase(pattern: Pattern) -> bool:
    """Whether the order of words matters to a pattern."""
    match pattern:
        case Phrase():
            return bool(pattern.sequences)
        case And(parts) | Or(parts):
            return any(map(has_phrase, parts))
        case Without(keep, drop):
            return has_phrase(keep) or has_phrase(drop)
        case _:
            return False
