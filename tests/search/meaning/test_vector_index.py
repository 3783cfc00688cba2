"""The index of vectors: a cache that follows the record, with the real word vectors."""

import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner

import memoranda
from memoranda.cli.main import command
from memoranda.home import config
from memoranda.home.session_db import SessionDB
from memoranda.memory.record.scope import Scope
from memoranda.search.index.postings import Filters
from memoranda.search.meaning.embedder import Embedder, EmbedderError
from memoranda.search.meaning.static_vectors import StaticVectors
from memoranda.search.meaning.vector_index import VectorIndex
from memoranda.support.home import Home, remove_vectors, vector_files, vectors_path
from tests.timing import GIVE_UP, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("static_vectors")]

_TEXTS = ("My dog barks at the postman.", "The server has no disk space left.", "We sail to the islands in July.")


def _index(db: SessionDB, embedder: Embedder | None = None) -> VectorIndex:
    chosen = embedder or StaticVectors.installed()
    return VectorIndex(vectors_path(db.path, chosen.name), db.feed, lambda: chosen)


def _fill(db: SessionDB, user: str | None = None, prefix: str = "s") -> None:
    for number, text in enumerate(_TEXTS):
        db.create_session(f"{prefix}{number}", "cli", user_id=user)
        db.append_message(f"{prefix}{number}", "user", text)


def _find(index: VectorIndex, query: str, filters: Filters | None = None) -> list[str]:
    wanted = StaticVectors.installed().embed_query(query, lambda word: float("inf"))
    with index.reading() as reader:
        assert reader is not None
        return [match.session_id for match in reader.search(wanted, filters or Filters(Scope.everyone()), 3)]


def test_what_shares_no_word_is_found(db: SessionDB) -> None:
    """The vector of the message decides."""
    _fill(db)
    index = _index(db)
    assert index.catch_up().complete
    assert _find(index, "Which pets are there")[0] == "s0"
    assert _find(index, "holiday on a boat")[0] == "s2"


def test_it_follows_new_messages(db: SessionDB) -> None:
    """Only what is new is embedded, and a reader that is open sees it."""
    _fill(db)
    index = _index(db)
    index.catch_up()
    assert _find(index, "cooking dinner")[0] != "kitchen"
    db.create_session("kitchen", "cli")
    db.append_message("kitchen", "user", "I roast a chicken with potatoes.")
    assert not index.progress().complete
    index.catch_up()
    assert _find(index, "cooking dinner")[0] == "kitchen"
    assert index.counts().messages == 4


def test_a_forgotten_message_leaves_no_vector(db: SessionDB) -> None:
    """Neither in what a search finds, nor in the bytes of the files."""
    _fill(db)
    index = _index(db)
    index.catch_up()
    stored = _stored_vectors(index.path)
    db.delete_session("s0")
    index.forget_deleted()
    assert "s0" not in _find(index, "Which pets are there")
    assert index.counts()[:2] == (2, 2)
    remaining = b"".join(file.read_bytes() for file in index.path.parent.glob(f"{index.path.name}*"))
    assert stored[0] not in remaining
    assert stored[1] in remaining


def _stored_vectors(path: Path) -> list[bytes]:
    connection = sqlite3.connect(path)
    (vectors,) = connection.execute("SELECT vectors FROM blocks").fetchone()
    connection.close()
    return [vectors[start : start + 256] for start in range(0, len(vectors), 256)]


def test_a_redacted_message_gets_a_new_vector(db: SessionDB) -> None:
    """The old meaning is gone from the file."""
    _fill(db)
    index = _index(db)
    index.catch_up()
    (message,) = db.get_messages("s0")
    before = _stored_vectors(index.path)[0]
    db.redact_message(message["id"])
    index.catch_up()
    assert before not in _stored_vectors(index.path)


