"""Timestamps as they are written into files: UTC, ISO 8601, microseconds, sortable as text."""

from datetime import UTC, datetime


def utc_timestamp() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
