"""Searching messages that are not indexed: the truth is asked for candidates, and those are indexed in memory."""

import json
import sqlite3
from collections.abc import Callable, Collection
from itertools import count

from memoranda.db.position import Position
from memoranda.index.postings import And, Or, Pattern, Phrase, Prefix, Without, Word
from memoranda.index.stemmer import roots
from memoranda.index.tables import create
from memoranda.index.tokenizer import LONGEST_TOKEN, NAMES
from memoranda.index.updater import IndexUpdater
from memoranda.sessions.feed import Feed, FeedMessage

# So many messages are simply all read.
FEW = 2_000
MOST_CANDIDATES = 3_000
FIRST_NUMBER = 1 << 40


class UnindexedScan:
    """An index in memory of what may match, for the messages behind one. It grows with every pattern."""

    def __init__(self, feed: Feed, after: Position, head: Position, number_of: Callable[[str], int | None]) -> None:
        self._feed = feed
        self._after = after
        self.reads_all = head.count - after.count <= FEW
        self._number_of = number_of
        self._new_numbers = count(FIRST_NUMBER)
        self._seen: set[int] = set()
        self._asked: set[str] = set()
        self._took_accents = False
        self.partial = False
        self.connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        create(self.connection, "scan")
        if self.reads_all:
            self._add_all()

    def prepare(self, pattern: Pattern) -> None:
        """Fetch what may match a pattern."""
        if self.reads_all:
            return
        wanted = sorted(like_patterns(pattern) - self._asked)
        if not wanted:
            return
        self._asked.update(wanted)
        self._take(self._feed.messages_like(wanted, self._after, MOST_CANDIDATES))
        if not self._took_accents:
            # A pattern cannot say that "é" counts as "e", so whatever has such letters is a candidate.
            self._took_accents = True
            self._take(self._feed.messages_beyond_ascii(self._after, MOST_CANDIDATES))

    def _take(self, found: list[FeedMessage]) -> None:
        self.partial = self.partial or len(found) == MOST_CANDIDATES
        self._add([message for message in reversed(found) if message.id not in self._seen])

    def add_sessions(self, ids: set[str]) -> None:
        """Take in all messages of some sessions that lie before the others."""
        for session_id in sorted(ids):
            self._add(self._feed.messages_from(session_id, 0, until=self._after), {session_id})

    def close(self) -> None:
        self.connection.close()

    def _add_all(self) -> None:
        batch = self._feed.messages_after(self._after, FEW)
        while batch.messages:
            self._add(batch.messages)
            batch = self._feed.messages_after(batch.position, FEW)

    def _add(self, messages: list[FeedMessage], sessions: Collection[str] = ()) -> None:
        self._seen.update(message.id for message in messages)
        self.connection.execute("BEGIN")
        # Most of their neighbours are not here, so their ids say best how far apart they stand.
        updater = IndexUpdater(self.connection, self._feed, self._number, lambda message: FIRST_NUMBER + message.id)
        updater.add(messages, sessions)
        updater.close()
        self.connection.execute("COMMIT")

    def _number(self, session_id: str) -> int:
        known = self._number_of(session_id)
        return next(self._new_numbers) if known is None else known


def like_patterns(pattern: Pattern) -> set[str]:
    """LIKE patterns, one of which every message in plain ASCII has that matches."""
    return {f"%{_escaped(piece)}%" for piece in _pieces(pattern)}


def _pieces(pattern: Pattern) -> set[str]:
    match pattern:
        case Word(token):
            return _of_word(token)
        case Prefix(token):
            return _cases(token)
        case Phrase(tokens):
            return _rarest([_of_word(token) for token in _runs(tokens)])
        case And(parts):
            return _rarest([_pieces(part) for part in parts])
        case Or(parts):
            return set().union(*map(_pieces, parts))
        case Without(keep, _):
            return _pieces(keep)


def _rarest(choices: list[set[str]]) -> set[str]:
    """Where all must match, the one that promises the fewest candidates is enough."""
    return max(choices, key=lambda pieces: min(map(len, pieces), default=0), default=set())


def _of_word(token: str) -> set[str]:
    if not token.isascii():
        return _cases(token)
    pieces = set(roots(token)) if token.isalpha() else {token}
    pieces.update(name for name, written in NAMES.items() if written == token)
    if token.endswith("nt") and len(token) < LONGEST_TOKEN:
        pieces.add(f"{token[:-1]}_t")
    return pieces


def _cases(token: str) -> set[str]:
    """LIKE takes capitals for small letters in ASCII alone."""
    if token.isascii():
        return {token}
    # What a tool was asked may stand in JSON that escapes such letters; one of them is enough to look closer.
    return {token, token.capitalize(), token.upper(), json.dumps(token[0])[1:-1]}


def _runs(tokens: tuple[str, ...]) -> list[str]:
    """Tokens as they stand in the text: overlapping pairs are one piece."""
    runs: list[str] = []
    for token in tokens:
        if runs and not token.isascii() and len(token) == 2 and len(runs[-1]) > 1 and runs[-1][-1] == token[0]:
            runs[-1] += token[1]
        else:
            runs.append(token)
    return runs


def _escaped(piece: str) -> str:
    # "_" is ours: any one character.
    return piece.replace("\\", "\\\\").replace("%", "\\%")
