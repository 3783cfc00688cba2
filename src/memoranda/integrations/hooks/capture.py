"""Records the sessions of hosts, from their transcripts and from the turns that a plugin has put into its spool.

`capture_transcript` imports what is new in a transcript, as `memoranda import` would.

`record_turns` empties the spool of a home. A plugin writes a file for each turn, synced to disk, and starts
`memoranda hook HOST capture`. So no turn is lost when the host is killed, or when Memoranda cannot run at that time:
the file stays until the turn is in the record. The turn itself is imported from the host's own database, so that tool
calls and timestamps are complete and a later import adds nothing twice. The text in the file is recorded only if the
host's database does not have it.
"""

import json
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.api.memory import Memory, open_memory
from memoranda.importers.importer import Importer, ImportRunningError, import_lock
from memoranda.importers.reader_protocol import ConversationReader, ImportItem
from memoranda.importers.session_writer import session_name
from memoranda.importers.summary import ImportSummary
from memoranda.integrations.hooks.events import HERMES, spool_directory, waiting_turns
from memoranda.memory.record.message_rows import text_of
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from memoranda.storage.files.file_lock import FileLock
from memoranda.support.durable_files import make_private_directory, read_file
from memoranda.support.home import Home
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.projects import project_of

if TYPE_CHECKING:
    from memoranda.importers.hermes.reader import Hermes
    from memoranda.importers.openclaw.reader import OpenClaw

_LOCK_TIMEOUT = 120.0
_MAX_BYTES = 64 * 1024 * 1024
# How long a turn waits while the host's database cannot be read; after that it is recorded as the plugin wrote it.
_MAX_WAIT_SECONDS = 3600.0
_MAX_ATTEMPTS = 10
_ATTEMPT_INTERVAL = 0.5
# A turn is compared with this many of the latest messages, by the first letters and digits of its text.
_MAX_RECENT_MESSAGES = 100
_COMPARED_CHARS = 400
_log = logging.getLogger(__name__)


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
    try:
        with (
            import_lock(memory.home.root, _LOCK_TIMEOUT, store=memory.sessions),
            closing(Importer(memory.home.root, memory.sessions, project=project_of)) as importer,
        ):
            return importer.apply(reader, items)
    except ImportRunningError:
        return None


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


@dataclass(frozen=True, slots=True)
class SpooledTurn:
    """One file of the spool: a finished turn of a host's session, and the database in which the host keeps it."""

    file: Path
    session_id: str
    database: Path | None
    user: str | None
    at: float
    messages: tuple[tuple[str, str], ...]
    """The role and text of each message, without tool calls."""


def record_turns(home: Home, host: str, user: str | None) -> int:
    """Records every turn in the spool; returns how many files it recorded and deleted.

    Turns whose file names no user belong to `user`.
    """
    if not waiting_turns(home.root, host):
        return 0
    directory = spool_directory(home.root, host)
    make_private_directory(directory)
    recorded = 0
    with FileLock(directory / ".lock", _LOCK_TIMEOUT):
        turns = sorted(_read_turns(waiting_turns(home.root, host), user), key=lambda turn: turn.user or "")
        for owner, owned_turns in groupby(turns, lambda turn: turn.user):
            recorded += _record_for_user(home, host, owner, list(owned_turns))
    return recorded


def _read_turns(files: Iterable[Path], user: str | None) -> Iterator[SpooledTurn]:
    for file in files:
        try:
            yield _parse_turn(file, json.loads(read_file(file, _MAX_BYTES)), user)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, TypeError, RecursionError) as error:
            # Kept under a name that later runs skip, because it may be the only copy of a turn.
            _log.error("%s is not a readable turn and was renamed: %s", file, error)
            file.replace(file.with_suffix(".unreadable"))


def _parse_turn(file: Path, value: Any, user: str | None) -> SpooledTurn:
    session_id = value["session_id"] if isinstance(value, dict) else None
    if not isinstance(session_id, str) or not session_id:
        raise ValueError("it names no session")
    database, owner, at = value.get("database"), value.get("user"), value.get("at")
    messages = [
        (entry["role"], entry["content"])
        for entry in value.get("messages") or ()
        if isinstance(entry, dict)
        and entry.get("role") in ("user", "assistant")
        and isinstance(entry.get("content"), str)
    ]
    return SpooledTurn(
        file,
        session_id,
        Path(database) if isinstance(database, str) and database else None,
        owner if isinstance(owner, str) and owner else user,
        at if isinstance(at, int | float) else time.time(),
        tuple(messages),
    )


