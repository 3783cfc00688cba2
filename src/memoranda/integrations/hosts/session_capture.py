"""Records a session of a host: imports what is new in its transcript, as `memoranda import` would."""

from collections.abc import Sequence
from pathlib import Path

from memoranda.api.memory import Memory
from memoranda.importers.importer import Importer, import_lock
from memoranda.importers.reader_protocol import ConversationReader, ImportItem
from memoranda.importers.session_writer import session_name
from memoranda.importers.summary import ImportSummary
from memoranda.support.projects import project_of

_LOCK_TIMEOUT = 120.0


def capture_transcript(memory: Memory, transcript: Path, host: str, session_id: str = "") -> ImportSummary | None:
    """Imports what is new in a session's transcript and those of its sub-agents; None when nothing was imported.

    Captures wait for each other. If a long import holds the lock, this gives up: the transcript stays, and the next
    event of the session imports it. `session_id` is the id that the host uses.
    """
    if not transcript.is_file():
        return None
    reader, items = _find_items(memory, host, transcript, session_id)
    if not items:
        return None
    with import_lock(memory.home.root, _LOCK_TIMEOUT, store=memory.sessions) as lock_holder:
        if lock_holder:
            return None
        importer = Importer(memory.home.root, memory.sessions, project=project_of)
        try:
            return importer.apply(reader, items)
        finally:
            importer.close()


def _find_items(
    memory: Memory, host: str, transcript: Path, session_id: str
) -> tuple[ConversationReader, Sequence[ImportItem]]:
    """Returns the reader of a host's transcripts and the items to import; the readers of other hosts are not loaded."""
    reader: ConversationReader
    if host == "opencode":
        from memoranda.importers.coding_agents.opencode import OpenCode  # noqa: PLC0415

        opencode = OpenCode()
        return opencode, opencode.scan_session(transcript, session_id)
    if host == "cursor":
        from memoranda.importers.coding_agents.cursor import Cursor  # noqa: PLC0415

        cursor = Cursor()
        # A conversation continues in the format from which it was imported before.
        name = session_name(cursor.name, cursor.editor_id(transcript), memory.sessions.scope.user)
        return cursor, cursor.scan_conversation(transcript, from_editor=memory.sessions.get_session(name) is not None)
    if host == "codex":
        from memoranda.importers.coding_agents.codex import Codex  # noqa: PLC0415

        # Codex has a separate event for sub-agents.
        reader = Codex()
        return reader, reader.scan(transcript)
    if host == "gemini-cli":
        from memoranda.importers.coding_agents.gemini_cli import GeminiCli  # noqa: PLC0415

        reader, sub_agents = GeminiCli(), transcript.parent / Path(session_id).name
    else:
        from memoranda.importers.coding_agents.claude_code import ClaudeCode  # noqa: PLC0415

        reader, sub_agents = ClaudeCode(), transcript.with_suffix("")
    items = list(reader.scan(transcript))
    if items and sub_agents != transcript.parent and sub_agents.is_dir():
        items += [item for item in reader.scan(sub_agents) if item.file.is_file()]
    return reader, items
