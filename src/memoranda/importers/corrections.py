"""Corrects sessions that earlier versions imported with text of the host in the role of the user.

The transcripts that still exist are read again, and each message gets the role that today's reader gives it. Of
sessions whose transcript is gone, only what is certain is corrected: the lines of Claude Code that repeat a request to
the model have no id, while all messages of a conversation have one.
"""

import json
from collections import Counter
from collections.abc import Container, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from memoranda.importers.importer import import_lock, state_of_store
from memoranda.importers.item_import import ItemImport
from memoranda.importers.proposals import ProposalWriter
from memoranda.importers.reader_protocol import ImportedMessage, ImportItem, Problem
from memoranda.importers.session_writer import IncomingSession, PreviewWriter
from memoranda.importers.source_files import item_at
from memoranda.importers.sources import SOURCES
from memoranda.importers.state.store import ImportState
from memoranda.importers.summary import REPORT_DIRECTORY, ImportSummary
from memoranda.importers.thread_states import ThreadStates
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from memoranda.memory.record.transfer.imports import ADDED
from memoranda.support.durable_files import make_private_directory, write_private
from memoranda.support.lazy_pattern import compile_later

_LOCK_TIMEOUT = 30.0
_CLAUDE_CODE = "claude-code"
# The id that its reader gives to a line without one, and the length of the ids that Claude Code gives.
_ID_OF_LINE = compile_later(r"\d+-[0-9a-f]{16}(?::\d+)?")
_MAX_ID_CHARS = 35
_REPORT = "corrected"
_HIDDEN = "hidden"
# Programs that write into the user's role, by the module of their readers.
_HOSTS = ("coding_agents.", "openclaw.")


class _CorrectingWriter(PreviewWriter):
    """A writer that corrects the roles of messages that the record has, and adds only what it removes from them."""

    def __init__(self, store: SessionStore, state: ImportState, states: ThreadStates) -> None:
        super().__init__(store, state, states)
        self.corrected: dict[str, dict[int, str]] = {}
        self.read: set[tuple[str, str]] = set()

    def write_messages(
        self, item: ImportItem, incoming: IncomingSession, messages: Sequence[ImportedMessage]
    ) -> tuple[int, list[Problem]]:
        if incoming.row is not None and messages:
            by_name = {imported.message["external_id"]: imported.message for imported in messages}
            added = [message for name, message in by_name.items() if ADDED in name]
            self._store.messages.append_messages(incoming.id, added)
            changed = self._store.imported_rows.correct_messages(incoming.id, by_name)
            self.corrected.setdefault(incoming.id, {}).update(changed)
            self.read.update((incoming.id, name) for name in by_name)
        return 0, []


def may_have_host_text(root: Path, store: SessionStore) -> bool:
    """Whether an earlier version imported sessions that were not corrected since."""
    with closing(state_of_store(root, store)) as state:
        return not state.user_means_typed()


def correct_host_text(root: Path, store: SessionStore) -> str:
    """Correct every imported session; return how many messages changed, and the file that lists them."""
    everyone = store.scoped(Scope.everyone())
    corrected: dict[str, dict[int, str]] = {}
    read: set[tuple[str, str]] = set()
    with import_lock(root, _LOCK_TIMEOUT, store=store), closing(state_of_store(root, everyone)) as state:
        files: dict[str, list[tuple[str, Path, str]]] = {}
        for user, source, file, part in state.read_files():
            files.setdefault(user, []).append((source, file, part))
        for user, listed in files.items():
            writer = _read_again(root, store.scoped(Scope.of(user)) if user else everyone, listed)
            corrected |= {session_id: changed for session_id, changed in writer.corrected.items() if changed}
            read |= writer.read
        _hide_requests(everyone, read, corrected)
        report = _write_report(root, corrected)
        state.note_user_means_typed(checked=True)
    return report


def _read_again(root: Path, store: SessionStore, files: Sequence[tuple[str, Path, str]]) -> _CorrectingWriter:
    """Correct what was imported from files, as far as they still exist; each is a source, a path and a part."""
    with closing(state_of_store(root, store, rescan=True)) as state, closing(ThreadStates(root, store)) as states:
        writer = _CorrectingWriter(store, state, states)
        proposals = ProposalWriter(None, None, rescan=True)
        for source, file, part in files:
            item = item_at(file, part)
            if item is not None and source in SOURCES and SOURCES[source].reader.startswith(_HOSTS):
                summary = ImportSummary(source)
                reader = SOURCES[source].load()
                ItemImport(reader, item, store, state, writer, proposals, summary).run(lambda offset: None)
    return writer


def _hide_requests(store: SessionStore, read: Container[tuple[str, str]], corrected: dict[str, dict[int, str]]) -> None:
    """Hide the repeated requests of Claude Code, which today's reader does not read."""
    for session_id, names in store.imported_rows.find_short_names(_CLAUDE_CODE, _MAX_ID_CHARS).items():
        requests = [
            number for number, name in names.items() if _ID_OF_LINE.fullmatch(name) and (session_id, name) not in read
        ]
        if requests:
            store.imported_rows.hide_messages(session_id, requests)
            corrected.setdefault(session_id, {}).update(dict.fromkeys(requests, _HIDDEN))


def _write_report(root: Path, corrected: dict[str, dict[int, str]]) -> str:
    """Write which messages changed, without their texts; return it in one sentence."""
    changes = Counter(change for changed in corrected.values() for change in changed.values())
    if not changes:
        return "no message had to be changed"
    listed = {
        "summary": "became summaries",
        "system": "became text of the program",
        "text": "lost what the program had added",
        _HIDDEN: "are hidden, because they repeat requests to the model",
    }
    path = root / REPORT_DIRECTORY / f"{_REPORT}-{datetime.now(UTC):%Y%m%d-%H%M%S}.json"
    make_private_directory(path.parent)
    write_private(path, json.dumps({"changed": corrected}, indent=2).encode() + b"\n")
    details = ", ".join(f"{number:,} {listed.get(change, change)}" for change, number in sorted(changes.items()))
    return f"{changes.total():,} messages in {len(corrected):,} sessions: {details}; {path} lists them"
