"""The index of vectors, when messages are deleted, models are replaced, and other processes use the file."""

import sqlite3
import threading
from collections.abc import Sequence
from typing import Any, cast

import pytest

from memoranda.home.session_db import SessionDB
from memoranda.memory.record.scope import Scope
from memoranda.search.index.postings import Filters
from memoranda.search.meaning.embedder import Embedder, EmbedderError
from memoranda.search.meaning.static_vectors import StaticVectors
from tests.search.meaning.test_vector_index import _TEXTS, _fill, _find, _index

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("static_vectors")]


def test_forgetting_waits_for_a_process_that_embeds(db: SessionDB) -> None:
    """A batch of a slow model takes seconds; if forgetting failed, all vectors would be deleted."""
    _fill(db)
    index = _index(db)
    index.catch_up()
    db.delete_session("s0")
    other = sqlite3.connect(index.path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(1.5, other.execute, ["COMMIT"])
    release.start()
    index.forget_deleted()
    release.join()
    other.close()
    assert index.counts().messages == 2


class _Counted:
    """Counts the texts that are embedded."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.count = 0

    def embed(self, texts: Sequence[str], **options: Any) -> Any:
        self.count += len(texts)
        return self._embedder.embed(texts, **options)

    def __getattr__(self, name: str) -> object:
        return getattr(self._embedder, name)


@pytest.mark.parametrize("only_forget", [True, False])
def test_deleting_the_newest_message_embeds_nothing_again(db: SessionDB, only_forget: bool) -> None:
    """An embedding may cost money; the other vectors stay as they are."""
    _fill(db)
    counted = _Counted(StaticVectors.installed())
    index = _index(db, cast("Embedder", counted))
    index.catch_up()
    db.delete_session("s2")
    if only_forget:
        index.forget_deleted()
    else:
        index.catch_up()
    assert index.catch_up().complete
    assert counted.count == 3
    assert index.counts()[:2] == (2, 2)
    db.create_session("s3", "cli")
    db.append_message("s3", "user", "I roast a chicken with potatoes.")
    index.catch_up()
    assert counted.count == 4
    assert _find(index, "cooking dinner")[0] == "s3"


def test_a_reader_never_mixes_a_deleted_block_with_its_successor(db: SessionDB) -> None:
    """A block that was deleted with its last message leaves its number to the next one, of another session."""
    db.create_session("first", "cli", user_id="ann")
    db.append_message("first", "user", _TEXTS[0])
    index, other = _index(db), _index(db)
    index.catch_up()
    assert _find(other, "pets", Filters(Scope.of("ann"))) == ["first"]
    db.delete_session("first")
    index.forget_deleted()
    db.create_session("second", "cli", user_id="ben")
    message = db.append_message("second", "user", _TEXTS[1])
    index.catch_up()
    wanted = StaticVectors.installed().embed_query("pets", lambda word: float("inf"))
    with other.reading() as reader:
        assert reader is not None
        (match,) = reader.search(wanted, Filters(Scope.everyone()), 3)
    assert (match.session_id, match.message) == ("second", message)


class _Shorter:
    """A model of a service that was replaced under its name: the length of its vectors is known after the first one."""

    def __init__(self, embedder: Embedder, dimensions: int) -> None:
        self._embedder = embedder
        self._length = dimensions
        self.dimensions = 0

    def embed(self, texts: Sequence[str], **options: Any) -> Any:
        self.dimensions = self._length
        return self._embedder.embed(texts, **options)[:, : self._length]

    def __getattr__(self, name: str) -> object:
        return getattr(self._embedder, name)


def test_vectors_of_another_length_start_again(db: SessionDB) -> None:
    """They are never mixed in one file, and never compared with each other."""
    _fill(db)
    _index(db).catch_up()
    db.create_session("s3", "cli")
    db.append_message("s3", "user", "I roast a chicken with potatoes.")
    index = _index(db, cast("Embedder", _Shorter(StaticVectors.installed(), 64)))
    with pytest.raises(EmbedderError, match="changed the length"):
        index.catch_up()
    with index.reading() as reader:
        assert reader is None
    assert index.catch_up().complete
    assert index.counts().messages == 4
    with index.reading() as reader:
        assert reader is not None
        assert reader.state.dimensions == 64