def test_a_rewound_message_is_not_found(db: SessionDB) -> None:
    """What the record no longer shows, the vectors do not either; restoring brings it back."""
    db.create_session("s", "cli")
    first = db.append_message("s", "user", _TEXTS[1])
    second = db.append_message("s", "user", _TEXTS[0])
    index = _index(db)
    index.catch_up()
    assert index.counts().messages == 2
    db.rewind_to_message("s", second)
    index.catch_up()
    assert index.counts().messages == 1
    assert first < second


def test_one_user_never_finds_another(db: SessionDB) -> None:
    """The scope is applied before the best are chosen, so that others cannot crowd out one's own."""
    _fill(db, "ann", "a")
    _fill(db, "ben", "b")
    index = _index(db)
    index.catch_up()
    assert all(name.startswith("a") for name in _find(index, "pets", Filters(Scope.of("ann"))))
    assert len(_find(index, "pets", Filters(Scope.of("ann")))) == 3
    assert _find(index, "pets", Filters(Scope.of("eve"))) == []


def test_filters_apply(db: SessionDB) -> None:
    """Source, role, time and the messages in context."""
    _fill(db)
    index = _index(db)
    index.catch_up()
    everyone = Filters(Scope.everyone())
    (message,) = db.get_messages("s0")
    assert _find(index, "pets", everyone.with_values("source", {"telegram"})) == []
    assert _find(index, "pets", replace(everyone, excluded_sources=frozenset({"cli"}))) == []
    assert _find(index, "pets", replace(everyone, roles=frozenset({"assistant"}))) == []
    assert _find(index, "pets", replace(everyone, since=message["timestamp"] + 1_000)) == []
    assert "s0" not in _find(index, "pets", replace(everyone, without=frozenset({message["id"]})))


def test_a_damaged_file_is_rebuilt(db: SessionDB) -> None:
    """It is a cache: the search answers without it, and the next batch starts again."""
    _fill(db)
    index = _index(db)
    index.catch_up()
    index.close()
    index.path.write_bytes(b"\0" * 5_000)
    with pytest.raises(EmbedderError, match="cannot be read"), index.reading():
        pass
    assert index.catch_up().complete
    assert _find(index, "Which pets are there")[0] == "s0"


def test_another_model_starts_again(db: SessionDB) -> None:
    """Vectors of different models are never compared."""
    _fill(db)
    index = _index(db)
    index.catch_up()
    other = StaticVectors.installed()
    renamed = VectorIndex(index.path, db.feed, lambda: cast("Embedder", _Renamed(other)))
    with renamed.reading() as reader:
        assert reader is None
    renamed.catch_up()
    with index.reading() as reader:
        assert reader is None


class _Renamed:
    """The same vectors under another name."""

    name = "another"

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def __getattr__(self, name: str) -> object:
        return getattr(self._embedder, name)


def test_many_blocks_are_searched(db: SessionDB) -> None:
    """A block has 256 messages; the last one grows until it is full."""
    db.create_session("many", "cli")
    rows = [{"role": "user", "content": f"The server has {number} disks."} for number in range(600)]
    db.append_messages("many", rows)
    _fill(db)
    index = _index(db)
    index.catch_up(limit=100)
    assert not index.progress().complete
    index.catch_up()
    assert index.counts().messages == 603
    assert _find(index, "Which pets are there")[0] == "s0"


_BUILD = """
import sys
from memoranda.search.meaning.static_vectors import StaticVectors
from memoranda.search.meaning.vector_index import VectorIndex
from memoranda.support.home import vectors_path
from memoranda.home.session_db import SessionDB
with SessionDB(sys.argv[1]) as db:
    embedder = StaticVectors.installed()
    index = VectorIndex(vectors_path(db.path, embedder.name), db.feed, lambda: embedder)
    while not index.catch_up(limit=50).complete:
        print("batch", flush=True)
"""


