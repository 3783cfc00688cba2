"""A search over a record on a server takes a few round trips, and reads the same as one over a file."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

import memoranda
from memoranda.home.session_db import SessionDB
from memoranda.memory.record import session_list
from memoranda.memory.record.conversations import Conversation, EndsShape, ReadAhead, WindowShape
from memoranda.memory.record.scope import Scope
from memoranda.search.recent_work import recent_conversations
from memoranda.search.tool import SessionSearchTool
from memoranda.storage.position import START
from tests.storage.postgres.proxy import Proxy
from tests.storage.postgres.servers import Server

_ROLES = ("user", "assistant")
_SEARCHES: list[dict[str, object]] = [
    {"query": "heron port"},
    {"query": "which port did the heron cluster have?"},
    {"query": "what did Ana say about the heron port?"},
    {"query": "heron port", "sort": "newest"},
    {"query": '"the heron"'},
]
_ROUND_TRIPS: list[dict[str, object]] = [
    *_SEARCHES,
    {"query": "heron.port_of"},
    {"query": "heron port", "source": "cli"},
    {"query": "heron port", "project": "elsewhere"},
    {"query": "heron port", "role_filter": "assistant", "since": "2000-01-01"},
    {"query": "zebra"},
    {"query": "heron port", "source": "nowhere"},
    {"query": "heron port", "since": "2100-01-01"},
    {"query": "heron port", "cursor": "3", "why": True},
]
# Message 68 is in s5, whose branch is s5b; 101 is in the middle of s7.
_WITHOUT_QUERY: list[dict[str, object]] = [
    {"limit": 10},
    {"limit": 10, "source": "cli"},
    {"limit": 10, "project": "harbour"},
    {"limit": 10, "project": "elsewhere"},
    {"limit": 10, "since": "2000-01-01"},
    {"limit": 10, "source": "cli", "project": "harbour", "since": "2000-01-01"},
    {"session_id": "s7"},
    {"session_id": "s5b"},
    {"session_id": "s7", "around_message_id": 101},
    {"session_id": "s7", "around_message_id": 101, "window": 3},
    {"session_id": "s5b", "around_message_id": 68},
    {"session_id": "s7", "around_message_id": 68},
    {"session_id": "nowhere", "around_message_id": 68},
    {"session_id": "nowhere"},
]


@pytest.fixture
def proxy(postgres_server: Server) -> Iterator[Proxy]:
    proxy = Proxy(postgres_server.directory)
    yield proxy
    proxy.close()


def _fill(db: SessionDB) -> None:
    """Twelve conversations about the same thing, some of them long, and one in two sessions."""
    for number in range(12):
        name = f"s{number}"
        user, project = "ann" if number % 3 else None, "harbour" if number % 2 else None
        db.create_session(name, "cli", user_id=user, project=project, started_at=1e9 + number)
        messages = [
            {"role": _ROLES[step % 2], "content": f"Step {step} of {number}.", "timestamp": 1e9 + 100 * number + step}
            for step in range(7 * (number % 4) + 1)
        ]
        port = f"The heron cluster has port 80{number} now." if number % 2 else f"Ana: the heron port is 80{number}"
        messages.insert(len(messages) // 2, {"role": "user", "content": port, "timestamp": 1e9 + 100 * number})
        messages.append({"role": "tool", "content": f"heron {number} ok", "timestamp": 1e9 + 100 * number + 90})
        messages.append({"role": "assistant", "content": f"Bob: the port of heron is 80{number}", "timestamp": 1e9})
        db.append_messages(name, messages)
    db.branch_session("s5", "s5b")
    with db.engine.writing() as connection:
        # It would start now, and the records that are compared are not filled at the same time.
        connection.execute("UPDATE sessions SET started_at = 2e9 WHERE id = 's5b'")
    db.append_message("s5b", "user", "Ana: the heron port is 99 in the branch", timestamp=2e9)
    for name in ("s4", "s7", "s11"):
        db.save_conversation_todos(name, json.dumps([{"content": f"Measure the heron of {name}", "status": "open"}]))
    db.index.catch_up()


@pytest.fixture
def db(postgres_server: Server, postgres_url: str, proxy: Proxy, tmp_path: Path) -> Iterator[SessionDB]:
    """A record that its node reaches through the proxy."""
    schema = postgres_url.rpartition("=")[2]
    old, new = (quote(str(path), safe="") for path in (postgres_server.directory, proxy.directory))
    with SessionDB(
        f"{postgres_url.replace(old, new)}&application_name={schema}", index_directory=tmp_path / "node"
    ) as opened:
        _fill(opened)
        yield opened


def _count_trips(proxy: Proxy, call: Callable[[], object], limit: int) -> int:
    """The round trips of a call, at its best: a thread may follow the record, and other tests may write."""
    call()
    trips = []
    for _ in range(30):
        proxy.round_trips = -1
        call()
        trips.append(proxy.round_trips + 1)
        if trips[-1] <= limit:
            break
    return min(trips)


@pytest.mark.smoke
def test_a_search_takes_a_few_round_trips(db: SessionDB, proxy: Proxy) -> None:
    """However many results it shows: one for what it asks first, and one for all of its evidence."""
    tool = SessionSearchTool(lambda: db)
    arguments = {"query": "heron port", "limit": 10}
    assert tool.call(arguments)["count"] == 10
    assert _count_trips(proxy, lambda: tool.call(arguments), 3) <= 3


@pytest.mark.parametrize("current", [None, "s4"])
@pytest.mark.parametrize("arguments", _ROUND_TRIPS, ids=str)
def test_no_kind_of_search_takes_more_than_four_round_trips(
    db: SessionDB, proxy: Proxy, arguments: dict[str, object], current: str | None
) -> None:
    """Whatever is asked, with and without a conversation in progress."""
    tool = SessionSearchTool(lambda: db.scoped(Scope.of("ann")), current_session_id=current)
    assert tool.call(arguments)["success"]
    assert _count_trips(proxy, lambda: tool.call({**arguments, "limit": 10}), 4) <= 4


@pytest.mark.parametrize("current", [None, "s4"])
def test_without_a_query_as_many_round_trips_are_enough(
    db: SessionDB, proxy: Proxy, current: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a list that says how each conversation ended, for reading and for scrolling; a list with filters takes six.

    It reads which projects there are, and whether few conversations pass any of the filters.
    """
    monkeypatch.setattr(session_list, "_FEW_SESSIONS", 2)
    tool = SessionSearchTool(lambda: db.scoped(Scope.of("ann")), current_session_id=current)
    for each in _WITHOUT_QUERY:
        limit = 6 if {"source", "project", "since"} & each.keys() else 4
        assert _count_trips(proxy, lambda: tool.call(each), limit) <= limit, each  # noqa: B023


