"""Reads JSON from a value that someone else wrote, which may be anything."""

import json
from typing import Any


def parse_object(value: Any) -> dict[str, Any] | None:
    """Return the object that a text or bytes contain as JSON; None for anything else."""
    found = parse_json(value)
    return found if isinstance(found, dict) else None


def parse_list(value: Any) -> list[Any] | None:
    """Return the list that a text or bytes contain as JSON; None for anything else."""
    found = parse_json(value)
    return found if isinstance(found, list) else None


def parse_json(value: Any) -> Any:
    """Return the value that a text or bytes contain as JSON; None for anything else."""
    try:
        return json.loads(value)
    except (TypeError, ValueError, RecursionError):
        return None
