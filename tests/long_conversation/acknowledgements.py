"""What a process that may be killed says about itself: what was acknowledged to it, and where it is."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_SIGNED = ("role", "content", "tool_calls", "tool_call_id")
_pipe: int | None = None


def announce_to(pipe: int) -> None:
    """From now on this process announces where it is through a pipe."""
    global _pipe  # noqa: PLW0603
    _pipe = pipe


def announce(what: str) -> None:
    """Say where this process is, so that the killer can kill it there."""
    if _pipe is not None:
        os.write(_pipe, f"{what}\n".encode())


def digest(message: Mapping[str, Any]) -> str:
    """A message's own words and calls, in short."""
    signed = [message.get(name) or None for name in _SIGNED]
    return hashlib.sha256(json.dumps(signed, sort_keys=True).encode()).hexdigest()[:24]


class Acknowledged:
    """A file with everything that was acknowledged, one line each, which survives the process that wrote it."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def messages(self, ids: Sequence[int], messages: Sequence[Mapping[str, Any]]) -> None:
        """Messages were recorded."""
        for number, message in zip(ids, messages, strict=True):
            self._note({"kind": "message", "id": number, "role": message["role"], "digest": digest(message)})
            announce(f"recorded {message['role']}")

    def saved(self, entry: str) -> None:
        """An entry of curated memory was saved."""
        self._note({"kind": "entry", "entry": entry})
        announce("saved")

    def _note(self, what: dict[str, Any]) -> None:
        os.write(self._file, json.dumps(what).encode() + b"\n")
