"""Threads and items of LangGraph: MessagePack is read without creating the objects that it describes."""

import json
import pickle
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.importers.importer import Importer
from memoranda.importers.memory_programs.langgraph import LangGraph, split_checkpoint
from memoranda.importers.undo import ImportHistory
from memoranda.memory.checkpoints.store import CheckpointStore, open_checkpoints
from memoranda.memory.record.scope import Scope
from tests.importers.import_home import Home
from tests.importers.samples import FOLDER

pytestmark = pytest.mark.slow


@given(st.binary(max_size=300))
def test_bytes_that_are_no_msgpack_raise_only_value_errors(data: bytes) -> None:
    """So that a damaged checkpoint is one problem."""
    with suppress(ValueError):
        split_checkpoint(data)
    with suppress(ValueError):
        split_checkpoint(b"\x81\xaechannel_values\x81\xa1m" + data)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x91" * 100_000, id="nested lists"),
        pytest.param(b"\xdd\xff\xff\xff\xff\xc0", id="a list of four thousand million values"),
        pytest.param(b"\xdb\xff\xff\xff\xff", id="a text of four gigabytes"),
        pytest.param(b"\xc1", id="an unknown type"),
    ],
)
def test_hostile_bytes_are_refused(data: bytes) -> None:
    """Depth and length are checked before anything is built."""
    with pytest.raises(ValueError, match="damaged MessagePack"):
        split_checkpoint(b"\x81\xa1a" + data)


def test_an_object_is_its_fields() -> None:
    """Module, class and method are names in the data and nothing else."""
    described = b"\x94\xa2os\xa6system\x81\xa1a\x01\xa3run"
    extension = b"\xc7" + bytes([len(described)]) + b"\x05" + described
    assert split_checkpoint(b"\x81\xa1s" + extension).content == {"s": {"a": 1}}


def test_the_value_of_a_channel_is_stored_as_the_bytes_of_its_checkpoint() -> None:
    """What remains is the state, still MessagePack; nothing is encoded again."""
    value = b"\x92\xa2hi\xcd\x00\x07"
    found = split_checkpoint(b"\x83\xa1v\x04\xaechannel_values\x81\xa1m" + value + b"\xa2id\xa1x")
    assert found.content == {"v": 4, "channel_values": {"m": ["hi", 7]}, "id": "x"}
    assert found.values == {"m": ("msgpack", value)}
    assert found.state == ("msgpack", b"\xde\x00\x02\xa1v\x04\xa2id\xa1x")


