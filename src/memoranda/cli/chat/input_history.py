"""What a person typed in earlier chats, for the arrow keys; kept in the home, without credentials."""

import os
from pathlib import Path

from memoranda.safety.redaction import Redactor
from memoranda.support.durable_files import make_private_directory

try:
    import readline
except ImportError:  # Windows has none; lines are read without history.
    readline = None  # type: ignore[assignment]

_MOST_LINES = 1_000


class InputHistory:
    """The lines of a home's chats; commands complete with the tab key."""

    def __init__(self, path: Path, redactor: Redactor, commands: list[str]) -> None:
        self._path = path
        self._redactor = redactor
        self._commands = commands

    def load(self) -> None:
        """Give the earlier lines to the line editor."""
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
        """Keep what was typed. More than one line is left out: it was pasted, and the record has it."""
        if not text.strip() or "\n" in text:
            return
        if readline is not None:
            readline.add_history(text)
        kept, _ = self._redactor.text(text)
        make_private_directory(self._path.parent)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(kept + "\n")

    def offer(self, text: str) -> None:
        """Put a text into the next line that is read, to be changed and sent again."""
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
        return lines[-_MOST_LINES:]

    def _complete(self, text: str, state: int) -> str | None:
        found = [name for name in self._commands if text.startswith("/") and name.startswith(text)]
        return found[state] if state < len(found) else None
