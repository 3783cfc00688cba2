"""Imports items into the record, the same way for every reader: plan, apply, and summarize both.

A plan and an import are one pass over the same items; only the writer differs. Messages arrive in batches, each in one
commit, and only then does the import state record how far the file was read. A killed import continues from the last
recorded checkpoint; the store knows messages by their external ids, so none is added twice.

Some programs copy a session into a new file when it is resumed or forked. Sessions that start with the same message are
a family: messages that a related session already has stay there, and the new session becomes its branch.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from memoranda.errors import LockTimeoutError
from memoranda.importers.item_import import ItemImport
from memoranda.importers.proposals import ProposalWriter
from memoranda.importers.reader_protocol import ConversationReader, ImportItem
from memoranda.importers.session_writer import PreviewWriter, RecordWriter, SessionWriter
from memoranda.importers.source_files import leads_out, prefix_digest
from memoranda.importers.state.log import ImportRecorder, is_import_of
from memoranda.importers.state.store import ImportState, ItemState
from memoranda.importers.summary import ImportSummary, unknown_kinds
from memoranda.importers.thread_states import ThreadStates
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from memoranda.storage.files.file_lock import FileLock, lock_holder
from memoranda.storage.lazy_database import server_url_of
from memoranda.support.durable_files import make_private_directory
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.projects import project_of

_log = logging.getLogger(__name__)
LOCK_FILE = "imports.lock"
_OTHER_NODE = "an import on another machine that uses the same server"


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """How far an import is, in bytes of all its items and in new messages."""

    source: str
    file: Path
    bytes: int
    all_bytes: int
    messages: int


class Importer:
    """Imports into one store; the state of imports is beside the store, in a file of the home or on its server."""

    def __init__(
        self,
        root: Path,
        store: SessionStore,
        *,
        progress: Callable[[ImportProgress], None] = lambda progress: None,
        project: Callable[[str], str | None] = project_of,
        rescan: bool = False,
        import_id: str | None = None,
        curated: MemoryStore | None = None,
    ) -> None:
        """`project` returns the project of a directory; `rescan` reads everything again, even deleted sessions.

        With an `import_id`, what `apply` adds can be undone under this id. `curated` is the memory that gets the
        proposals of readers; without one there are none.
        """
        self._root = root
        # The owner of a home may import what other users said in a gateway; the record keeps it with those users.
        self._store = store if store.scope.user is not None else store.scoped(Scope.everyone())
        self._state = state_of_store(root, store, rescan=rescan)
        self._progress = progress
        self._project = project
        self._import_id = import_id
        self._curated = curated

    def plan(self, reader: ConversationReader, items: Sequence[ImportItem]) -> ImportSummary:
        """Return what an import would do; writes nothing."""
        proposals = ProposalWriter(self._curated, None, rescan=self._state.rescan)
        with closing(ThreadStates(self._root, self._store)) as states:
            return self._run(reader, items, PreviewWriter(self._store, self._state, states), proposals)

    def apply(self, reader: ConversationReader, items: Sequence[ImportItem]) -> ImportSummary:
        """Import everything that is new; it is durable when this returns."""
        settle_killed_imports(self._store, self._state)
        recorder = ImportRecorder(self._state.log, reader.name, self._import_id, self._store.messages.last_message_id)
        proposals = ProposalWriter(self._curated, recorder, rescan=self._state.rescan)
        with closing(ThreadStates(self._root, self._store, recorder)) as states:
            writer = RecordWriter(reader.name, self._store, self._state, states, self._project, recorder)
            summary = self._run(reader, items, writer, proposals)
        recorder.finish()
        self._state.note_unknown_kinds(reader.name, unknown_kinds(summary.skipped))
        self._state.forget_content([name for name, result in summary.sessions.items() if result == "deleted"])
        return summary

    def close(self) -> None:
        self._state.close()

    def _run(
        self,
        reader: ConversationReader,
        items: Sequence[ImportItem],
        writer: SessionWriter,
        proposals: ProposalWriter,
    ) -> ImportSummary:
        summary = ImportSummary(reader.name, items=len(items))
        total, before = sum(item.size for item in items), 0
        unread_sessions: set[str] = set()
        for item in items:

            def report(offset: int, file: Path = item.file, before: int = before) -> None:
                self._progress(ImportProgress(reader.name, file, before + offset, total, summary.messages))

            known = self._state.item_state(reader.name, item)
            if known is not None and known.is_unchanged(item):
                summary.items_unchanged += 1
                unread_sessions.update(known.sessions)
            else:
                remaining = _after_checkpoint(item, known)
                summary.start_item(remaining)
                seen_before = known.sessions if known and remaining.checkpoint else ()
                ItemImport(reader, remaining, self._store, self._state, writer, proposals, summary, seen_before).run(
                    report
                )
            report(item.size)
            before += item.size
        deleted = self._store.deletion.deleted_sessions(unread_sessions)
        for session_id in sorted(unread_sessions):
            summary.set_result(session_id, "deleted" if session_id in deleted else "unchanged")
        return summary


def scan_source(reader: ConversationReader, path: Path | None) -> list[ImportItem]:
    """The items of a reader; without a path, those in the program's own directories.

    Another person may have written a directory that someone names, and a link in it may lead to a key: what links
    outside is not read. Its owner can name the linked file itself.
    """
    items = list(reader.scan(path))
    if path is None or not path.is_dir():
        return items
    linked = [item for item in items if leads_out(item.file, path)]
    if linked:
        _log.warning("%d links lead out of %s and are not read; name the files themselves.", len(linked), path)
    return [item for item in items if item not in linked]


def state_of_store(root: Path, store: SessionStore, *, rescan: bool = False) -> ImportState:
    """The state of the imports into a store, for the user of its scope."""
    store_id = store.scoped(Scope.everyone()).feed.store_id()
    return ImportState(root, store_id, store.scope.user, rescan=rescan, server_url=server_url_of(store.engine))


def settle_killed_imports(store: SessionStore, state: ImportState) -> None:
    """Give killed imports the messages that they added after their last checkpoint; the caller holds the import lock.

    The next import reads these messages again and recognises them, so it would not count them as its own.
    """
    for killed in state.log.unfinished():
        ranges = store.import_undo.imported_ranges(killed.after_message, killed.sources)
        added = {
            session_id: (found.first, found.last)
            for session_id, found in ranges.items()
            if is_import_of(killed.user, session_id, found.user)
        }
        state.log.settle(killed.id, added)


def _after_checkpoint(item: ImportItem, known: ItemState | None) -> ImportItem:
    """Return the item with its checkpoint, if the file is unchanged up to there."""
    checkpoint = known.checkpoint if known else None
    if known is None or checkpoint is None or item.size < checkpoint.offset:
        return item
    is_same_file = prefix_digest(item.file, checkpoint.offset) == known.prefix_digest
    return replace(item, checkpoint=checkpoint) if is_same_file else item


class ImportRunningError(LockTimeoutError):
    """Another import into the same home holds the lock; `holder` describes it."""

    def __init__(self, holder: str) -> None:
        super().__init__(
            f"Another import into this home is running: {holder}. Nothing was imported; try again when it is done, or "
            "stop it."
        )
        self.holder = holder


@contextmanager
def import_lock(
    root: Path,
    timeout: float,
    on_wait: Callable[[str], None] = lambda holder: None,
    *,
    store: SessionStore | None = None,
) -> Iterator[None]:
    """Allow one import at a time in a home; raises ImportRunningError when another one runs after `timeout` seconds.

    Two imports at once would add nothing twice, but each would count what the other added. `on_wait` is called with
    the holder before waiting. With a `store` on a server, no other node imports for the same user meanwhile.
    """
    make_private_directory(root)
    path, deadline = root / LOCK_FILE, time.monotonic() + timeout
    with ExitStack() as stack:
        _enter_lock(stack, partial(FileLock, path), partial(lock_holder, path), deadline, on_wait)
        if store is not None and server_url_of(store.engine):
            _enter_lock(stack, partial(_lock_on_server, store), lambda: _OTHER_NODE, deadline, on_wait)
        yield


def _enter_lock(
    stack: ExitStack,
    lock: Callable[[float], AbstractContextManager[object]],
    holder: Callable[[], str],
    deadline: float,
    on_wait: Callable[[str], None],
) -> None:
    """Acquire a lock, which takes a timeout, at once or until the deadline."""
    with suppress(LockTimeoutError):
        stack.enter_context(lock(0.0))
        return
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise ImportRunningError(holder())
    on_wait(holder())
    try:
        stack.enter_context(lock(seconds))
    except LockTimeoutError as error:
        raise ImportRunningError(holder()) from error


@contextmanager
def _lock_on_server(store: SessionStore, timeout: float) -> Iterator[None]:
    lock = store.engine.lock_turn(f"imports of {store.scope.user or ''}", timeout)
    try:
        yield
    finally:
        lock.release()
