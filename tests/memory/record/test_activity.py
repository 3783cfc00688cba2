"""The order of last activity, which lists take from an index that only knows the hour."""

import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.memory.record.schema import hour_of
from memoranda.memory.record.store import SessionStore, open_store
from tests.examples import examples

pytestmark = pytest.mark.slow

SESSIONS = ["a", "b", "c"]
# Moments in a few hours, some of them close together, on both sides of the beginning of all time.
SECONDS = st.sampled_from([0.0, 0.5, 3599.5])
MOMENTS = st.builds(lambda hour, second: hour * 3600.0 + second, st.integers(-2, 2), SECONDS)
SAYING = st.tuples(st.just("say"), st.sampled_from(SESSIONS), st.lists(MOMENTS, min_size=1, max_size=3))
NOTHING: list[float] = []
REWINDING = st.tuples(st.just("rewind"), st.sampled_from(SESSIONS), st.just(NOTHING))


def _do(store: SessionStore, action: str, session_id: str, timestamps: list[float]) -> None:
    if action == "say":
        messages = [{"role": "user", "content": "x", "timestamp": timestamp} for timestamp in timestamps]
        store.messages.append_messages(session_id, messages)
    elif said := store.messages.get_messages(session_id):
        store.edits.rewind_to_message(session_id, said[-1]["id"])


@given(st.lists(st.one_of(SAYING, REWINDING), max_size=12))
@settings(max_examples=examples(60), deadline=None)
def test_a_list_by_activity_is_in_its_order_to_the_second(actions: list[tuple[str, str, list[float]]]) -> None:
    """This is true for any order of recording and after rewinds; the stored hour is always correct."""
    with TemporaryDirectory() as folder, open_store(Path(folder) / "state.db") as store:
        for number, session_id in enumerate(SESSIONS):
            store.sessions.create_session(session_id, "cli", started_at=float(number))
        for action in actions:
            _do(store, *action)
        rows = store.listing.list_sessions_rich(order_by_last_active=True)
        assert rows == sorted(rows, key=lambda row: (row["last_active"], row["id"]), reverse=True)
        assert [row["active_hour"] for row in rows] == [hour_of(row["last_active"]) for row in rows]


@pytest.mark.parametrize("timestamp", ["'soon'", "9e999", "-1e300", "x'00'", "NULL"])
def test_a_store_whose_timestamps_are_none_is_opened_and_counted(tmp_path: Path, timestamp: str) -> None:
    """Another program may have written anything there; the other sessions are listed in their order."""
    path = tmp_path / "state.db"
    with open_store(path) as store:
        for number, session_id in enumerate(SESSIONS):
            store.sessions.create_session(session_id, "cli", started_at=number * 5000.0)
    with closing(sqlite3.connect(path)) as connection:
        started = "started_at" if timestamp == "NULL" else timestamp
        connection.execute(f"UPDATE sessions SET last_active = {timestamp}, started_at = {started} WHERE id = 'b'")
        connection.commit()
    with open_store(path) as store:
        store.maintenance.recount_sessions(SESSIONS)
        listed = [row["id"] for row in store.listing.list_sessions_rich(order_by_last_active=True)]
        assert [each for each in listed if each != "b"] == ["c", "a"]
        assert store.messages.append_message("b", "user", "x", timestamp=7200.0)
        assert store.sessions.get_session("b") is not None
