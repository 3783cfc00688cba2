"""A conversation as the lists of the viewer show it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memoranda.support.projects import project_name


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """One line of a list of conversations."""

    id: str
    title: str
    agent: str
    project: str
    messages: int
    started_at: float | None
    last_active: float | None
    archived: bool

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "ConversationRow":
        """From a row of `list_sessions_rich`."""
        return cls(
            row["id"],
            row["title"] or row["preview"] or "(no messages)",
            row["source"],
            short_project(row["project"]),
            row["message_count"],
            row["started_at"],
            row["last_active"],
            bool(row["archived"]),
        )


def short_project(project: str | None) -> str:
    """The last part of a project's name or path; "" without one."""
    name = project_name(project) or ""
    return name.rstrip("/\\").replace("\\", "/").rpartition("/")[2]
