"""Checks that the index finds the messages of the record, with the same queries as a search."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from memoranda.memory.record.feed import Feed, FeedMessage
from memoranda.memory.record.scope import Scope
from memoranda.search.index import generations
from memoranda.search.index.index_file import read_state
from memoranda.search.index.message_text import searchable_text
from memoranda.search.index.postings import And, Filters, Word
from memoranda.search.index.reader import IndexConnection, IndexReader
from memoranda.search.index.search_index import SearchIndex, find_mismatch
from memoranda.search.index.segments import check_segment, read_segments
from memoranda.search.index.tokenizer import index_tokens
from memoranda.search.index.view import IndexView
from memoranda.storage.position import START, Position
from memoranda.support.health_issues import HealthIssue, Progress

_RECENT, _RANDOM = 20, 40
_TOKENS = 4
_MAX_POSTINGS = 5_000
_BATCH = 500


def check(path: Path, feed: Feed, deep: Progress | None = None) -> Iterator[HealthIssue]:
    """Yield the problems of the index at `path`. Nothing changes unless an issue is repaired.

    With `deep`, which is notified of the progress, every message of the record is looked up, not only some.
    """

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
            problem = _describe_problem(connection, feed, deep)
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


def _describe_problem(connection: sqlite3.Connection, feed: Feed, deep: Progress | None) -> str | None:
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
    if deep is not None:
        for segment in read_segments(connection):
            check_segment(connection, segment)
        if state.change < feed.head().change:
            # The next search applies the changes; until then index and record differ rightly.
            deep = None
    count, messages = (0, _sample(feed, state.message)) if deep is None else (docs, _read_all(feed, state.message))
    lost: list[int] = []
    checked = 0
    with closing(_open_reader(connection, feed)) as reader:
        for checked, message in enumerate(messages, 1):
            if not _is_found(reader, message):
                lost.append(message.id)
            if deep is not None:
                deep("messages in the index", checked, count)
    if lost:
        return f"does not find {len(lost):,} of the messages that were checked, for example {lost[0]}"
    if deep is not None and checked < count:
        return f"contains {count - checked:,} messages that are not in the record"
    return None


def _open_reader(connection: sqlite3.Connection, feed: Feed) -> IndexReader:
    def raise_error(error: sqlite3.DatabaseError) -> None:
        raise error

    return IndexReader(feed, feed.head(), IndexConnection(IndexView(connection), raise_error), None, {})


def _read_all(feed: Feed, indexed: Position) -> Iterator[FeedMessage]:
    """Every message that is indexed, from the record."""
    first_id = 1
    while batch := feed.sample_messages(first_id, _BATCH, until=indexed):
        first_id = batch[-1].id + 1
        yield from batch


def _sample(feed: Feed, indexed: Position) -> list[FeedMessage]:
    """The last messages that are indexed, and some others."""
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
    return [message for _, message in sorted(sample.items())]


def _is_found(reader: IndexReader, message: FeedMessage) -> bool:
    words = searchable_text(message)
    tokens = index_tokens(f"{words.text}\n{words.tool_text}")
    chosen = sorted({*tokens.words.split(), *tokens.pairs.split()}, key=len, reverse=True)[:_TOKENS]
    if not chosen:
        return True
    found = reader.postings(And(tuple(map(Word, chosen))), Filters(Scope.everyone(), titles=False), _MAX_POSTINGS)
    return len(found) == _MAX_POSTINGS or any(posting.message == message.id for posting in found)
