"""Imports with the record on a server: nodes share what was imported, and every node can undo it."""

import platform
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.home.shards.directory import Directory
from memoranda.home.shards.move import ShardMove
from memoranda.home.shards.placement import shard_of
from memoranda.importers import item_import, session_writer
from memoranda.importers.exports.jsonl import JsonLines
from memoranda.importers.importer import Importer, ImportRunningError, import_lock, state_of_store
from memoranda.importers.reader_protocol import (
    ImportedConversation,
    ImportedMessage,
    ImportedProposal,
    ImportItem,
    ReadEvent,
)
from memoranda.importers.session_writer import session_name
from memoranda.importers.state.schema import imports_database
from memoranda.importers.undo import ImportHistory
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.storage.home_database import FILE_NAME
from memoranda.storage.lazy_database import server_url_of
from memoranda.support.home import Home
from memoranda.upkeep.migration.migrate import migrate_to_files, migrate_to_server
from tests.importers.import_home import Home as ImportHome
from tests.importers.import_home import ListReader, write_lines
from tests.storage.postgres.servers import Server

pytestmark = pytest.mark.slow


class _Node:
    """A machine with a home of its own, which uses the server of the others."""

    def __init__(self, root: Path, url: str, user: str | None = None) -> None:
        root.mkdir(exist_ok=True)
        self.root = root
        self.store = open_store(url).scoped(Scope.of(user))

    def read(self, import_id: str | None, *events: ReadEvent, size: int = 1) -> int:
        reader = ListReader(*events, items=[ImportItem(Path("recited"), size, 1.0, "recital")])
        with closing(Importer(self.root, self.store, import_id=import_id)) as importer:
            return importer.apply(reader, reader.scan(None)).messages

    def imports(self) -> list[tuple[str, int]]:
        with closing(ImportHistory(self.root, self.store)) as history:
            return [(logged.id, logged.sessions) for logged in history.imports()]

    def undo(self, import_id: str) -> int:
        with closing(ImportHistory(self.root, self.store)) as history:
            return history.undo(import_id).messages


@pytest.fixture
def nodes(tmp_path: Path, postgres_url: str) -> Iterator[tuple[_Node, _Node]]:
    one, two = _Node(tmp_path / "one", postgres_url), _Node(tmp_path / "two", postgres_url)
    yield one, two
    one.store.close()
    two.store.close()


def _said(number: int) -> ImportedMessage:
    message = {"role": "user", "content": f"words {number}", "external_id": f"m{number}", "timestamp": 100 + number}
    return ImportedMessage(message)


_EVENTS: tuple[ReadEvent, ...] = (ImportedConversation("a", "Locks"), _said(1), _said(2))


def _count(store: SessionStore, *tables: str) -> list[int]:
    with store.scoped(Scope.everyone()).engine.reading() as connection:
        return [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]


@pytest.mark.smoke
def test_a_second_node_adds_nothing_and_can_undo(nodes: tuple[_Node, _Node], monkeypatch: pytest.MonkeyPatch) -> None:
    """What one node imported is known to the other, which removes it; then both can import it again."""
    one, two = nodes
    monkeypatch.setattr(platform, "node", lambda: "laptop")
    assert one.read("one", *_EVENTS) == 2
    monkeypatch.setattr(platform, "node", lambda: "desktop")
    assert two.read("two", *_EVENTS) == 0
    assert two.imports() == one.imports() == [("one", 1)]
    assert not (one.root / FILE_NAME).exists()
    assert two.undo("one") == 2
    assert _count(one.store, "messages", "import_parts", "import_items") == [0, 0, 0]
    monkeypatch.setattr(platform, "node", lambda: "laptop")
    assert one.read("three", *_EVENTS) == 2


