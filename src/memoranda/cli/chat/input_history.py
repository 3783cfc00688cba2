"""The lines that a user typed in earlier chats, for the arrow keys; stored in the home without credentials."""

import os
from pathlib import Path

from memoranda.safety.redaction import Redactor
from memoranda.support.durable_files import make_private_directory

try:
    import readline
except ImportError:  # Windows has no readline; lines are read without history.
    readline = None  # type: ignore[assignment]

_MAX_LINES = 1_000


class InputHistory:
    """Loads and saves the typed lines of a home; the tab key completes commands."""

    def __init__(self, path: Path, redactor: Redactor, commands: list[str]) -> None:
        self._path = path
        self._redactor = redactor
        self._commands = commands

    def load(self) -> None:
        """Passes the earlier lines to the line editor."""
        if readline is None:
            return
        readline.set_auto_history(False)
        readline.set_completer_delims(" ")
        readline.set_completer(self._complete)
        bind = "bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete"
        readline.parse_and_bind(bind)
        readline.clear_history()
        for line in self._lines():
            readline.add_history(line)

    def add(self, text: str) -> None:
        """Saves a typed line. Text of several lines is skipped: it was pasted, and the record has it."""
        if not text.strip() or "\n" in text:
            return
        if readline is not None:
            readline.add_history(text)
        redacted, _ = self._redactor.text(text)
        make_private_directory(self._path.parent)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(redacted + "\n")

    def suggest(self, text: str) -> None:
        """Puts a text into the next input line, to be edited and sent again."""
        if readline is None or "\n" in text:
            return

        def insert() -> None:
            readline.insert_text(text)
            readline.set_startup_hook(None)

        readline.set_startup_hook(insert)

    def _lines(self) -> list[str]:
        try:
            lines = self._path.read_text("utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return []
        return lines[-_MAX_LINES:]

    def _complete(self, text: str, state: int) -> str | None:
        matches = [name for name in self._commands if text.startswith("/") and name.startswith(text)]
        return matches[state] if state < len(matches) else None
