"""Searches messages that are not indexed yet, by indexing candidates from the record in memory."""

import json
import sqlite3
from collections.abc import Callable, Collection
from itertools import count

from memoranda.memory.record.feed import Feed, FeedMessage
from memoranda.search.index.generations import create
from memoranda.search.index.postings import And, Or, Pattern, Phrase, Prefix, Without, Word
from memoranda.search.index.tokenizer import spellings
from memoranda.search.index.updater import IndexUpdater
from memoranda.search.index.view import IndexView
from memoranda.storage.position import Position

# Up to this many messages are all read, without a search for candidates.
MAX_READ_ALL = 2_000
MAX_CANDIDATES = 3_000
FIRST_NUMBER = 1 << 40


class UnindexedScan:
    """An index in memory of the messages after a position that may match. It grows with every pattern."""

    def __init__(self, feed: Feed, after: Position, head: Position, number_of: Callable[[str], int | None]) -> None:
        self._feed = feed
        self._after = after
        self._head = head
        self.reads_all = feed.count_up_to(head) - feed.count_up_to(after) <= MAX_READ_ALL
        self._number_of = number_of
        self._new_numbers = count(FIRST_NUMBER)
        self._added: set[int] = set()
        self._fetched_patterns: set[str] = set()
        self._added_non_ascii = False
        self.partial = False
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        create(self._connection, "scan")
        self.view = IndexView(self._connection)
        if self.reads_all:
            self._add_all()

    def prepare(self, pattern: Pattern) -> None:
        """Fetch the messages that may match a pattern."""
        if self.reads_all:
            return
        new = sorted(like_patterns(pattern) - self._fetched_patterns)
        if not new:
            return
        self._fetched_patterns.update(new)
        self._add_new(self._feed.messages_like(new, self._after, MAX_CANDIDATES))
        if not self._added_non_ascii:
            # A LIKE pattern with "e" does not match "é", so every message with letters beyond ASCII is a candidate.
            self._added_non_ascii = True
            self._add_new(self._feed.messages_beyond_ascii(self._after, MAX_CANDIDATES))

    def _add_new(self, messages: list[FeedMessage]) -> None:
        self.partial = self.partial or len(messages) == MAX_CANDIDATES
        self._add([message for message in reversed(messages) if message.id not in self._added])

    def add_sessions(self, ids: set[str]) -> None:
        """Add all messages of some sessions up to the position."""
        for session_id in sorted(ids):
            self._add(self._feed.messages_from(session_id, 0, until=self._after), {session_id})

    def close(self) -> None:
        self._connection.close()

    def _add_all(self) -> None:
        """Read up to the head: those who append meanwhile must not keep the search busy."""
        position = self._after
        while position < self._head:
            # Not waiting for transactions in progress, which are beyond the head.
            batch = self._feed.messages_after(position, MAX_READ_ALL, visible=True)
            if not batch.messages:
                return
            self._add(batch.messages)
            position = batch.position

    def _add(self, messages: list[FeedMessage], sessions: Collection[str] = ()) -> None:
        self._added.update(message.id for message in messages)
        self._connection.execute("BEGIN")
        # Most of their neighbours are not in this index, so their ids are the best measure of distance.
        updater = IndexUpdater(self._connection, self._feed, self._number, lambda message: FIRST_NUMBER + message.id)
        updater.add(messages, sessions)
        updater.close()
        self._connection.execute("COMMIT")
        self.view.reload()

    def _number(self, session_id: str) -> int:
        known = self._number_of(session_id)
        return next(self._new_numbers) if known is None else known


def like_patterns(pattern: Pattern) -> set[str]:
    """LIKE patterns for a pattern; every ASCII message that matches it matches one of them."""
    return {f"%{_escape(piece)}%" for piece in _pieces(pattern)}


def _pieces(pattern: Pattern) -> set[str]:
    match pattern:
        case Word(token):
            return _word_pieces(token)
        case Prefix(token):
            return _case_variants(token)
        case Phrase(tokens):
            return _rarest([_word_pieces(token) for token in _join_pairs(tokens)])
        case And(parts):
            return _rarest([_pieces(part) for part in parts])
        case Or(parts):
            return set().union(*map(_pieces, parts))
        case Without(keep, _):
            return _pieces(keep)


def _rarest(choices: list[set[str]]) -> set[str]:
    """The choice with the longest pieces: all must match, so one is enough, and this has the fewest candidates."""
    return max(choices, key=lambda pieces: min(map(len, pieces), default=0), default=set())


def _word_pieces(token: str) -> set[str]:
    return spellings(token) if token.isascii() else _case_variants(token)


def _case_variants(token: str) -> set[str]:
    """The spellings of a token in other cases, because LIKE ignores case only in ASCII."""
    if token.isascii():
        return {token}
    # Arguments of a tool may be JSON that escapes these letters; one of them makes a candidate.
    return {token, token.capitalize(), token.upper(), json.dumps(token[0])[1:-1]}


def _join_pairs(tokens: tuple[str, ...]) -> list[str]:
    """Tokens as they occur in the text: overlapping pairs are one piece."""
    runs: list[str] = []
    for token in tokens:
        if runs and not token.isascii() and len(token) == 2 and len(runs[-1]) > 1 and runs[-1][-1] == token[0]:
            runs[-1] += token[1]
        else:
            runs.append(token)
    return runs


def _escape(piece: str) -> str:
    # "_" is not escaped: `spellings` uses it for any one character.
    return piece.replace("\\", "\\\\").replace("%", "\\%")
