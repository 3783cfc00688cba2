"""When a turn or a session ends: what the host wrote of it is taken into the record, from where it was left."""

from pathlib import Path

from memoranda.app import Memory
from memoranda.importers.claude_code import ClaudeCode
from memoranda.importers.importer import Importer, import_lock
from memoranda.importers.reader_protocol import ImportItem
from memoranda.importers.summary import ImportSummary
from memoranda.support.projects import project_of

_WAIT = 120.0


def capture(memory: Memory, transcript: Path) -> ImportSummary | None:
    """Take in what is new in a session's transcript and in those of its sub-agents; None when there is none.

    One at a time: a second one waits, and then finds little or nothing new. Where a long import goes on, it is left to
    the next event of the session; the transcript stays.
    """
    reader = ClaudeCode()
    items = list(reader.scan(transcript)) if transcript.is_file() else []
    if not items:
        return None
    items += _of_sub_agents(reader, transcript)
    with import_lock(memory.home.root, _WAIT) as other:
        if other:
            return None
        engine = Importer(memory.home.root, memory.sessions, project=project_of)
        try:
            return engine.apply(reader, items)
        finally:
            engine.close()


def _of_sub_agents(reader: ClaudeCode, transcript: Path) -> list[ImportItem]:
    """The transcripts below the directory that bears the session's name."""
    directory = transcript.with_suffix("")
    return [item for item in reader.scan(directory) if item.file.is_file()] if directory.is_dir() else []