def test_checkpoints_of_older_and_unsafe_formats(tmp_path: Path) -> None:
    """JSON of older versions is read; a pickle is reported and not loaded."""
    kwargs = {"content": "Hello.", "type": "human", "id": "h1"}
    message = {"lc": 2, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": kwargs}
    checkpoint = {"ts": "2025-01-01T00:00:00+00:00", "channel_values": {"messages": [message]}}
    file = tmp_path / "old.sqlite"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(
            "CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint, metadata)"
        )
        rows = [("1", "json", json.dumps(checkpoint).encode()), ("2", "pickle", pickle.dumps(checkpoint))]
        connection.executemany("INSERT INTO checkpoints VALUES ('t', '', ?, ?, ?, NULL)", rows)
    home = Home(tmp_path / "home")
    summary = home.take(LangGraph(), file)
    assert [message["content"] for message in home.messages("langgraph:t")] == ["Hello."]
    assert ["the format pickle is not supported" in problem.text for problem in summary.problems] == [True]


def _store_file(file: Path, *rows: tuple[str, str, str, str, float | None, str | None]) -> Path:
    """A store with the columns of LangGraph's: namespace, key, value, time of the last write, and expiry."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS store (prefix, key, value, created_at, updated_at, ttl_minutes, expires_at,"
            " PRIMARY KEY (prefix, key))"
        )
        connection.executemany("INSERT OR REPLACE INTO store VALUES (?, ?, ?, '2025-01-01 00:00:00', ?, ?, ?)", rows)
    return file


_TEA = ("users.ann", "tea", '{"text": "oolong", "year": 2025}', "2025-02-01 00:00:00", None, None)


@pytest.mark.parametrize("record", ["file", "server"])
def test_an_item_stays_an_item_until_the_import_is_undone(
    tmp_path: Path, record: str, request: pytest.FixtureRequest
) -> None:
    """It has the names, the value and the times of LangGraph's store, and belongs to the user who imports."""
    home = Home(tmp_path / "home", request.getfixturevalue("postgres_url") if record == "server" else "")
    store = home.store.scoped(Scope.of("ann"))
    reader, file = LangGraph(), _store_file(tmp_path / "store.sqlite", _TEA)
    with closing(Importer(home.root, store, import_id="first")) as importer:
        assert importer.plan(reader, reader.scan(file)).kept_items == 1
        assert importer.apply(reader, reader.scan(file)).kept_items == 1
    found = store.items.get(("users", "ann"), "tea")
    assert found is not None and found.value == {"text": "oolong", "year": 2025}
    assert (found.created_at, found.updated_at) == (1735689600.0, 1738368000.0)
    assert home.store.scoped(Scope.of("ben")).items.list_items() == []
    with closing(ImportHistory(home.root, store)) as history:
        assert [logged.items for logged in history.imports()] == [1]
        assert len(history.preview("first").items) == len(history.undo("first").items) == 1
    assert store.items.list_items() == []
    with closing(Importer(home.root, store, import_id="second")) as importer:
        assert importer.apply(reader, reader.scan(file)).kept_items == 1


@pytest.mark.parametrize("record", ["file", "server"])
def test_the_states_of_threads_are_checkpoints_until_the_import_is_undone(
    tmp_path: Path, record: str, request: pytest.FixtureRequest
) -> None:
    """They belong to the user who imports; a damaged one is a problem, and the others are imported."""
    url = request.getfixturevalue("postgres_url") if record == "server" else ""
    home, file = Home(tmp_path / "home", url), tmp_path / "checkpoints.sqlite"
    shutil.copy(FOLDER / "langgraph" / "checkpoints.sqlite", file)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(
            "UPDATE checkpoints SET checkpoint = x'81' WHERE rowid = (SELECT max(rowid) FROM checkpoints)"
        )
    store, reader = home.store.scoped(Scope.of("ann")), LangGraph()
    with closing(Importer(home.root, store, import_id="first")) as importer:
        assert importer.plan(reader, reader.scan(file)).states == 8
        done = importer.apply(reader, reader.scan(file))
        assert (done.states, len(done.problems)) == (8, 1)
    with closing(open_checkpoints(home.root, url)) as database, closing(ImportHistory(home.root, store)) as history:
        stored = {user: CheckpointStore(database, user) for user in ("ann", "ben")}
        found = list(stored["ann"].iter_checkpoints())
        assert len(found) == 8 and sum(len(each.writes) for each in found) > 8
        assert list(stored["ben"].iter_checkpoints()) == []
        assert [logged.states for logged in history.imports()] == [8]
        assert (history.preview("first").states, history.undo("first").states) == (8, 8)
        assert list(stored["ann"].iter_checkpoints()) == []


def test_of_an_item_here_and_in_a_file_the_later_one_stays(tmp_path: Path) -> None:
    """What was changed or deleted here is not replaced by an older value; a newer one is the next version."""
    home, file = Home(tmp_path / "home"), _store_file(tmp_path / "store.sqlite", _TEA, ("users.ann", "city", *_TEA[2:]))
    items = home.store.scoped(Scope.of(None)).items
    home.take(LangGraph(), file)
    items.put(("users", "ann"), "tea", {"text": "green"})
    items.delete(("users", "ann"), "city")
    assert home.take(LangGraph(), file, rescan=True).kept_items == 0
    assert [item.value for item in items.list_items()] == [{"text": "green"}]
    _store_file(file, (*_TEA[:3], "2999-01-01 00:00:00", None, None))
    assert home.take(LangGraph(), file, rescan=True).kept_items == 1
    assert [version.value["text"] for version in items.history(("users", "ann"), "tea") if version.value] == [
        "oolong",
        "green",
        "oolong",
    ]


def test_undo_leaves_an_item_that_was_changed_since(tmp_path: Path) -> None:
    """What a person wrote over an imported value is theirs; an earlier value of an updated item returns."""
    home, file = Home(tmp_path / "home"), _store_file(tmp_path / "store.sqlite", _TEA, ("users.ann", "city", *_TEA[2:]))
    items = home.store.scoped(Scope.of(None)).items
    for import_id in ("first", "second"):
        with closing(Importer(home.root, home.store, import_id=import_id)) as importer:
            importer.apply(LangGraph(), LangGraph().scan(file))
        _store_file(file, ("users.ann", "city", '{"text": "Basel"}', "2025-03-01 00:00:00", None, None))
    items.put(("users", "ann"), "tea", {"text": "green"})
    with closing(ImportHistory(home.root, home.store)) as history:
        assert (len(history.undo("second").items), items.get(("users", "ann"), "city").value["year"]) == (1, 2025)  # type: ignore[union-attr]
        report = history.undo("first")
        assert (len(report.items), report.items_kept, history.preview("first").has_work) == (1, 1, False)
    assert [item.value for item in items.list_items()] == [{"text": "green"}]


def test_what_a_store_lets_expire_expires_here_too(tmp_path: Path) -> None:
    """An item that has expired is skipped, and a value that cannot be stored is a problem."""
    home = Home(tmp_path / "home")
    summary = home.take(
        LangGraph(),
        _store_file(
            tmp_path / "store.sqlite",
            (*_TEA[:4], 60.0, "2999-01-01 00:00:00"),
            ("users.ann", "past", "{}", _TEA[3], 60.0, "2025-01-02 00:00:00"),
            ("", "nameless", "{}", _TEA[3], None, None),
            ("users.ann", "deep", '{"a": ' * 400 + "1" + "}" * 400, _TEA[3], None, None),
        ),
    )
    (found,) = home.store.scoped(Scope.of(None)).items.list_items(("users",), filters={"year": 2025})
    assert found.expires_at == 32472144000.0
    assert dict(summary.skipped) == {"expired item": 1}
    assert ["nameless" in problem.text for problem in summary.problems][:1] == [True]
