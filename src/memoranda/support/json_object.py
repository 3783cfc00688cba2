"""Reads a JSON object from a value that someone else wrote, which may be anything."""

import json
from typing import Any


def parse_object(value: Any) -> dict[str, Any] | None:
    """Return the object that a text or bytes contain as JSON; None for anything else."""
    try:
        found = json.loads(value)
    except (TypeError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
