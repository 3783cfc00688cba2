"""Follows the links between sessions: compression chains, branches and delegated work."""

from typing import Any

from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store_part import StorePart
from memoranda.storage.connection import Connection

_STEP = "SELECT sessions.id, sessions.title, sessions.relation, sessions.parent_session_id FROM sessions JOIN family"


class Lineage(StorePart):
    """Ancestors, descendants and the conversation of a session, as far as they are in scope."""

    def get_compression_tip(self, session_id: str) -> str | None:
        """The latest session of a compressed conversation; the session itself if it was not compressed."""
        chain = self.get_compression_lineage(session_id)
        return chain[-1] if chain else None

    def get_compression_lineage(self, session_id: str) -> list[str]:
        """Every session of a conversation, from its first to its latest."""
        with self._engine.reading() as connection:
            return conversation_chain(connection, session_id, self._scope)

    def get_conversation_root(self, session_id: str) -> str | None:
        """The first ancestor of a session over links of any kind."""
        ancestors = self.get_ancestors(session_id)
        return ancestors[-1]["id"] if ancestors else None

    def get_ancestors(self, session_id: str) -> list[dict[str, Any]]:
        """A session, its parent and so on up, each with id, title and relation."""
        return self._walk("sessions.id = family.parent_session_id", session_id)

    def get_descendants(self, session_id: str) -> list[dict[str, Any]]:
        """A session and everything that descends from it."""
        return self._walk("sessions.parent_session_id = family.id", session_id)

    def _walk(self, link: str, session_id: str) -> list[dict[str, Any]]:
        with self._engine.reading() as connection:
            # UNION, not UNION ALL: a cycle in the links ends instead of running forever.
            rows = connection.execute(
                "WITH RECURSIVE family (id, title, relation, parent_session_id) AS ("
                f" SELECT id, title, relation, parent_session_id FROM sessions WHERE id = ? AND {self._in_scope}"
                f" UNION {_STEP} ON {link} WHERE {self._in_scope}) SELECT id, title, relation FROM family",
                (session_id, *self._scope.values, *self._scope.values),
            )
            return [dict(zip(("id", "title", "relation"), row, strict=True)) for row in rows]


def conversation_chain(connection: Connection, session_id: str, scope: Scope) -> list[str]:
    """The sessions of a conversation, each followed by its continuation; empty if it is out of scope."""
    in_scope = scope.condition("sessions")
    rows = connection.execute(
        "SELECT id, successor_id FROM sessions WHERE conversation_id ="
        f" (SELECT conversation_id FROM sessions WHERE id = ? AND {in_scope}) AND {in_scope}",
        (session_id, *scope.values, *scope.values),
    ).fetchall()
    successors = dict(rows)
    continuations = {successor for successor in successors.values() if successor is not None}
    chain = [member for member in successors if member not in continuations][:1]
    while chain and (member := successors.get(chain[-1])) and member in successors and member not in chain:
        chain.append(member)
    return chain
