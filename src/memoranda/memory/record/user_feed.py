"""The feed of one user of a server, for an index of that user alone."""

import hashlib

from memoranda.memory.record.feed import Feed, Head
from memoranda.memory.record.scope import Scope
from memoranda.storage.engine import Condition, Engine, FeedTable
from memoranda.storage.position import Position


class UserFeed(Feed):
    """Has the messages of one user, by an index of the server, so that it costs as much as that user has recorded.

    Its changes have no deleted sessions, because nothing says whose they were. The position of the last change is that
    of all users: when it moves, a follower compares the sessions.
    """

    lists_deletions = False

    def __init__(self, engine: Engine, user: str | None) -> None:
        super().__init__(engine, Scope.of(user), None)
        own = Condition("user_id = ?", (user or "",))
        self._feeds = (FeedTable("messages", "id", own), FeedTable("changes", "seq"))
        self._owner = user_name(user)

    def store_id(self) -> str:
        """The id of the store and the user: an index of another user is never taken for this one."""
        return f"{super().store_id()} {self._owner}"

    def head(self) -> Head:
        return Head(*self._engine.wait_for_feed(self._feeds))

    def count_up_to(self, position: Position) -> int:
        condition, values = self._dialect.up_to("id", position)
        with self._engine.reading() as connection:
            row = connection.execute(
                f"SELECT count(*) FROM messages WHERE user_id = ? AND {condition}", (self._scope.user or "", *values)
            ).fetchone()
        return int(row[0])

    def _require_everyone(self) -> None:
        """Nothing to refuse: every read is limited to the user."""


def user_name(user: str | None) -> str:
    """The name of a user in files: no path can be made of it, and it does not tell who it is."""
    return hashlib.sha256(f"u:{user or ''}".encode("utf-8", "surrogatepass")).hexdigest()[:40]
