"""Reads the transcripts of OpenClaw: files of JSON lines until the summer of 2026, one database per agent since then.

    agents/<agent>/sessions/<session>.jsonl               and <session>-topic-<thread>.jsonl for a thread
    agents/<agent>/sessions/<session>.jsonl.reset.<time>   the session before it was reset
    agents/<agent>/agent/openclaw-agent.sqlite             everything, in current versions

The version that moved the files into the database kept them in a separate directory. A session in both is one session:
its events have the same ids.
"""

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from memoranda.importers.openclaw.credentials import find_credentials
from memoranda.importers.openclaw.installation import find_directories, inspect_installation
from memoranda.importers.openclaw.transcripts import FILE_NAME, EventThread, read_database
from memoranda.importers.reader_protocol import ImportedMessage, ImportItem, ReadEvent
from memoranda.importers.source_databases import database_at
from memoranda.importers.source_files import find_files, item_at, read_json_lines, read_line_events
from memoranda.safety.redaction import Redactor
from memoranda.support.json_object import parse_object
from memoranda.support.text_file import TextFile, read_text

# Files that OpenClaw marks as deleted are not imported.
_TRANSCRIPT = re.compile(r"(?P<id>.+?)\.jsonl(?:\.reset\..+|\.bak(?:[.-].*)?|\.migrated.*)?")
_DELETED = re.compile(r"\.deleted\.|\.lock$|\.tmp$|\.trajectory\b")
# Other programs that an agent works with keep their own transcripts there.
_OTHER_PROGRAMS = frozenset(("codex-home", "node_modules", ".git"))
_MIN_CREDENTIAL_CHARS = 8
_DATABASE = "database"
_STATE_FIELDS = ("title", "model", "directory", "started_at", "parent", "extra")


class OpenClaw:
    name = "openclaw"

    def __init__(self, session_id: str | None = None) -> None:
        """`session_id` limits the reading of a database to one session, for the capture of a single turn."""
        self._session_id = session_id
        self._redactors: dict[Path, _CredentialFilter] = {}

    def session_items(self, database: Path) -> Sequence[ImportItem]:
        """Return the one session in a database as an item of its own; none when the database is missing."""
        found = database_at(database, f"session {self._session_id}")
        return [found] if found else []

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the databases and transcripts of all agents, the oldest first."""
        if path is not None and (single := item_at(path, "session")):
            return [database_at(path, _DATABASE) or single] if path.name == FILE_NAME else [single]
        found: list[ImportItem] = []
        for root in [path] if path is not None else find_directories():
            agents = root / "agents" if (root / "agents").is_dir() else root
            found += find_files(agents, _is_transcript, "session")
            databases = find_files(agents, lambda file: file.name == FILE_NAME, _DATABASE)
            found += [database_at(item.file, _DATABASE) or item for item in databases]
        return sorted(found, key=lambda item: (item.label != "session", item.modified_at, str(item.file)))

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        credentials = self._credential_filter(item.file)
        is_database = item.file.name == FILE_NAME
        for event in read_database(item, self._session_id) if is_database else _read_lines(item):
            yield credentials.redact(event) if isinstance(event, ImportedMessage) else event

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return the command that sends a message to the session."""
        session = re.sub(r"-topic-[^-]*$", "", host_id)
        return f"openclaw agent --session-id {shlex.quote(session)} --message '...'"

    def _credential_filter(self, file: Path) -> "_CredentialFilter":
        """Return a filter for the credentials of the installation that a transcript belongs to."""
        above = [parent for parent in file.parents if parent.name == "agents"]
        root = above[0].parent if above else file.parent
        if root not in self._redactors:
            credentials = find_credentials(inspect_installation(root, moved=True)) if above else []
            self._redactors[root] = _CredentialFilter(credential.value for credential in credentials)
        return self._redactors[root]


class _CredentialFilter:
    """Redacts known credentials in messages; the record finds others by their form."""

    def __init__(self, values: Iterable[str]) -> None:
        known = [value for value in values if len(value) >= _MIN_CREDENTIAL_CHARS]
        self._redactor = Redactor(known)
        self._values = tuple(json.dumps(value, ensure_ascii=False)[1:-1] for value in known)

    def redact(self, imported: ImportedMessage) -> ImportedMessage:
        # Very few messages contain a credential, and this check is fast.
        text = json.dumps(imported.message, ensure_ascii=False, default=str) if self._values else ""
        if not any(value in text for value in self._values):
            return imported
        message = imported.message
        kept: dict[str, Any] = {name: message[name] for name in ("external_id", "timestamp") if name in message}
        return ImportedMessage({**self._redactor.value(message)[0], **kept}, imported.line)


def _is_transcript(file: Path) -> bool:
    if _OTHER_PROGRAMS.isdisjoint(file.parts):
        return bool(_TRANSCRIPT.fullmatch(file.name)) and not _DELETED.search(file.name)
    return False


def _read_lines(item: ImportItem) -> Iterator[ReadEvent]:
    thread = _restore_thread(item)
    return read_line_events(
        read_json_lines(item),
        lambda line: thread.convert(line.value, line.number, line.raw, line.number),
        lambda: _thread_state(thread),
        thread.finish,
    )


def _restore_thread(item: ImportItem) -> EventThread:
    """Return the session as it was at the item's checkpoint, or at the start of its file."""
    name_match = _TRANSCRIPT.fullmatch(item.file.name)
    thread = EventThread(name_match["id"] if name_match else item.file.stem)
    if item.checkpoint is not None and item.checkpoint.state:
        for name, value in json.loads(item.checkpoint.state).items():
            setattr(thread, name, value)
        return thread
    entry = _stored_entry(item.file.with_name("sessions.json"), thread.host_id)
    for title in ("label", "displayName", "subject"):
        if isinstance(entry.get(title), str) and entry[title].strip():
            thread.title = entry[title]
            break
    if isinstance(entry.get("session_key"), str):
        thread.extra["session_key"] = entry["session_key"]
    return thread


def _thread_state(thread: EventThread) -> str:
    known = asdict(thread)
    return json.dumps({name: known[name] for name in _STATE_FIELDS})


def _stored_entry(store: Path, host_id: str) -> dict[str, Any]:
    """Return the entry of a session in the list of sessions next to the transcripts."""
    state = read_text(store)
    stored = parse_object(state.text) if isinstance(state, TextFile) else None
    for key, entry in (stored or {}).items():
        if isinstance(entry, Mapping) and entry.get("sessionId") == host_id:
            return {**entry, "session_key": key}
    return {}
