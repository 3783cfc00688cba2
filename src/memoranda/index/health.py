"""Checks that the index finds the messages of the record, with the same queries as a search."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from memoranda.db.position import START, Position
from memoranda.index import generations
from memoranda.index.index_file import read_state
from memoranda.index.message_text import searchable_text
from memoranda.index.postings import And, Filters, Word
from memoranda.index.reader import IndexConnection, IndexReader
from memoranda.index.search_index import SearchIndex, find_mismatch
from memoranda.index.tokenizer import index_tokens
from memoranda.index.view import IndexView
from memoranda.sessions.feed import Feed, FeedMessage
from memoranda.sessions.scope import Scope
from memoranda.support.health_issues import HealthIssue

_RECENT, _RANDOM = 20, 40
_TOKENS = 4
_MAX_POSTINGS = 5_000


def check(path: Path, feed: Feed) -> Iterator[HealthIssue]:
    """Yield the problems of the index at `path`. Nothing changes unless an issue is repaired."""

    def rebuild() -> None:
        with closing(SearchIndex(path, feed)) as index:
            index.compact()

    def follow() -> None:
        with closing(SearchIndex(path, feed)) as index:
            index.catch_up()

    files = generations.generations(path)
    head = feed.head()
    if not files:
        if head.message > START:
            yield HealthIssue("note", path, "does not exist yet", "the next search creates it", follow)
        return
    try:
        with closing(generations.connect(files[0], 1.0, "ro")) as connection:
            problem = _describe_problem(connection, feed)
            behind = head.message.count - read_state(connection).message.count if problem is None else 0
    except sqlite3.Error as error:
        problem, behind = f"cannot be read ({error})", 0
    if problem is not None:
        yield HealthIssue("error", files[0], problem, "rebuild it from the sessions; no data is lost", rebuild)
    elif behind > 0:
        yield HealthIssue("note", files[0], f"is {behind} messages behind", "the next search catches up", follow)


def describe_content(file: Path) -> str | None:
    """What an index file knows about messages, for a person whose store is lost; None if it is empty or unreadable."""
    try:
        with closing(generations.connect(file, 1.0, "ro")) as connection:
            (messages, newest) = connection.execute("SELECT count(*), max(time) FROM docs WHERE message > 0").fetchone()
            (sessions,) = connection.execute("SELECT count(*) FROM sessions").fetchone()
    except sqlite3.Error:
        return None
    if not messages:
        return None
    return (
        f"still knows {messages:,} messages of {sessions:,} sessions, the last of "
        f"{datetime.fromtimestamp(newest, UTC):%Y-%m-%d}: their ids, times, titles and words, not their texts"
    )


def _describe_problem(connection: sqlite3.Connection, feed: Feed) -> str | None:
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        return f"is damaged ({verdict})"
    connection.execute("BEGIN")
    state = read_state(connection)
    if reason := find_mismatch(state, feed):
        return f"cannot be used: {reason}"
    (docs,) = connection.execute("SELECT count(*) FROM docs WHERE message > 0").fetchone()
    if docs != state.messages:
        return f"counts {state.messages} messages but contains {docs}"
    lost = _find_lost(connection, feed, state.message)
    return None if not lost else f"does not find {len(lost)} of the messages that were checked, for example {lost[0]}"


def _find_lost(connection: sqlite3.Connection, feed: Feed, indexed: Position) -> list[int]:
    """The ids of messages that a search for their own words does not find."""

    def raise_error(error: sqlite3.DatabaseError) -> None:
        raise error

    total = indexed.count
    chosen = random.Random(total)
    starts = [
        (total - _RECENT + 1, _RECENT),
        *((chosen.randrange(total) + 1, 1) for _ in range(_RANDOM if total else 0)),
    ]
    sample = {
        message.id: message
        for first_id, limit in starts
        for message in feed.sample_messages(first_id, limit, until=indexed)
    }
    with closing(
        IndexReader(feed, feed.head(), IndexConnection(IndexView(connection), raise_error), None, {})
    ) as reader:
        return [number for number, message in sorted(sample.items()) if not _is_found(reader, message)]


def _is_found(reader: IndexReader, message: FeedMessage) -> bool:
    words = searchable_text(message)
    tokens = index_tokens(f"{words.text}\n{words.tool_text}")
    chosen = sorted({*tokens.words.split(), *tokens.pairs.split()}, key=len, reverse=True)[:_TOKENS]
    if not chosen:
        return True
    found = reader.postings(And(tuple(map(Word, chosen))), Filters(Scope.everyone(), titles=False), _MAX_POSTINGS)
    return len(found) == _MAX_POSTINGS or any(posting.message == message.id for posting in found)
