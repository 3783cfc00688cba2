"""Undoes one import as a whole: what it added to the record is removed, what the user changed since stays."""

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from memoranda.importers.importer import settle_killed_imports, state_of_store
from memoranda.importers.proposals import UndoneProposals, find_proposals, withdraw
from memoranda.importers.state.log import ImportPart, LoggedImport
from memoranda.importers.thread_states import ThreadStates
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from memoranda.memory.record.transfer.imports import AddedMessages, UndoneSession
from memoranda.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class UndoReport:
    """What undoing an import removes, or would remove; `kept` sessions stay because the user changed them."""

    import_id: str
    sessions: Sequence[UndoneSession]
    proposals: UndoneProposals = field(default_factory=UndoneProposals)
    items: Sequence[str] = ()
    """The items from which the version of the import is removed."""
    items_kept: int = 0
    states: int = 0
    """How many states of threads are removed; those of a thread that continues here are kept."""
    states_kept: int = 0

    @property
    def removed(self) -> list[UndoneSession]:
        return [session for session in self.sessions if session.reason is None and session.whole]

    @property
    def shortened(self) -> list[UndoneSession]:
        return [session for session in self.sessions if session.reason is None and not session.whole]

    @property
    def kept(self) -> list[UndoneSession]:
        return [session for session in self.sessions if session.reason not in (None, "missing")]

    @property
    def messages(self) -> int:
        return sum(session.messages for session in self.sessions)

    @property
    def has_work(self) -> bool:
        """Whether something would be removed."""
        found = self.messages or self.removed or self.shortened or self.proposals.pending or self.items or self.states
        return bool(found)

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON-like values."""
        return {
            "import": self.import_id,
            "messages": self.messages,
            "sessions_removed": [session.session_id for session in self.removed],
            "sessions_shortened": [session.session_id for session in self.shortened],
            "sessions_deleted_before": sum(session.reason == "missing" for session in self.sessions),
            "items_removed": len(self.items),
            "items_kept": self.items_kept,
            "states_removed": self.states,
            "states_kept": self.states_kept,
            "proposals_withdrawn": [proposal.id for proposal in self.proposals.pending],
            "proposals_decided": self.proposals.decided,
            "kept": [{"session": session.session_id, "reason": session.reason} for session in self.kept],
        }


class ImportHistory:
    """The imports into one store, each of which can be undone; the caller holds the import lock to change something."""

    def __init__(self, root: Path, store: SessionStore, curated: MemoryStore | None = None) -> None:
        """`curated` is the memory that got the proposals of imports; without it they stay."""
        self._curated = curated
        # As for an import: the owner of a home imports the sessions of its users, too.
        self._store = store if store.scope.user is not None else store.scoped(Scope.everyone())
        self._state = state_of_store(root, store)
        self._states = ThreadStates(root, store)

    def close(self) -> None:
        self._states.close()
        self._state.close()

    def imports(self) -> list[LoggedImport]:
        """Return the imports, the newest first."""
        return self._state.log.imports()

    def preview(self, import_id: str) -> UndoReport:
        """Return what undoing an import would remove; writes nothing."""
        sessions = self._store.import_undo.preview(self._added(import_id))
        items, states = self._remove_items(import_id, preview=True), self._remove_states(import_id, preview=True)
        proposals = find_proposals(self._curated, self._state.log.proposals(import_id))
        return UndoReport(import_id, sessions, proposals, *items, *states)

    def undo(self, import_id: str) -> UndoReport:
        """Remove what an import added, and read its files again in the next import.

        If it is interrupted, calling it again removes the rest.
        """
        settle_killed_imports(self._store, self._state)
        added = self._added(import_id)
        planned = self.preview(import_id)
        changed = [session.session_id for session in (*planned.removed, *planned.shortened)]
        without_session = planned.items or planned.states
        sources = next(logged.sources for logged in self.imports() if logged.id == import_id) if without_session else ()
        # First: without this state a file is only read again. With it, what was removed would never return.
        self._state.reread(changed, [session.session_id for session in planned.removed], sources)
        withdraw(self._curated, planned.proposals)
        items, states = self._remove_items(import_id), self._remove_states(import_id)
        report = UndoReport(import_id, self._store.import_undo.remove(added), planned.proposals, *items, *states)
        kept = {session.session_id for session in report.kept}
        self._state.log.remove_parts(
            import_id,
            [session.session_id for session in report.sessions if session.session_id not in kept],
            proposals=self._curated is not None,
        )
        if report.messages:
            self._store.deletion.release_space()
        return report

    def _remove_items(self, import_id: str, *, preview: bool = False) -> tuple[list[str], int]:
        """Remove the versions that an import wrote; return the ids of the items, and how many changed here since."""
        written = self._state.log.items(import_id)
        began = next((logged.began for logged in self.imports() if logged.id == import_id), 0.0)
        removed = self._store.item_transfer.remove_versions(written, began, preview=preview) if written else []
        return removed, len(written) - len(removed)

    def _remove_states(self, import_id: str, *, preview: bool = False) -> tuple[int, int]:
        """Remove the checkpoints that an import stored; return how many, and how many stay."""
        stored = self._state.log.states(import_id)
        removed = self._states.remove(stored, preview=preview)
        return removed, len(stored) - removed

    def _added(self, import_id: str) -> list[AddedMessages]:
        return [self._messages_of(part) for part in self._state.log.parts(import_id)]

    def _messages_of(self, part: ImportPart) -> AddedMessages:
        others = [
            (other.first_message, other.last_message)
            for other in self._state.log.all_parts(part.session_id)
            if other.first_message != part.first_message
        ]
        seen = self._state.seen_session(part.session_id)
        title = seen.title if seen else part.title
        return AddedMessages(
            part.session_id, part.first_message, part.last_message, others, part.title, part.model, title
        )
