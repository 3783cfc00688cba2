"""The code that tests of importers share: a store to import into, and its content afterwards."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.importer import Importer, scan_source
from memoranda.importers.reader_protocol import ConversationReader, ImportItem, ReadEvent
from memoranda.importers.summary import ImportSummary
from memoranda.memory.record.store import open_store


class Home:
    """A home in which tests import."""

    def __init__(self, root: Path, record: str = "") -> None:
        """`record` is the URL of a server, instead of a file in the home."""
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.store = open_store(record or root / "state.db")

    def plan(self, reader: ConversationReader, where: Path | None = None, *, rescan: bool = False) -> ImportSummary:
        return self._with(reader, where, "plan", rescan)

    def take(self, reader: ConversationReader, where: Path | None = None, *, rescan: bool = False) -> ImportSummary:
        return self._with(reader, where, "apply", rescan)

    def everything(self) -> dict[str, dict[str, Any]]:
        """Return every session with its messages."""
        return {session["id"]: session for session in self.store.transfer.iter_export()}

    def messages(self, session_id: str) -> list[dict[str, Any]]:
        """Return the messages of a session, with the fields that are set."""
        unsaid = ("id", "session_id", "active", "compacted")
        return [
            {name: value for name, value in message.items() if value is not None and name not in unsaid}
            for message in self.store.messages.get_messages(session_id, include_inactive=True)
        ]

    def _with(self, reader: ConversationReader, where: Path | None, label: str, rescan: bool) -> ImportSummary:
        engine = Importer(self.root, self.store, rescan=rescan)
        try:
            summary: ImportSummary = getattr(engine, label)(reader, scan_source(reader, where))
            return summary
        finally:
            engine.close()


class ListReader:
    """A reader that yields the events of a test."""

    name = "recited"

    def __init__(self, *given: ReadEvent, items: Sequence[ImportItem] | None = None) -> None:
        self._given = given
        self._items = items

    def scan(self, where: Path | None) -> Sequence[ImportItem]:
        return self._items or [ImportItem(Path("recited"), 1, 1.0, "recital")]

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        yield from self._given

    def resume_command(self, host_id: str, directory: str | None) -> str:
        return ""


def write_lines(file: Path, lines: Sequence[dict[str, Any]]) -> Path:
    """Write a file of JSON lines."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return file
