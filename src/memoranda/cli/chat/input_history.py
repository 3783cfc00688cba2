"""The lines that a user typed in earlier chats, for the arrow keys; stored in the home without credentials."""

import os
from pathlib import Path

from memoranda.safety.redaction import Redactor
from memoranda.support.durable_files import make_private_directory

_MAX_LINES = 1_000


class InputHistory:
    """Loads and saves the typed lines of a home."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self._path = path
        self._redactor = redactor

    def lines(self) -> list[str]:
        """Returns the earlier lines, the oldest first."""
        try:
            lines = self._path.read_text("utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return []
        return lines[-_MAX_LINES:]

    def add(self, text: str) -> None:
        """Saves a typed line. Text of several lines is skipped: it was pasted, and the record has it."""
        if not text.strip() or "\n" in text:
            return
        redacted, _ = self._redactor.text(text)
        make_private_directory(self._path.parent)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(redacted + "\n")
