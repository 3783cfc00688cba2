"""Contract of items: versions, conditional writes, expiry, namespaces, filters, history, export, and users."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from memoranda.errors import ItemConflictError, SessionError
from memoranda.memory.record.items import MAX_VERSIONS, Items
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from memoranda.storage.position import START
from memoranda.types import DeleteItem, Item, PutItem

NOTES = ("notes", "work")
_Row = TypeVar("_Row")


def own(store: SessionStore, user: str | None = None) -> Items:
    """The items of one user."""
    return store.scoped(Scope.of(user)).items


def _appearing(read: Callable[[], list[_Row]]) -> list[_Row]:
    """What a feed shows; on a server, a row may appear a moment later, while unrelated transactions are open."""
    deadline = time.monotonic() + 10.0
    while not (rows := read()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return rows


def _keys(items: list[Item]) -> list[str]:
    return [item.key for item in items]


class ItemContract:
    def test_a_put_is_read_back(self, store: SessionStore) -> None:
        """With its value unchanged, whatever JSON and whatever characters it has."""
        items = own(store)
        value = {"text": "naïve 日本語 \U0001f600", "n": [1, 2.5, True, None], "nul": "a\0b", "half": "\ud83d"}
        item = items.put(("ns", "ü.\0"), "key \U0001f600", value)
        assert items.get(("ns", "ü.\0"), "key \U0001f600") == item
        assert (item.value, item.version, item.expires_at) == (value, 1, None)
        assert items.put(NOTES, "plain", "text").value == "text"
        assert items.get(NOTES, "other") is None

    def test_every_write_is_a_version(self, store: SessionStore) -> None:
        """The history has them in order, with deletions, and any value can be restored."""
        items = own(store)
        first = items.put(NOTES, "k", {"n": 1})
        second = items.put(NOTES, "k", {"n": 2})
        assert (second.version, second.created_at) == (2, first.created_at)
        assert items.delete(NOTES, "k")
        assert not items.delete(NOTES, "k")
        assert items.get(NOTES, "k") is None
        assert items.restore(NOTES, "k", 1).value == {"n": 1}
        history = items.history(NOTES, "k")
        assert [(each.version, each.event, each.value) for each in history] == [
            (1, "add", {"n": 1}), (2, "update", {"n": 2}), (3, "delete", None), (4, "add", {"n": 1}),
        ]  # fmt: skip
        with pytest.raises(SessionError, match="no version 3"):
            items.restore(NOTES, "k", 3)

    def test_old_versions_are_removed(self, store: SessionStore) -> None:
        """Only so many are kept, however often an item is written."""
        items = own(store)
        items.write([PutItem(NOTES, "k", number) for number in range(MAX_VERSIONS + 5)])
        assert [each.version for each in items.history(NOTES, "k")] == list(range(6, MAX_VERSIONS + 6))

    def test_a_write_can_depend_on_the_version(self, store: SessionStore) -> None:
        """0 means that there must be no item; nothing of a refused batch is stored."""
        items = own(store)
        assert items.put(NOTES, "k", 1, version=0).version == 1
        for expected in (0, 2):
            with pytest.raises(ItemConflictError) as caught:
                items.put(NOTES, "k", 2, version=expected)
            assert caught.value.current == 1
        with pytest.raises(ItemConflictError):
            items.write([PutItem(NOTES, "new", 1), DeleteItem(NOTES, "k", version=7)])
        assert items.get(NOTES, "new") is None
        assert items.delete(NOTES, "k", version=1)
        assert items.put(NOTES, "k", 3, version=0).version == 3

    def test_an_expired_item_is_gone_at_once(self, store: SessionStore) -> None:
        """From reads, lists, namespaces and history; a read that refreshes it extends its life."""
        items = own(store)
        items.put(NOTES, "short", 1, ttl=0.01)
        items.put(NOTES, "kept", 1, ttl=1000)
        time.sleep(0.02)
        assert items.get(NOTES, "short") is None
        assert items.history(NOTES, "short") == []
        assert _keys(items.list_items()) == ["kept"]
        assert items.put(NOTES, "short", 2, version=0).version == 1
        assert [each.value for each in items.history(NOTES, "short")] == [2]
        before = items.put(("other",), "k", 1, ttl=0.2).expires_at
        time.sleep(0.05)
        refreshed = items.get(("other",), "k", refresh=True)
        assert refreshed is not None
        assert (refreshed.expires_at or 0) > (before or 0)
        read = items.get(("other",), "k")
        assert read is not None
        assert read.expires_at == refreshed.expires_at

    def test_maintenance_removes_what_has_expired(self, store: SessionStore) -> None:
        """With its history, and for all users."""
        own(store).put(NOTES, "a", 1, ttl=0.01)
        own(store, "ana").put(NOTES, "b", 1, ttl=0.01)
        own(store).put(NOTES, "c", 1)
        time.sleep(0.02)
        assert store.items.remove_expired() == 2
        assert store.items.remove_expired() == 0
        with store.engine.reading() as connection:
            assert connection.execute("SELECT key FROM memory_items").fetchall() == [("c",)]

    def test_namespaces_are_listed(self, store: SessionStore) -> None:
        """By prefix, by suffix, with any label in a place, and up to a depth."""
        items = own(store)
        for labels in (("a", "b", "c"), ("a", "b", "d"), ("a", "x"), ("ab",), ("z", "b")):
            items.put(labels, "k", 1)
        assert items.list_namespaces() == [("a", "b", "c"), ("a", "b", "d"), ("a", "x"), ("ab",), ("z", "b")]
        assert items.list_namespaces(prefix=("a",), max_depth=2) == [("a", "b"), ("a", "x")]
        assert items.list_namespaces(suffix=("b",)) == [("z", "b")]
        assert items.list_namespaces(prefix=("*", "b")) == [("a", "b", "c"), ("a", "b", "d"), ("z", "b")]
        assert items.list_namespaces(limit=2, offset=3) == [("ab",), ("z", "b")]
        items.delete(("ab",), "k")
        assert ("ab",) not in items.list_namespaces()

    def test_items_are_listed_with_filters(self, store: SessionStore) -> None:
        """The latest written first; a filter compares fields, also in nested objects."""
        items = own(store)
        for number in range(5):
            value = {"n": number, "kind": "odd" if number % 2 else "even", "in": {"deep": number}}
            items.put(("n", str(number)), f"k{number}", value)

        def found(**filters: Any) -> list[str]:
            return _keys(items.list_items(("n",), filters=filters))

        assert found() == ["k4", "k3", "k2", "k1", "k0"]
        assert found(kind="odd") == ["k3", "k1"]
        assert found(n={"$gte": 3}) == ["k4", "k3"]
        assert found(n={"$gt": 1, "$lt": 4}, kind={"$ne": "odd"}) == ["k2"]
        assert found(**{"in": {"deep": {"$lte": 0}}}) == ["k0"]
        assert found(n={"$eq": 2}) == ["k2"]
        assert found(n={"$gt": "text"}) == []
        assert _keys(items.list_items(("n",), limit=2, offset=1)) == ["k3", "k2"]
        assert _keys(items.list_items(("n", "3"))) == ["k3"]
        with pytest.raises(SessionError, match="operator"):
            found(n={"$regex": "."})

    def test_a_user_sees_no_other_users_items(self, store: SessionStore) -> None:
        """The same namespace and key of two users are two items."""
        ana, bo, owner = own(store, "ana"), own(store, "bo"), own(store)
        ana.put(NOTES, "k", "of ana")
        assert bo.get(NOTES, "k") is None
        assert owner.get(NOTES, "k") is None
        bo.put(NOTES, "k", "of bo", version=0)
        assert not owner.delete(NOTES, "k")
        assert (ana.list_items()[0].value, bo.list_items()[0].value) == ("of ana", "of bo")
        assert owner.list_namespaces() == []
        assert owner.history(NOTES, "k") == []
        bo.delete(NOTES, "k")
        assert ana.get(NOTES, "k") is not None
        with pytest.raises(SessionError, match="one user"):
            store.items.put(NOTES, "k", 1)

    def test_a_wrong_argument_is_refused(self, store: SessionStore) -> None:
        """Nothing is stored under a name that could not be found again."""
        items = own(store)
        wrong: list[tuple[Any, Any]] = [((), "k"), ("notes", "k"), (("",), "k"), ((1,), "k"), (NOTES, ""), (NOTES, 7)]
        for namespace, key in wrong:
            with pytest.raises(SessionError):
                items.put(namespace, key, 1)
        refused: list[dict[str, Any]] = [{"ttl": 0}, {"ttl": "1"}, {"version": -1}, {"index": "text"}]
        for options in refused:
            with pytest.raises(SessionError):
                items.put(NOTES, "k", 1, **options)
        with pytest.raises(SessionError):
            items.put(NOTES, "k", object())
        assert items.list_items() == []

    def test_an_export_is_imported_once(self, store: SessionStore, other: SessionStore) -> None:
        """With its history and times; a newer version of the other store becomes a version here."""
        own(store, "ana").put(NOTES, "k", {"n": 1}, index=["n"])
        own(store, "ana").put(NOTES, "k", {"n": 2}, ttl=1000)
        own(store).put(NOTES, "gone", 1)
        own(store).delete(NOTES, "gone")
        exported = list(store.item_transfer.iter_export())
        assert other.item_transfer.import_items(exported).imported == 2
        assert list(other.item_transfer.iter_export()) == exported
        assert other.item_transfer.import_items(exported).skipped == 2
        own(store, "ana").put(NOTES, "k", {"n": 3})
        report = other.item_transfer.import_items(store.item_transfer.iter_export())
        assert (report.updated, report.skipped, report.errors) == (1, 1, [])
        assert [each.value for each in own(other, "ana").history(NOTES, "k")] == [{"n": 1}, {"n": 2}, {"n": 3}]
        refused = other.scoped(Scope.of("bo")).item_transfer.import_items([*exported, {"item": {"key": 1}}, 7])
        assert [error["index"] for error in refused.errors] == [0, 2, 3]

    def test_the_feed_has_current_items_and_changes(self, store: SessionStore) -> None:
        """A new version is a new row; the item that it replaces is named as changed, also when it is deleted."""
        items, feed = own(store), store.item_feed
        items.put(NOTES, "k", {"text": "one"})
        (message,) = _appearing(lambda: feed.messages_after(START, 10).messages)
        position = feed.head().message
        assert (message.content, feed.changes_after(START, 10)) == ("k\ntext: one", [])
        items.put(NOTES, "k", {"text": "two"})
        (newer,) = _appearing(lambda: feed.messages_after(position, 10).messages)
        assert [change.session_id for change in feed.changes_after(START, 10)] == [message.session_id]
        assert (newer.content, newer.session_id) == ("k\ntext: two", message.session_id)
        assert feed.messages_by_id([message.id]) == {}
        items.delete(NOTES, "k")
        assert feed.feed_sessions([message.session_id]) == {}
        assert _appearing(lambda: feed.changes_after(START, 10)[1:])