def test_a_killed_build_resumes(db: SessionDB) -> None:
    """After kill -9 nothing is embedded twice, and nothing is missing."""
    db.create_session("many", "cli")
    rows = [{"role": "user", "content": f"The server {number} has no disk space."} for number in range(3_000)]
    db.append_messages("many", rows)
    process = subprocess.Popen([sys.executable, "-c", _BUILD, str(db.path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(3):
        assert process.stdout.readline() == "batch\n"
    process.send_signal(signal.SIGKILL)
    process.wait(GIVE_UP)
    process.stdout.close()
    index = _index(db)
    done = index.counts().messages
    assert 0 < done < 3_000
    assert done % 50 == 0
    index.catch_up()
    assert index.counts().messages == 3_000


def test_a_deleted_conversation_leaves_a_home_with_its_vectors(tmp_path: Path) -> None:
    """`memoranda sessions delete` removes them before it says so."""
    home = Home(tmp_path / "home")
    config.set_value(home, "search.semantic", "on")
    config.set_value(home, "search.semantic_index", "on")
    with memoranda.open(home.root) as memory:
        _fill(memory.sessions)
        assert memory.services.search_extras is not None
        (index,) = memory.services.search_extras.indexes()
        index.catch_up()
        stored = _stored_vectors(index.path)
    answer = CliRunner().invoke(command, ["--home", str(home.root), "sessions", "delete", "s0", "--yes"])
    assert answer.exit_code == 0, answer.output
    files = b"".join(file.read_bytes() for file in home.root.glob("state.vectors*"))
    assert [vector in files for vector in stored] == [False, True, True]


def test_vectors_do_not_outlive_the_setting(tmp_path: Path) -> None:
    """Nothing would remove deleted messages from them while it is off."""
    home = Home(tmp_path / "home")
    config.set_value(home, "search.semantic", "on")
    config.set_value(home, "search.semantic_index", "on")
    with memoranda.open(home.root) as memory:
        _fill(memory.sessions)
        assert memory.services.search_extras is not None
        memory.services.search_extras.indexes()[0].catch_up()
    assert vector_files(home.state_db)
    config.set_value(home, "search.semantic_index", "off")
    with memoranda.open(home.root) as memory:
        memory.search("dog")
    assert vector_files(home.state_db) == []


def test_vectors_that_cannot_be_deleted_prevent_no_search(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As in a home that cannot be written; a warning says so."""
    home = Home(tmp_path / "home")
    with memoranda.open(home.root) as memory:
        _fill(memory.sessions)
    (home.root / "state.vectors.old.db").mkdir()
    with memoranda.open(home.root) as memory:
        assert memory.search("dog")["results"][0]["session_id"] == "s0"
    assert "could not be deleted" in caplog.text


def test_files_of_models_that_are_not_in_use_are_deleted(db: SessionDB) -> None:
    """Nothing would remove deleted messages from them."""
    _fill(db)
    index = _index(db)
    index.catch_up()
    assert remove_vectors(db.path, keep=[index.path]) == 0
    index.close()
    assert remove_vectors(db.path) == 1
    assert vector_files(db.path) == []


def test_a_home_builds_it_in_the_background(tmp_path: Path) -> None:
    """An append wakes the thread, and a search by meaning finds what shares no word with it."""
    home = Home(tmp_path / "home")
    config.set_value(home, "search.semantic", "on")
    config.set_value(home, "search.semantic_index", "on")
    with memoranda.open(home.root) as memory:
        _fill(memory.sessions)
        memory.sessions.append_message("s0", "user", "Our dog chased two cats.")
        assert memory.services.search_extras is not None
        (index,) = memory.services.search_extras.indexes()
        wait_until(lambda: index.progress().complete)
        answer = memory.search("animals kept as pets", why=True)
    assert answer["matched"] == "by meaning; none of the words"
    assert answer["results"][0]["session_id"] == "s0"
    assert answer["results"][0]["why"]["semantic"] > 0.3
