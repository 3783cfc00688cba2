"""The feed of items, in the form of the feed of messages, so that the same index code follows both.

To an index, every item is a session of its own with one message: its current version. The namespace takes the place of
the project, so that a search can be limited to namespaces.
"""

from collections.abc import Collection, Sequence
from typing import Any

from memoranda.memory.record.feed import MAX_CHARACTERS, Feed, FeedChange, FeedMessage, FeedSession, Head, MessageBatch
from memoranda.memory.record.item_rows import searchable_text
from memoranda.memory.record.message_rows import decode_json
from memoranda.storage.engine import FeedTable
from memoranda.storage.position import Position
from memoranda.storage.sqlite.stored_texts import readable_rows

SOURCE = "item"
_COLUMNS = "items.id, items.item_id, items.key, items.value, items.indexed, items.updated_at"
_SEARCHABLE = "items.current = 1"
_BATCH_SIZE = 500
_FEEDS = (FeedTable("memory_items", "id"), FeedTable("item_changes", "seq"))


class ItemFeed(Feed):
    """Reads for the index of items; they cover all users, so a store for one user refuses them."""

    def head(self) -> Head:
        return Head(*self._engine.wait_for_feed(_FEEDS))

    def messages_after(self, position: Position, limit: int) -> MessageBatch:
        """The next items after a position, in order: at least one if there is any, fewer if they are long."""
        self._require_everyone()
        condition, values = self._dialect.after("items.id", position)
        found: list[FeedMessage] = []
        room = MAX_CHARACTERS
        with self._engine.reading() as connection:
            rows = readable_rows(
                connection,
                f"SELECT {self._dialect.position_columns('items.id')}, {_COLUMNS} FROM memory_items AS items"
                f" WHERE {_SEARCHABLE} AND {condition}"
                f" ORDER BY {self._dialect.position_order('items.id')} LIMIT ?",
                (*values, limit),
            )
            for transaction, number, *row in rows:
                found.append(_as_message(row))
                position = Position(transaction, number)
                room -= len(row[3] or "")
                if room <= 0:
                    break
        return MessageBatch(found, position)

    def messages_from(
        self, session_id: str, first_id: int, limit: int = 2**62, *, until: Position | None = None
    ) -> list[FeedMessage]:
        """The current version of an item, if its id is not below `first_id`; with `until`, only up to that position."""
        condition, values = ("1 = 1", ()) if until is None else self._dialect.up_to("items.id", until)
        return self._messages(
            f"items.item_id = ? AND items.id >= ? AND {condition} ORDER BY items.id LIMIT ?",
            (session_id, first_id, *values, limit),
        )

    def sample_messages(self, first_id: int, limit: int, *, until: Position) -> list[FeedMessage]:
        """A few items from an id on, up to a position, for checking an index."""
        condition, values = self._dialect.up_to("items.id", until)
        return self._messages(f"items.id >= ? AND {condition} ORDER BY items.id LIMIT ?", (first_id, *values, limit))

    def messages_by_id(self, ids: Collection[int]) -> dict[int, FeedMessage]:
        """The items with these ids that can be found."""
        numbers, found = list(ids), dict[int, FeedMessage]()
        for start in range(0, len(numbers), _BATCH_SIZE):
            condition = self._dialect.one_of("items.id", numbers[start : start + _BATCH_SIZE])
            found |= {message.id: message for message in self._messages(*condition)}
        return found

    def messages_like(self, patterns: Sequence[str], start: Position, limit: int) -> list[FeedMessage]:
        """The newest items after a position whose key or value matches any of the LIKE patterns."""
        either = " OR ".join(self._dialect.like(f"items.{column}") for column in ("value", "key") for _ in patterns)
        condition, values = self._dialect.after("items.id", start)
        return self._messages(
            f"{condition} AND ({either} OR {self._dialect.contains_nul('items.key')}) ORDER BY items.id DESC LIMIT ?",
            (*values, *list(patterns) * 2, limit),
        )

    def messages_beyond_ascii(self, start: Position, limit: int) -> list[FeedMessage]:
        """The newest items after a position whose key or value has letters outside ASCII."""
        condition, values = self._dialect.after("items.id", start)
        either = " OR ".join(self._dialect.not_ascii(f"items.{column}") for column in ("value", "key"))
        return self._messages(f"{condition} AND ({either}) ORDER BY items.id DESC LIMIT ?", (*values, limit))

    def changes_after(self, position: Position, limit: int) -> list[FeedChange]:
        """The next items that were replaced or removed, in order."""
        self._require_everyone()
        condition, values = self._dialect.after("seq", position)
        with self._engine.reading() as connection:
            rows = connection.execute(
                f"SELECT {self._dialect.position_columns('seq')}, item_id FROM item_changes"
                f" WHERE {condition} ORDER BY {self._dialect.position_order('seq')} LIMIT ?",
                (*values, limit),
            )
            return [FeedChange(Position(transaction, number), item_id, 0) for transaction, number, item_id in rows]

    def feed_sessions(self, ids: Collection[str]) -> dict[str, FeedSession]:
        """The items with these ids that exist, as sessions."""
        self._require_everyone()
        names, found = list(ids), dict[str, FeedSession]()
        for start in range(0, len(names), _BATCH_SIZE):
            condition, values = self._dialect.one_of("items.item_id", names[start : start + _BATCH_SIZE])
            with self._engine.reading() as connection:
                rows = connection.execute(
                    "SELECT items.item_id, items.user_id, items.created_at, items.namespace FROM memory_items AS items"
                    f" WHERE {_SEARCHABLE} AND {condition}",
                    values,
                )
                found |= {
                    item_id: FeedSession(item_id, item_id, user_id, SOURCE, None, created_at, 0, namespace)
                    for item_id, user_id, created_at, namespace in rows
                }
        return found

    def _describe(self, condition: str, values: Sequence[Any]) -> str:
        self._require_everyone()
        with self._engine.reading() as connection:
            row = connection.execute(
                f"SELECT id, updated_at, item_id FROM memory_items AS items WHERE {condition}", values
            ).fetchone()
        return " ".join(map(str, row)) if row else ""

    def _messages(self, condition: str, values: Sequence[Any]) -> list[FeedMessage]:
        self._require_everyone()
        with self._engine.reading() as connection:
            rows = readable_rows(
                connection, f"SELECT {_COLUMNS} FROM memory_items AS items WHERE {_SEARCHABLE} AND {condition}", values
            )
            return [_as_message(row) for row in rows]


def _as_message(row: Sequence[Any]) -> FeedMessage:
    number, item_id, key, value, indexed, updated_at = row
    text = searchable_text(key, decode_json(value or "null"), indexed)
    return FeedMessage(number, item_id, "user", text, None, None, updated_at)