def test_what_was_going_on_takes_four_round_trips(db: SessionDB, proxy: Proxy) -> None:
    """However many conversations there are, each with its last question and its open tasks."""
    found = {each.session_id: each.open_tasks for each in recent_conversations(db, limit=12)}
    assert len(found) == 12
    assert found["s7"] == ("Measure the heron of s7",)
    assert _count_trips(proxy, lambda: recent_conversations(db, limit=12), 4) <= 4


def test_a_list_of_conversations_takes_two_round_trips(db: SessionDB, proxy: Proxy) -> None:
    """However many it lists, each with its first words and the counts of all its sessions."""
    assert len(db.list_sessions_rich(limit=12)) == 12
    assert _count_trips(proxy, lambda: db.list_sessions_rich(limit=12), 2) <= 2


def test_a_search_for_messages_takes_a_few_round_trips(db: SessionDB, proxy: Proxy) -> None:
    """Each of them comes with its neighbours and facts about its session."""
    assert len(db.search_messages("heron", limit=20)) == 20
    assert _count_trips(proxy, lambda: db.search_messages("heron", limit=20), 3) <= 3


def test_the_answers_are_those_of_a_file(db: SessionDB, tmp_path: Path) -> None:
    """Whole answers, for everyone and for one user, with and without messages that the reader has in view."""
    with SessionDB(tmp_path / "state.db") as file:
        _fill(file)
        for scope in (None, Scope.of("ann")):
            views = [db, file] if scope is None else [db.scoped(scope), file.scoped(scope)]
            for arguments in (*({**search, "limit": 9} for search in _SEARCHES), *_WITHOUT_QUERY):
                for current in (None, "s7"):
                    answers = [
                        SessionSearchTool(lambda: view, current_session_id=current).call(arguments)  # noqa: B023
                        for view in views
                    ]
                    assert answers[0].get("results") or "query" not in arguments, arguments
                    assert answers[0] == answers[1], arguments
            found = [view.search_messages("heron port", limit=30) for view in views]
            assert found[0] == found[1] != []


