"""Time as it is written into files: UTC, ISO 8601, microseconds."""

from datetime import UTC, datetime


def now() -> str:
    """The present moment, sortable as text."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