def test_very_long_messages_are_imported_into_a_server(
    nodes: tuple[_Node, _Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once each, with their whole text."""
    for module in (item_import, session_writer):
        monkeypatch.setattr(module, "MAX_BATCH_CHARS", 1)
    one, two = nodes
    assert one.read("one", *_EVENTS) == 2
    assert two.read("two", *_EVENTS) == 0
    (session,) = one.store.transfer.iter_export()
    assert [message["content"] for message in session["messages"]] == ["words 1", "words 2"]
    for _ in range(2):
        one.store.messages.append_and_clear(session["id"], {"role": "user", "content": "said twice"})
    assert len(one.store.messages.get_messages(session["id"])) == 4


def test_files_of_the_same_path_are_told_apart(
    tmp_path: Path, nodes: tuple[_Node, _Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each node continues in its own file, although the other has read another one of the same name."""
    file = tmp_path / "chat.jsonl"

    def read(node: _Node, name: str, texts: list[str]) -> tuple[int, int]:
        monkeypatch.setattr(platform, "node", lambda: name)
        write_lines(file, [{"role": "user", "content": text} for text in texts])
        with closing(Importer(node.root, node.store)) as importer:
            summary = importer.apply(JsonLines(), JsonLines().scan(file))
            return summary.messages, summary.messages_known

    one, two = nodes
    assert read(one, "laptop", ["a", "b"])[0] == 2
    assert read(two, "desktop", ["x", "y"])[0] == 2
    assert read(one, "laptop", ["a", "b", "c"]) == (1, 0)
    with closing(state_of_store(one.root, one.store)) as state:
        files = state.files_with([row["id"] for row in one.store.listing.list_sessions_rich()])
    assert files == [f"desktop:{file}", f"laptop:{file}"]


def test_nodes_import_one_after_the_other_for_a_user(nodes: tuple[_Node, _Node], postgres_url: str) -> None:
    """The lock of one node is seen by the other; another user does not wait."""
    one, two = nodes
    waiting: list[str] = []
    with import_lock(one.root, 0.0, store=one.store):
        with (
            pytest.raises(ImportRunningError, match="another machine") as refused,
            import_lock(two.root, 1.0, waiting.append, store=two.store),
        ):
            pass
        assert waiting == [refused.value.holder]
        with import_lock(two.root / "ana", 0.0, store=two.store.scoped(Scope.of("ana"))):
            pass
    with import_lock(two.root, 0.0, store=two.store):
        pass


def test_a_killed_import_gets_only_its_own_messages(nodes: tuple[_Node, _Node]) -> None:
    """The owner's import was killed; what a user imported on another node meanwhile stays the user's."""
    one, two = nodes
    one.read("first", *_EVENTS)
    with closing(state_of_store(one.root, one.store)) as state:
        state.log.start("killed", "recited", one.store.messages.last_message_id())
    one.store.messages.append_messages("recited-a", [_said(3).message])
    ana = _Node(two.root / "ana", server_url_of(two.store.engine), "ana")
    assert ana.read("hers", *_EVENTS) == 2
    assert ana.imports() == [("hers", 1)]
    assert two.read("last", *_EVENTS, _said(3), _said(4), size=2) == 1
    assert two.imports() == [("last", 1), ("killed", 1), ("first", 1)]
    assert two.undo("last") == two.undo("killed") == 1
    assert ana.store.messages.get_messages(session_name("recited", "a", "ana"))
    ana.store.close()


def _filled_home(root: Path) -> Home:
    home = ImportHome(root)
    reader = ListReader(*_EVENTS, ImportedProposal("user", "Ana likes tea.", "block human"))
    for user in (None, "ana"):
        curated = MemoryStore(root.parent / f"memory of {user}")
        options: Any = {"import_id": f"by {user}", "curated": curated}
        with closing(Importer(root, home.store.scoped(Scope.of(user)), **options)) as importer:
            importer.apply(reader, reader.scan(None))
    home.store.close()
    return Home(root)


def _rows(root: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(imports_database(root)) as database, database.open().reading() as connection:
        return {
            table: [tuple(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()]
            for table in ("import_items", "imported_sessions", "imports", "import_parts", "import_proposals")
        }


def test_imports_move_with_a_home_to_a_server_and_back(tmp_path: Path, postgres_url: str) -> None:
    """Every row is there, each user can undo on the server, and a home that was copied back has the same rows."""
    home, back = _filled_home(tmp_path / "home"), Home(tmp_path / "back")
    ignore = lambda *_: None  # noqa: E731
    migrate_to_server(home, postgres_url, ignore)
    migrate_to_files(postgres_url, back, ignore)
    assert _rows(back.root) == _rows(home.root)
    assert len(_rows(back.root)["import_proposals"]) == 2
    ana = _Node(home.root, postgres_url, "ana")
    assert ana.read("again", *_EVENTS) == 0
    assert (ana.imports(), ana.undo("by ana")) == ([("by ana", 1)], 2)
    # The file of the old home, which is still there, does not bring the import back.
    assert ana.imports() == [("by ana", 0)]
    ana.store.close()
    with memoranda.open(back.root) as memory, closing(ImportHistory(back.root, memory.sessions)) as history:
        assert history.undo("by None").messages == 2


def test_imports_are_forgotten_with_their_user(tmp_path: Path, postgres_url: str) -> None:
    """Rows of the user are deleted; a path with a forgotten text is deleted, too, and the file is read again."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.yaml").write_text(f"store:\n  url: {postgres_url}\n")
    file = write_lines(tmp_path / "heron.jsonl", [{"role": "user", "content": "about birds"}])
    for user in (None, "ana"):
        with memoranda.open(tmp_path / "home", user=user) as memory:
            for reader, items in (
                (JsonLines(), JsonLines().scan(file)),
                (ListReader(*_EVENTS), ListReader().scan(None)),
            ):
                with closing(Importer(memory.home.root, memory.sessions, import_id="x" + str(user))) as importer:
                    importer.apply(reader, items)
    tables = ("import_items", "imported_sessions", "imports", "import_parts")
    with memoranda.open(tmp_path / "home") as memory:
        assert _count(memory.sessions, *tables) == [4, 4, 2, 4]
        memory.forget("heron")
        assert _count(memory.sessions, *tables) == [3, 4, 2, 4]
        memory.forget(user="ana")
        assert _count(memory.sessions, *tables) == [1, 2, 1, 2]


def test_imports_move_with_their_user_to_another_store(tmp_path: Path, postgres_server: Server) -> None:
    """After the move the import is undone in the new store, and nothing is left in the old one."""
    with postgres_server.schema() as first, postgres_server.schema() as second:
        before, after = _Node(tmp_path / "one", first, "ana"), _Node(tmp_path / "two", second, "ana")
        before.read("hers", *_EVENTS)
        after.imports()
        with closing(Directory([first, second])) as directory:
            ShardMove(directory, shard_of("ana"), 1, wait=lambda _: directory.refresh()).run()
        assert (before.imports(), after.imports()) == ([], [("hers", 1)])
        assert after.read("again", *_EVENTS) == 0
        assert after.undo("hers") == 2
        before.store.close()
        after.store.close()
