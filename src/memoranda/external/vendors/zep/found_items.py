"""What Zep finds, as items of recall."""

from datetime import UTC, datetime

from memoranda.external.vendors.recalled_item import RecalledItem
from memoranda.external.vendors.zep.client import Row


def fact_items(edges: list[Row]) -> list[RecalledItem]:
    """Facts that are still true, with the time from which they are."""
    return [
        RecalledItem(
            str(edge.get("fact") or ""),
            edge.get("valid_at") or edge.get("created_at"),
            _number(edge.get("relevance")) or _number(edge.get("score")),
            str(edge.get("uuid") or ""),
            "fact",
        )
        for edge in edges
        if is_current(edge)
    ]


def is_current(edge: Row) -> bool:
    """Whether a fact is still true: Zep keeps facts that were superseded, with the time when that happened."""
    return not any(_is_past(edge.get(end)) for end in ("invalid_at", "expired_at"))


def context_items(block: str, limit: int) -> list[RecalledItem]:
    """The lines of a context block that say something; headings and tags are left out."""
    lines = (line.strip().removeprefix("- ").strip() for line in block.splitlines())
    facts = [line for line in lines if len(line) > 3 and not line.startswith(("<", "#")) and not line.endswith(":")]
    return [RecalledItem(line, kind="context") for line in facts[:limit]]


def _is_past(time: object) -> bool:
    if not isinstance(time, str) or not time:
        return False
    try:
        timestamp = datetime.fromisoformat(time)
    except ValueError:
        return False
    return (timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)) <= datetime.now(UTC)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
