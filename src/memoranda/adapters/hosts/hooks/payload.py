"""What Claude Code says of an event, read leniently: a field that is missing or odd is as good as empty."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MOST_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Payload:
    """One event of a session."""

    event: str = ""
    session_id: str = ""
    transcript: Path | None = None
    directory: str = ""
    prompt: str = ""
    source: str = ""


def read_payload(raw: bytes, event: str = "") -> Payload:
    """The payload on standard input; `event` is what the command was called with, if the payload does not say."""
    try:
        value: Any = json.loads(raw[:_MOST_BYTES].decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return Payload(event)
    transcript = _text(value, "transcript_path")
    return Payload(
        _text(value, "hook_event_name") or event,
        _text(value, "session_id"),
        Path(transcript).expanduser() if transcript and "\0" not in transcript else None,
        _text(value, "cwd"),
        _text(value, "prompt"),
        _text(value, "source"),
    )


def _text(value: dict[str, Any], name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""
