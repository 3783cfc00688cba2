"""The way into the record, the same for every reader: scan, plan, apply, report.

A plan and an import are one pass over the same items; only what becomes of the messages differs. Messages arrive in
batches, each in one commit, and only then is it noted how far the file was read. Killed at any moment, an import goes
on from the last note; what it meets again is known by its external id and not added twice.

Some programs copy a session into a new file when it is resumed or forked. Sessions that begin with the same message are
a family: what a relative has already stays there, and the new session is its branch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memoranda.importers.destination import Destination, Preview, Record
from memoranda.importers.finding import seal
from memoranda.importers.memo import Memo, Remembered
from memoranda.importers.passage import Passage
from memoranda.importers.shape import Item, Reader
from memoranda.importers.tally import Tally
from memoranda.sessions.scope import Scope
from memoranda.sessions.store import SessionStore
from memoranda.support.projects import project_of


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an import is: in the whole of its items, and in the messages that are new."""

    source: str
    file: Path
    bytes: int
    all_bytes: int
    messages: int


class Engine:
    """Imports into one store; what it remembers lies beside it in the home."""

    def __init__(
        self,
        root: Path,
        store: SessionStore,
        *,
        progress: Callable[[Progress], None] = lambda progress: None,
        project: Callable[[str], str | None] = project_of,
        again: bool = False,
    ) -> None:
        """`project` knows the project that a directory belongs to; `again` reads everything anew."""
        self._store = store
        self._memo = Memo(root, store.scoped(Scope.everyone()).store_id(), store.scope.user, again=again)
        self._progress = progress
        self._project = project

    def plan(self, reader: Reader, items: Sequence[Item]) -> Tally:
        """What an import would do; nothing is written."""
        return self._run(reader, items, Preview(self._store, self._memo))

    def apply(self, reader: Reader, items: Sequence[Item]) -> Tally:
        """Take in everything that is new; what it did is durable when this returns."""
        tally = self._run(reader, items, Record(reader.name, self._store, self._memo, self._project))
        self._memo.forget([name for name, fate in tally.sessions.items() if fate == "deleted"])
        return tally

    def close(self) -> None:
        self._memo.close()

    def _run(self, reader: Reader, items: Sequence[Item], destination: Destination) -> Tally:
        tally = Tally(reader.name, items=len(items))
        total, before = sum(item.size for item in items), 0
        unread: set[str] = set()
        for item in items:

            def report(offset: int, file: Path = item.file, before: int = before) -> None:
                self._progress(Progress(reader.name, file, before + offset, total, tally.messages))

            known = self._memo.item(reader.name, item)
            if known is not None and known.is_unchanged(item):
                tally.items_unchanged += 1
                unread.update(known.sessions)
            else:
                begun = _from_mark(item, known)
                tally.begin(begun)
                held = known.sessions if known and begun.begin else ()
                Passage(reader, begun, self._store, self._memo, destination, tally, held).go(report)
            report(item.size)
            before += item.size
        deleted = self._store.deleted_sessions(unread)
        for session_id in sorted(unread):
            tally.settle(session_id, "deleted" if session_id in deleted else "unchanged")
        return tally


def _from_mark(item: Item, known: Remembered | None) -> Item:
    """The item from where it was left, if it is still the same file up to there."""
    mark = known.mark if known else None
    if known is None or mark is None or item.size < mark.offset or seal(item.file, mark.offset) != known.seal:
        return item
    return replace(item, begin=mark)
