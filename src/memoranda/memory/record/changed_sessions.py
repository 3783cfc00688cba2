"""Which sessions have changed, and whose they are: for a node that has an index file for each of its users."""

from typing import NamedTuple

from memoranda.memory.record.feed import Feed
from memoranda.storage.engine import FeedTable
from memoranda.storage.position import Position

_FEEDS = (FeedTable("changes", "seq"), FeedTable("item_changes", "seq"))


class ChangeHeads(NamedTuple):
    """The positions of the last change of a session and the last change of an item."""

    session: Position
    item: Position


class ChangedSession(NamedTuple):
    """A row of the feed of changes, with the user who has the session now."""

    position: Position
    session_id: str
    user: str | None
    exists: bool
    was_deleted: bool
    """It was deleted, so another user may have had it; its id may have been used again since."""


class ChangedSessions(Feed):
    """The changes of all users, with their users, for a store that sees everyone."""

    def heads(self) -> ChangeHeads:
        """How far the changes can be read now: one statement, however many users there are."""
        self._require_everyone()
        return ChangeHeads(*self._engine.wait_for_feed(_FEEDS))

    def changed_after(self, position: Position, limit: int) -> list[ChangedSession]:
        """The next changes after a position, in order."""
        self._require_everyone()
        condition, values = self._dialect.after("c.seq", position)
        with self._engine.reading() as connection:
            rows = connection.execute(
                f"SELECT {self._dialect.position_columns('c.seq')}, c.session_id, s.user_id, s.id IS NOT NULL,"
                " s.id IS NULL OR d.id IS NOT NULL FROM changes c"
                " LEFT JOIN sessions s ON s.id = c.session_id LEFT JOIN deleted_sessions d ON d.id = c.session_id"
                f" WHERE {condition} ORDER BY {self._dialect.position_order('c.seq')} LIMIT ?",
                (*values, limit),
            )
            return [
                ChangedSession(Position(transaction, number), session_id, user, bool(exists), bool(was_deleted))
                for transaction, number, session_id, user, exists, was_deleted in rows
            ]