def _record_for_user(home: Home, host: str, user: str | None, turns: Sequence[SpooledTurn]) -> int:
    ordered = sorted(turns, key=lambda turn: (turn.session_id, turn.file.name))
    with open_memory(home.base, profile=home.profile, user=user) as memory:
        try:
            with import_lock(home.root, _LOCK_TIMEOUT, store=memory.sessions):
                return sum(
                    _record_session(memory, host, session_id, list(session_turns))
                    for session_id, session_turns in groupby(ordered, lambda turn: turn.session_id)
                )
        except ImportRunningError as error:
            _log.warning("%d turns of %s wait: %s holds the import lock", len(turns), host, error.holder)
            return 0


def _record_session(memory: Memory, host: str, session_id: str, turns: Sequence[SpooledTurn]) -> int:
    name = memory.services.stored_name(session_name(host, session_id, memory.user))
    database = turns[-1].database
    is_in_database, problem = _import_session(memory, host, session_id, database)
    for _ in range(_MAX_ATTEMPTS):
        if not is_in_database or not any(_missing_messages(memory, name, turn) for turn in turns):
            break
        # The host may write the answer to its database after it called the plugin.
        time.sleep(_ATTEMPT_INTERVAL)
        is_in_database, problem = _import_session(memory, host, session_id, database)
    recorded = 0
    for turn in turns:
        if problem and not is_in_database and time.time() - turn.at < _MAX_WAIT_SECONDS:
            _log.warning("a turn of %s waits, because the database of %s cannot be read: %s", name, host, problem)
            continue
        _append_turn(memory, host, name, turn)
        turn.file.unlink(missing_ok=True)
        recorded += 1
    return recorded


def _missing_messages(memory: Memory, name: str, turn: SpooledTurn) -> list[tuple[int, str, str]]:
    """Returns the number, role and text of each missing message; none unless an answer or the session is missing."""
    store = _store(memory)
    if not turn.messages or store.deletion.deleted_sessions([name]):
        return []
    session = store.sessions.get_session(name)
    stored: list[str] = []
    if session is not None:
        # Copies are not counted, so there may be more messages than the last hundred.
        offset = max(0, session["message_count"] - _MAX_RECENT_MESSAGES)
        recent = store.messages.get_messages(name, include_inactive=True, offset=offset)
        stored = [_letters_and_digits(text_of(message["content"])) for message in recent]
    missing = [
        (number, role, text)
        for number, (role, text) in enumerate(turn.messages)
        if not any(_letters_and_digits(memory.services.redact(text))[:_COMPARED_CHARS] in other for other in stored)
    ]
    # A host may change the text of a prompt, but it stores an answer as the model wrote it.
    return missing if any(role == "assistant" for _, role, _ in missing) or session is None else []


def _store(memory: Memory) -> SessionStore:
    """Returns the store in which the host's sessions are: a gateway's users have their own in the owner's home."""
    return memory.sessions.scoped(Scope.everyone()) if memory.user is None else memory.sessions


def _letters_and_digits(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _import_session(memory: Memory, host: str, session_id: str, database: Path | None) -> tuple[bool, str]:
    """Imports a session from the host's database; returns whether the database has it, and the first problem."""
    reader = _database_reader(host, session_id)
    items = reader.session_items(database) if database else ()
    if not items:
        return False, ""
    importer = Importer(memory.home.root, memory.sessions)
    try:
        summary = importer.apply(reader, items)
    finally:
        importer.close()
    problem = summary.problems[0].text if summary.problems else ""
    name = memory.services.stored_name(session_name(host, session_id, memory.user))
    return name in summary.sessions, problem


def _database_reader(host: str, session_id: str) -> "Hermes | OpenClaw":
    if host == HERMES:
        from memoranda.importers.hermes.reader import Hermes  # noqa: PLC0415

        return Hermes(session_id)
    from memoranda.importers.openclaw.reader import OpenClaw  # noqa: PLC0415

    return OpenClaw(session_id)


def _append_turn(memory: Memory, host: str, name: str, turn: SpooledTurn) -> None:
    """Records the messages that the import did not bring; their ids make sure that a second attempt adds nothing."""
    missing = _missing_messages(memory, name, turn)
    if not missing:
        return
    store = _store(memory)
    if store.sessions.get_session(name) is None:
        store.sessions.create_session(name, host, started_at=turn.at, host=host, host_session_id=turn.session_id)
        store.sessions.end_session(name, "imported")
    store.messages.append_messages(
        name,
        [
            {"role": role, "content": text, "external_id": f"turn/{turn.file.stem}/{number}", "timestamp": turn.at}
            for number, role, text in missing
        ],
    )
