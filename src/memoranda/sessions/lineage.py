"""How sessions hang together: chains made by compression, branches, delegated work."""

from typing import Any

from memoranda.sessions.part import Part


class Lineage(Part):
    """Ways along the family of a session."""

    def get_compression_tip(self, session_id: str) -> str | None:
        """The session in which a compressed conversation goes on; itself when it was not compressed."""
        chain = self.get_compression_lineage(session_id)
        return chain[-1] if chain else None

    def get_compression_lineage(self, session_id: str) -> list[str]:
        """Every session of a conversation, from its first to its present one."""
        with self._db.reading() as connection:
            rows = connection.execute(
                "SELECT id, parent_session_id, relation FROM sessions WHERE conversation_id ="
                f" (SELECT conversation_id FROM sessions WHERE id = ? AND {self._seen})",
                (session_id, *self._scope.values),
            ).fetchall()
        after = {parent: member for member, parent, relation in rows if relation == "compression"}
        members = {row[0] for row in rows}
        chain = [member for member, parent, _ in rows if parent not in members or after.get(parent) != member]
        while chain and (following := after.get(chain[-1])) and following not in chain:
            chain.append(following)
        return chain

    def get_conversation_root(self, session_id: str) -> str | None:
        """The first ancestor of a session, whatever the links are."""
        ancestors = self.get_ancestors(session_id)
        return ancestors[-1]["id"] if ancestors else None

    def get_ancestors(self, session_id: str) -> list[dict[str, Any]]:
        """A session, its parent, and so on up: id, title, relation."""
        return self._walk(
            f"SELECT id, title, relation, parent_session_id FROM sessions WHERE id = ? AND {self._seen}",
            "SELECT s.id, s.title, s.relation, s.parent_session_id FROM sessions s JOIN family f"
            " ON s.id = f.parent_session_id",
            session_id,
        )

    def get_descendants(self, session_id: str) -> list[dict[str, Any]]:
        """A session and everything that came from it."""
        return self._walk(
            f"SELECT id, title, relation, parent_session_id FROM sessions WHERE id = ? AND {self._seen}",
            "SELECT s.id, s.title, s.relation, s.parent_session_id FROM sessions s JOIN family f"
            " ON s.parent_session_id = f.id",
            session_id,
        )

    def _walk(self, first: str, step: str, session_id: str) -> list[dict[str, Any]]:
        with self._db.reading() as connection:
            # UNION, not UNION ALL: a circle in the links ends instead of going round.
            rows = connection.execute(
                f"WITH RECURSIVE family (id, title, relation, parent_session_id) AS ({first} UNION {step})"
                " SELECT id, title, relation FROM family",
                (session_id, *self._scope.values),
            )
            return [dict(zip(("id", "title", "relation"), row, strict=True)) for row in rows]
