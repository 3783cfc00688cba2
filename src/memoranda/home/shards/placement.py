"""Which of the 64 shards a user belongs to: a hash that Python and the server compute alike, and that never changes."""

from hashlib import md5

from memoranda.storage.postgres.connection import escape

SHARDS = 64
MAX_STORES = 1024


def shard_of(user: str | None) -> int:
    """The shard of a user; None is the owner of the home."""
    digest = md5(escape(user or "").encode(), usedforsecurity=False).hexdigest()
    return int(digest[:8], 16) % SHARDS


def shard_expression(user: str) -> str:
    """The same in SQL, for an expression of the user."""
    return f"(('x' || substr(md5({user}), 1, 8))::bit(32)::bigint % {SHARDS})"
