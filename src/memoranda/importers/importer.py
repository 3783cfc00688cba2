"""Imports items into the record, the same way for every reader: plan, apply, and summarize both.

A plan and an import are one pass over the same items; only the writer differs. Messages arrive in batches, each in one
commit, and only then does the import state record how far the file was read. A killed import continues from the last
recorded checkpoint; the store knows messages by their external ids, so none is added twice.

Some programs copy a session into a new file when it is resumed or forked. Sessions that start with the same message are
a family: messages that a related session already has stay there, and the new session becomes its branch.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from memoranda.errors import LockTimeoutError
from memoranda.importers.import_state import ImportState, ItemState
from memoranda.importers.item_import import ItemImport
from memoranda.importers.reader_protocol import ConversationReader, ImportItem
from memoranda.importers.session_writer import PreviewWriter, RecordWriter, SessionWriter
from memoranda.importers.source_files import prefix_digest
from memoranda.importers.summary import ImportSummary
from memoranda.sessions.scope import Scope
from memoranda.sessions.store import SessionStore
from memoranda.support.durable_files import make_private_directory
from memoranda.support.file_lock import FileLock, lock_holder
from memoranda.support.projects import project_of

LOCK_FILE = "imports.lock"


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """How far an import is, in bytes of all its items and in new messages."""

    source: str
    file: Path
    bytes: int
    all_bytes: int
    messages: int


class Importer:
    """Imports into one store; its state file is next to the store in the home."""

    def __init__(
        self,
        root: Path,
        store: SessionStore,
        *,
        progress: Callable[[ImportProgress], None] = lambda progress: None,
        project: Callable[[str], str | None] = project_of,
        rescan: bool = False,
    ) -> None:
        """`project` returns the project of a directory; `rescan` reads everything again, even deleted sessions."""
        # The owner of a home may import what other users said in a gateway; the record keeps it with those users.
        self._store = store if store.scope.user is not None else store.scoped(Scope.everyone())
        self._state = ImportState(root, store.scoped(Scope.everyone()).feed.store_id(), store.scope.user, rescan=rescan)
        self._progress = progress
        self._project = project

    def plan(self, reader: ConversationReader, items: Sequence[ImportItem]) -> ImportSummary:
        """Return what an import would do; writes nothing."""
        return self._run(reader, items, PreviewWriter(self._store, self._state))

    def apply(self, reader: ConversationReader, items: Sequence[ImportItem]) -> ImportSummary:
        """Import everything that is new; it is durable when this returns."""
        summary = self._run(reader, items, RecordWriter(reader.name, self._store, self._state, self._project))
        self._state.forget_content([name for name, result in summary.sessions.items() if result == "deleted"])
        return summary

    def close(self) -> None:
        self._state.close()

    def _run(self, reader: ConversationReader, items: Sequence[ImportItem], writer: SessionWriter) -> ImportSummary:
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
                ItemImport(reader, remaining, self._store, self._state, writer, summary, seen_before).run(report)
            report(item.size)
            before += item.size
        deleted = self._store.deletion.deleted_sessions(unread_sessions)
        for session_id in sorted(unread_sessions):
            summary.set_result(session_id, "deleted" if session_id in deleted else "unchanged")
        return summary


def _after_checkpoint(item: ImportItem, known: ItemState | None) -> ImportItem:
    """Return the item with its checkpoint, if the file is unchanged up to there."""
    checkpoint = known.checkpoint if known else None
    if known is None or checkpoint is None or item.size < checkpoint.offset:
        return item
    is_same_file = prefix_digest(item.file, checkpoint.offset) == known.prefix_digest
    return replace(item, checkpoint=checkpoint) if is_same_file else item


@contextmanager
def import_lock(root: Path, timeout: float, on_wait: Callable[[str], None] = lambda holder: None) -> Iterator[str]:
    """Allow one import at a time in a home; yields "", or the holder of the lock after `timeout` seconds.

    Two imports at once would add nothing twice, but each would count what the other added. `on_wait` is called with
    the holder before waiting.
    """
    make_private_directory(root)
    path, holder = root / LOCK_FILE, ""
    with ExitStack() as stack:
        for seconds in dict.fromkeys((0.0, timeout)):
            try:
                stack.enter_context(FileLock(path, seconds))
            except LockTimeoutError:
                holder = lock_holder(path)
                if seconds < timeout:
                    on_wait(holder)
            else:
                holder = ""
                break
        yield holder
