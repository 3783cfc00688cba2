"""Links between sessions that should not be there, made by another program: nothing hangs, nothing is lost."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from random import Random

import pytest

from memoranda.errors import SessionError
from memoranda.memory.record.store import SessionStore
from tests.contracts.store.assertions import chain

pytestmark = pytest.mark.slow

CIRCLES = {
    "itself": "UPDATE sessions SET parent_session_id = id, successor_id = id, relation = 'compression'",
    "one another": "UPDATE sessions SET parent_session_id = CASE id WHEN 'a' THEN 'c' WHEN 'b' THEN 'a' ELSE 'b' END,"
    " successor_id = CASE id WHEN 'a' THEN 'b' WHEN 'b' THEN 'c' ELSE 'a' END, relation = 'compression'",
    "helpers": "UPDATE sessions SET parent_session_id = CASE id WHEN 'a' THEN 'c' WHEN 'b' THEN 'a' ELSE 'b' END,"
    " successor_id = NULL, relation = 'delegation'",
    "missing": "UPDATE sessions SET successor_id = 'missing', conversation_id = 'missing'",
    "no conversation": "UPDATE sessions SET conversation_id = NULL, successor_id = NULL, last_active = NULL",
    "one conversation without order": "UPDATE sessions SET conversation_id = 'a', successor_id = NULL",
    "two successors": "UPDATE sessions SET conversation_id = 'a', successor_id = 'c'",
}


@pytest.mark.parametrize("damage", CIRCLES.values(), ids=CIRCLES)
def test_no_read_or_delete_hangs_on_odd_links(store: SessionStore, path: Path, damage: str) -> None:
    """Every walk along links ends, whatever they are, and messages are still read."""
    chain(store, "a", "b", "c")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(damage)
        connection.commit()
    for name in "abc":
        assert [row["content"] for row in store.messages.get_messages(name)] == [name]
        assert len(store.lineage.get_compression_lineage(name)) <= 3
        assert store.lineage.get_compression_tip(name) in (None, *"abc")
        assert 1 <= len(store.lineage.get_ancestors(name)) <= 3
        assert 1 <= len(store.lineage.get_descendants(name)) <= 3
        assert store.lineage.get_conversation_root(name) in tuple("abc")
        said = [row["content"] for row in store.messages.get_messages_as_conversation(name, include_ancestors=True)]
        assert name in said and len(said) == len(set(said))
        place, window = (
            store.conversations.conversation_of(name),
            store.conversations.window_around(store.messages.get_messages(name)[0]["id"], 5),
        )
        assert place is None or name in place.sessions
        assert window is None or [message.content for message in window.messages] == ["a", "b", "c"]
    for order in (False, True):
        assert len(store.listing.list_sessions_rich(order_by_last_active=order, include_children=True)) <= 3
    assert len(store.deletion.list_prune_candidates(-1)) <= 3
    assert len(store.transfer.export_all()) == 3
    with suppress(SessionError):
        store.titles.set_session_title("a", "T")
    store.sessions.create_session("d", "cli", parent_session_id="a", relation="compression")
    for name in "abcd":
        store.deletion.delete_session(name)
    assert store.listing.session_count() == 0


@pytest.mark.parametrize("seed", range(8))
def test_random_families_stay_consistent(store: SessionStore, seed: int) -> None:
    """Made, continued, branched and deleted at random: links, conversations, lists and counts always agree."""
    chance = Random(seed)
    names: list[str] = []
    for number in range(40):
        if names and chance.random() < 0.35:
            gone = chance.choice(names)
            store.deletion.delete_session(gone)
        else:
            parent = chance.choice(names) if names and chance.random() < 0.8 else None
            kind = chance.choice(["compression", "branch", "delegation"]) if parent else None
            store.sessions.create_session(f"s{number}", "cli", parent_session_id=parent, relation=kind)
            store.messages.append_message(f"s{number}", "user", f"in s{number}")
        names = [row["id"] for row in store.transfer.export_all()]
        _consistent(store, names)


def _consistent(store: SessionStore, names: list[str]) -> None:
    rows = {name: store.sessions.get_session(name) or {} for name in names}
    conversations: dict[str, list[str]] = {}
    for name, row in rows.items():
        assert row["parent_session_id"] is None or row["parent_session_id"] in rows
        assert (row["relation"] is None) == (row["parent_session_id"] is None)
        assert row["successor_id"] is None or rows[row["successor_id"]]["parent_session_id"] == name
        assert row["conversation_id"] in rows
        assert row["message_count"] == len(store.messages.get_messages(name)) == 1
        conversations.setdefault(row["conversation_id"], []).append(name)
    for root, members in conversations.items():
        order = store.lineage.get_compression_lineage(root)
        assert sorted(order) == sorted(members)
        assert order[0] == root
        assert {store.lineage.get_compression_tip(member) for member in members} == {order[-1]}
    shown = [row["id"] for row in store.listing.list_sessions_rich(limit=1000, include_children=True)]
    tips = [store.lineage.get_compression_tip(root) for root in conversations]
    assert sorted(shown) == sorted(str(tip) for tip in tips)
    active = store.listing.list_sessions_rich(limit=1000, include_children=True, order_by_last_active=True)
    assert sorted(row["id"] for row in active) == sorted(shown)
    assert sum(row["message_count"] for row in active) == len(names)
