"""What an operation costs does not grow with the store: indexes are used, and opening reads nothing."""

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memoranda.memory.record.rotation import KeptMessage, Summary
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.storage.position import START, Position
from memoranda.storage.sqlite.database import Database
from memoranda.storage.sqlite.engine import SqliteEngine

pytestmark = pytest.mark.slow

CALLS = [{"id": "c", "function": {"name": "ls", "arguments": "{}"}}]


@contextmanager
def _traced(each: Callable[[sqlite3.Connection], None]) -> Iterator[None]:
    """Every connection that is opened in the block is shown to `each` first."""
    connect = Database._connect

    def traced(self: Database, mode: str = "rw") -> sqlite3.Connection:
        connection = connect(self, mode)
        each(connection)
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "_connect", traced)
        yield


def _statements(path: Path, do: Callable[[SessionStore], Any]) -> list[str]:
    statements: list[str] = []
    with _traced(lambda connection: connection.set_trace_callback(statements.append)), open_store(path) as store:
        statements.clear()
        do(store)
        found = [each for each in statements if each.split()[0] in ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")]
    assert found
    return found


def _plans(path: Path, do: Callable[[SessionStore], Any]) -> list[str]:
    """How SQLite carries out every statement of an operation."""
    statements = _statements(path, do)
    with sqlite3.connect(path) as connection:
        plans = [str(row[3]) for each in statements for row in connection.execute(f"EXPLAIN QUERY PLAN {each}")]
    connection.close()
    return plans


def _whole_tables(plans: list[str]) -> list[str]:
    """Steps that read a whole table; an index that is walked from one end is left after a page."""
    return [
        plan
        for plan in plans
        if plan.startswith("SCAN")
        and "INDEX" not in plan
        and "CONSTANT ROW" not in plan
        and plan.split()[1] in ("sessions", "messages", "m", "changes", "each", "first", "original")
    ]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of three hundred sessions, some of them chains."""
    path = tmp_path_factory.mktemp("template") / "state.db"
    with open_store(path) as store:
        _hurry(store)
        for number in range(300):
            parent = f"s{number - 2}" if number % 6 == 2 else None
            store.sessions.create_session(
                f"s{number}",
                "cli",
                user_id="ann" if number % 2 else None,
                started_at=float(number),
                parent_session_id=parent,
                relation="compression" if parent else None,
            )
            store.messages.append_messages(f"s{number}", [{"role": "user", "content": str(each)} for each in range(5)])
    return path


@pytest.fixture
def filled(template: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copy(template, tmp_path / "state.db"))


def _hurry(store: SessionStore) -> None:
    """Do without syncing while a store is filled: durability is not what is measured here."""
    assert isinstance(store.engine, SqliteEngine)
    writer = store.engine._writer
    assert writer is not None
    writer.execute("PRAGMA synchronous=OFF")


OPERATIONS: dict[str, Callable[[SessionStore], Any]] = {
    "append": lambda store: store.messages.append_message("s7", "user", "x", tool_calls=CALLS),
    "append with an external id": lambda store: store.messages.append_message("s7", "user", "x", external_id="e"),
    "batch": lambda store: store.messages.append_messages(
        "s7", [{"role": "user", "content": "x", "external_id": "f"}] * 3
    ),
    "append in scope": lambda store: store.scoped(Scope.of("ann")).messages.append_message("s7", "user", "x"),
    "get a session": lambda store: store.sessions.get_session("s7"),
    "get messages": lambda store: store.messages.get_messages("s7"),
    "get a message": lambda store: store.messages.get_message(33),
    "as a conversation": lambda store: store.messages.get_messages_as_conversation("s7", include_ancestors=True),
    "around a message": lambda store: store.conversations.window_around(33, 5),
    "live messages": lambda store: store.messages.live_message_ids("s7"),
    "head": lambda store: store.feed.head(),
    "what is new": lambda store: store.feed.messages_after(Position(0, 1480), 10),
    "changes": lambda store: store.feed.changes_after(START, 10),
    "by id": lambda store: store.feed.messages_by_id([1, 2, 3]),
    "end": lambda store: store.sessions.end_session("s7", "x"),
    "tokens": lambda store: store.usage.update_token_counts("s7", input_tokens=1),
    "title": lambda store: store.titles.set_session_title("s7", "T"),
    "rewind": lambda store: store.edits.rewind_to_message("s7", store.messages.append_message("s7", "user", "x")),
    "redact": lambda store: store.edits.redact_message(33),
    "compact": lambda store: store.edits.archive_and_compact(
        "s7", [{"role": "user", "content": "x", "is_summary": True}]
    ),
    "rotate": lambda store: store.rotation.rotate_session("s7", "new", [Summary("x"), KeptMessage(40)], last_seen=40),
    "branch": lambda store: store.rotation.branch_session("s7", "new", "New"),
    "context": lambda store: store.rotation.live_context("s7"),
    "lease": lambda store: store.rotation.take_compression_lease("s7", "me"),
    "notes": lambda store: store.rotation.note_compression("s7", "x"),
    "clear": lambda store: store.edits.clear_messages("s7"),
    "archive": lambda store: store.sessions.set_session_archived("s7", True),
    "tip": lambda store: store.lineage.get_compression_tip("s7"),
    "ancestors": lambda store: store.lineage.get_ancestors("s7"),
    "descendants": lambda store: store.lineage.get_descendants("s7"),
    "list": lambda store: store.listing.list_sessions_rich(),
    "list by activity": lambda store: store.listing.list_sessions_rich(order_by_last_active=True),
    "list in scope": lambda store: store.scoped(Scope.of("ann")).listing.list_sessions_rich(order_by_last_active=True),
    "list since": lambda store: store.listing.list_sessions_rich(
        order_by_last_active=True, since=5.0, min_message_count=1
    ),
    "create": lambda store: store.sessions.create_session("new", "cli", title="New", parent_session_id="s7"),
    "delete": lambda store: store.deletion.delete_session("s9"),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_everyday_operation_reads_a_whole_table(filled: Path, name: str) -> None:
    """Each statement of it finds its rows by an index or a key."""
    assert _whole_tables(_plans(filled, OPERATIONS[name])) == []


@pytest.mark.parametrize("name", ["list", "list by activity", "list in scope", "list since", "get messages"])
def test_no_list_is_sorted(filled: Path, name: str) -> None:
    """An index gives the order, so that a page costs a page."""
    assert [plan for plan in _plans(filled, OPERATIONS[name]) if "TEMP B-TREE FOR ORDER BY" in plan] == []


def test_an_append_is_a_few_statements(filled: Path) -> None:
    """However many messages the session has."""
    few = _statements(filled, lambda store: store.messages.append_message("s7", "user", "x"))
    with open_store(filled) as store:
        store.messages.append_messages("s7", [{"role": "user", "content": "x"}] * 3000)
    assert len(_statements(filled, lambda store: store.messages.append_message("s7", "user", "x"))) == len(few) <= 3


def _steps(path: Path, do: Callable[[SessionStore], Any]) -> int:
    """How many steps of SQLite's machine opening a store and doing something takes."""
    count = [0]

    def step() -> int:
        count[0] += 1
        return 0

    with _traced(lambda connection: connection.set_progress_handler(step, 1)), open_store(path) as store:
        do(store)
    return count[0]


def _list(**filters: Any) -> Callable[[SessionStore], Any]:
    """A list of the home's own user, by activity, as the command prints it."""
    return lambda store: store.scoped(Scope.of(None)).listing.list_sessions_rich(order_by_last_active=True, **filters)


LISTS = {
    "of all users": lambda store: store.listing.list_sessions_rich(),
    "of all users by activity": lambda store: store.listing.list_sessions_rich(order_by_last_active=True),
    "by start": lambda store: store.scoped(Scope.of(None)).listing.list_sessions_rich(),
    "by activity": _list(),
    "without some sources": _list(exclude_sources=["cron", "tool"]),
    "of a common source": _list(source="cli"),
    "of two sources": _list(source=["cli", "rare"]),
    "of a rare source": _list(source="rare"),
    "of no source": _list(source=["none", "nothing"]),
    "of a common project": _list(projects=["often"]),
    "of a rare project": _list(projects=["seldom"]),
    "since always": _list(since=0.0),
    "since lately": _list(since=1e12),
    "until once": _list(until=25 * 3600.0),
    "from a start on": _list(started_after=100.0),
    "with messages": _list(min_message_count=0, max_messages=5),
}


def test_opening_costs_the_same_at_any_size(tmp_path: Path) -> None:
    """And so do an append, every list of twenty, a title and a prune that finds nothing; sessions are an hour apart."""
    operations: dict[str, Callable[[SessionStore], Any]] = {
        "open": lambda store: None,
        "append": lambda store: store.messages.append_message("s1", "user", "x"),
        "head": lambda store: store.feed.head(),
        "by title": lambda store: store.scoped(Scope.of(None)).titles.resolve_session_by_title("7 is the title"),
        "next title": lambda store: store.scoped(Scope.of(None)).titles.get_next_title_in_lineage("Another"),
        "delete": lambda store: store.deletion.delete_session("s9"),
        "prune": lambda store: store.deletion.list_prune_candidates(time.time() / 86_400 - 0.001),
        **{f"list {name}": do for name, do in LISTS.items()},
    }
    costs: dict[str, list[int]] = {name: [] for name in operations}
    for size in (250, 1500):
        path = tmp_path / f"{size}.db"
        with open_store(path) as store:
            exported: list[dict[str, Any]] = [
                {
                    "id": f"s{number}",
                    "source": "rare" if number == 3 else "cli",
                    "project": "seldom" if number == 4 else "often",
                    "title": f"{number} is the title",
                    "started_at": number * 3600.0,
                    "ended_at": number * 3600.0 + 1,
                    "messages": [],
                }
                for number in range(size)
            ]
            _hurry(store)
            store.transfer.import_sessions(exported)
            store.messages.append_messages("s1", [{"role": "user", "content": "x" * 200}] * size)
        for name, do in operations.items():
            costs[name].append(_steps(path, do))
    for name, (small, large) in costs.items():
        assert large <= small * 1.3 + 20, (name, small, large)
