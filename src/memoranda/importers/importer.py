"""The way into the record, the same for every reader: scan, plan, apply, report.

A plan and an import are one pass over the same items; only what becomes of the messages differs. Messages arrive in
batches, each in one commit, and only then is it noted how far the file was read. Killed at any moment, an import goes
on from the last note; what it meets again is known by its external id and not added twice.

Some programs copy a session into a new file when it is resumed or forked. Sessions that begin with the same message are
a family: what a relative has already stays there, and the new session is its branch.
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
from memoranda.importers.source_files import seal
from memoranda.importers.summary import ImportSummary
from memoranda.sessions.scope import Scope
from memoranda.sessions.store import SessionStore
from memoranda.support.durable_files import make_private_directory
from memoranda.support.file_lock import FileLock, lock_holder
from memoranda.support.projects import project_of


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """How far an import is: in the whole of its items, and in the messages that are new."""

    source: str
    file: Path
    bytes: int
    all_bytes: int
    messages: int


class Importer:
    """Imports into one store; what it remembers lies beside it in the home."""

    def __init__(
        self,
        root: Path,
        store: SessionStore,
        *,
        progress: Callable[[ImportProgress], None] = lambda progress: None,
        project: Callable[[str], str | None] = project_of,
        again: bool = False,
    ) -> None:
        """`project` knows the project that a directory belongs to; `again` reads everything anew."""
        self._store = store
        self._memo = ImportState(root, store.scoped(Scope.everyone()).store_id(), store.scope.user, again=again)
        self._progress = progress
        self._project = project

    def plan(self, reader: ConversationReader, items: Sequence[ImportItem]) -> ImportSummary:
        """What an import would do; nothing is written."""
        return self._run(reader, items, PreviewWriter(self._store, self._memo))

    def apply(self, reader: ConversationReader, items: Sequence[ImportItem]) -> ImportSummary:
        """Take in everything that is new; what it did is durable when this returns."""
        tally = self._run(reader, items, RecordWriter(reader.name, self._store, self._memo, self._project))
        self._memo.forget([name for name, fate in tally.sessions.items() if fate == "deleted"])
        return tally

    def close(self) -> None:
        self._memo.close()

    def _run(
        self, reader: ConversationReader, items: Sequence[ImportItem], destination: SessionWriter
    ) -> ImportSummary:
        tally = ImportSummary(reader.name, items=len(items))
        total, before = sum(item.size for item in items), 0
        unread: set[str] = set()
        for item in items:

            def report(offset: int, file: Path = item.file, before: int = before) -> None:
                self._progress(ImportProgress(reader.name, file, before + offset, total, tally.messages))

            known = self._memo.item(reader.name, item)
            if known is not None and known.is_unchanged(item):
                tally.items_unchanged += 1
                unread.update(known.sessions)
            else:
                begun = _from_mark(item, known)
                tally.begin(begun)
                held = known.sessions if known and begun.begin else ()
                ItemImport(reader, begun, self._store, self._memo, destination, tally, held).go(report)
            report(item.size)
            before += item.size
        deleted = self._store.deleted_sessions(unread)
        for session_id in sorted(unread):
            tally.settle(session_id, "deleted" if session_id in deleted else "unchanged")
        return tally


def _from_mark(item: ImportItem, known: ItemState | None) -> ImportItem:
    """The item from where it was left, if it is still the same file up to there."""
    mark = known.mark if known else None
    if known is None or mark is None or item.size < mark.offset or seal(item.file, mark.offset) != known.seal:
        return item
    return replace(item, begin=mark)


LOCK = "imports.lock"


@contextmanager
def import_lock(root: Path, wait: float, waiting: Callable[[str], None] = lambda other: None) -> Iterator[str]:
    """Be the only import as long as this lasts; gives "", or who else is importing when it took longer than `wait`.

    `waiting` is told who that is before anything is waited for.
    """
    make_private_directory(root)
    path, other = root / LOCK, ""
    with ExitStack() as held:
        for patience in dict.fromkeys((0.0, wait)):
            try:
                held.enter_context(FileLock(path, patience))
            except LockTimeoutError:
                other = lock_holder(path)
                if patience < wait:
                    waiting(other)
            else:
                other = ""
                break
        yield other