def test_what_is_read_ahead_is_what_would_be_read(db: SessionDB) -> None:
    """Windows, ends, messages and facts, for one user and for messages that do not exist in the scope."""
    store = db.scoped(Scope.of("ann")).conversations
    everything = [message.id for message in db.feed.messages_after(START, 1000).messages]
    ids, some = [*everything[::3], 10**6], frozenset(everything[::5])
    shapes = (WindowShape(2, counted=False), WindowShape(3, _ROLES, some))
    with store.one_view():
        ahead = ReadAhead(store)
        ahead.read_windows(ids, shapes, EndsShape(2, _ROLES, some), messages=ids)
        ahead.read_facts([f"s{number}" for number in range(13)])
        for number in ids:
            for shape in shapes:
                options = {"roles": shape.roles, "without": shape.without, "counted": shape.counted}
                expected = store.window_around(number, shape.size, **options)  # type: ignore[arg-type]
                found = ahead._windows[number, shape]
                assert (found is None) == (expected is None)
                if found is None or expected is None:
                    continue
                assert found.messages == expected.messages
                assert (found.before, found.after) == (expected.before, expected.after)
                conversation = Conversation(found.conversation.conversation_id, found.conversation.sessions)
                assert sorted(conversation.sessions) == sorted(expected.conversation.sessions)
                assert ahead.messages_by_id(conversation, ids) == store.messages_by_id(conversation, ids)
                for outside in ((number, number), (10**6, 0)):
                    ends = {"outside": outside, "roles": _ROLES, "without": some}
                    assert ahead.ends_of(conversation, 2, **ends) == store.ends_of(conversation, 2, **ends)  # type: ignore[arg-type]
        assert [ahead.session_facts(f"s{n}") for n in range(13)] == [store.session_facts(f"s{n}") for n in range(13)]


def test_a_view_replaces_a_connection_that_was_lost_while_idle(db: SessionDB, proxy: Proxy) -> None:
    """Nothing was read before, so the first statement is sent again over another connection."""
    db.get_session("s1")
    proxy.lose = "answer"
    assert db.get_session("s1") is not None
    assert not proxy.lose


@pytest.mark.slow
def test_a_search_finds_what_was_committed_while_a_transaction_of_another_program_is_open(
    own_postgres_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Followers wait for that transaction; a search reads from the record what they cannot read yet, items included."""
    with own_postgres_server.schema() as url, psycopg.connect(own_postgres_server.conninfo("memoranda")) as other:
        monkeypatch.setenv("MEMORANDA_STORE", url)
        with memoranda.open(tmp_path / "home") as memory:
            memory.sessions.create_session("before", "cli")
            memory.sessions.append_message("before", "user", "The heron cluster has port 8001.")
            memory.items.put(("ports",), "first", {"text": "heron 8001"})
            assert _found(memory) == (["before"], ["first"])
            other.execute("SELECT pg_current_xact_id()")
            memory.sessions.create_session("during", "cli")
            memory.sessions.append_message("during", "user", "The heron cluster has port 8002.")
            memory.items.put(("ports",), "second", {"text": "heron 8002"})
            assert _found(memory) == (["before", "during"], ["first", "second"])
            memory.sessions.delete_session("before")
            memory.items.put(("ports",), "first", {"text": "moved"})
            assert _found(memory) == (["during"], ["second"])
            other.rollback()
            assert _found(memory) == (["during"], ["second"])


def _found(memory: memoranda.Memory) -> tuple[list[str], list[str]]:
    sessions = [result["session_id"] for result in memory.search("heron port")["results"]]
    return sorted(sessions), sorted(found.item.key for found in memory.items.search(("ports",), "heron 8001 8002"))
