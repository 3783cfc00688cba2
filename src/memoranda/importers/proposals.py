"""Proposes texts of other programs for curated memory: each text once, and a person decides.

The approval queue, the entries and the journal say which texts were offered before, so nothing is proposed twice even
when `home.db` was lost. That file only knows which import made which proposal, so that undo can withdraw it.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from memoranda.errors import StorageError
from memoranda.importers.reader_protocol import ImportedProposal
from memoranda.importers.state.log import ImportRecorder
from memoranda.memory.curated.approval_queue import Proposal, new_proposal_id
from memoranda.memory.curated.entry_scanner import EntryScanner
from memoranda.memory.curated.forgotten_entries import is_forgotten
from memoranda.memory.curated.operations import Add, EntryPlan, MemoryRefusal, plan
from memoranda.memory.curated.projects import find_target
from memoranda.memory.curated.settings import Target, file_name, project_in
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.writer import WriteRequest, validate_request
from memoranda.safety.redaction import Redactor
from memoranda.support.canonical_text import canonical, unstorable_character
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.origin import Origin

_ACTOR = "import"
_PARAGRAPHS = re.compile(r"\n[ \t]*\n")
OfferStatus = Literal["new", "known", "refused", "failed"]


@dataclass(frozen=True, slots=True)
class Offer:
    """What became of a text: proposed, known from before, refused with a reason, or not tried because of an error."""

    status: OfferStatus
    reason: str = ""


class ProposalWriter:
    """Offers texts to one user's curated memory; without a recorder it only says what would happen."""

    def __init__(self, store: MemoryStore | None, recorder: ImportRecorder | None, *, rescan: bool = False) -> None:
        """Without a store every text is refused. `rescan` offers rejected and removed texts again."""
        self._store = store
        self._recorder = recorder
        self._rescan = rescan
        self._redactor = Redactor()
        self._offered: dict[Target, set[str]] = {}

    def offer(self, imported: ImportedProposal) -> Offer:
        """Propose a text, one entry per paragraph; it is durable when this returns."""
        store = self._store
        if store is None:
            return Offer("refused", "no curated memory was given")
        if identity := project_in(imported.target):
            # Clones and forks share one memory.
            imported = replace(imported, target=find_target(store.storage.targets(), identity))
        target = imported.target
        if not store.settings.enabled(target):
            return Offer("refused", f"{file_name(target)} is switched off here")
        try:
            entries = [entry.text for entry in store.view(target).entries]
            new = self._new_paragraphs(store, imported, entries)
            if not new:
                return Offer("known")
            planned = _plan(store, target, entries, new)
            if isinstance(planned, Offer):
                return planned
            if self._recorder is not None:
                self._propose(store, self._recorder, imported, new, planned)
        except (StorageError, OSError) as error:
            return Offer("failed", f"{imported.origin} could not be proposed: {error}")
        self._offered[target].update(new)
        return Offer("new")

    def _new_paragraphs(self, store: MemoryStore, imported: ImportedProposal, entries: list[str]) -> list[str]:
        """Return the paragraphs that were never offered, as they would be stored."""
        if imported.target not in self._offered:
            self._offered[imported.target] = _offered_before(store, imported.target, rescan=self._rescan)
        known = self._offered[imported.target].union(entries)
        text = self._redactor.text(imported.text)[0]
        paragraphs = dict.fromkeys(map(canonical, _PARAGRAPHS.split(text)))
        return [
            paragraph
            for paragraph in paragraphs
            if paragraph
            and paragraph not in known
            and (self._rescan or not is_forgotten(store.storage.forgotten, paragraph))
        ]

    def _propose(
        self,
        store: MemoryStore,
        recorder: ImportRecorder,
        imported: ImportedProposal,
        new: list[str],
        planned: EntryPlan,
    ) -> None:
        proposal_id = new_proposal_id()
        # First: an import that is killed here has logged a proposal that does not exist, which undo ignores.
        recorder.add_proposal(proposal_id, imported.target)
        with store.exclusive():
            store.proposals.add(
                imported.target,
                [Add(text) for text in new],
                Origin(_ACTOR, sources=(imported.origin,)),
                [edit.before for edit in planned.edits],
                proposal_id,
            )


@dataclass(frozen=True, slots=True)
class UndoneProposals:
    """The proposals of one import: those that still await approval, and how many a person has decided about."""

    pending: tuple[Proposal, ...] = ()
    decided: int = 0


def find_proposals(store: MemoryStore | None, ids: Sequence[str]) -> UndoneProposals:
    """Look the proposals of an import up in the approval queue; a rejected one needs no undo."""
    if store is None:
        return UndoneProposals()
    pending = tuple(proposal for name in ids if (proposal := store.proposals.get(name)))
    rejected = sum(store.proposals.get_rejected(name) is not None for name in ids)
    return UndoneProposals(pending, len(ids) - len(pending) - rejected)


def withdraw(store: MemoryStore | None, undone: UndoneProposals) -> None:
    """Take the pending proposals back."""
    if store is not None and undone.pending:
        with store.exclusive():
            for proposal in undone.pending:
                store.proposals.remove(proposal)


def _plan(store: MemoryStore, target: Target, entries: list[str], new: list[str]) -> EntryPlan | Offer:
    """Check the new entries as their approval would check them now."""
    if any(map(unstorable_character, new)):
        return Offer("refused", "it has characters that cannot be stored")
    request = WriteRequest(
        target, "add", Origin(_ACTOR), lambda current: plan(current, [Add(text) for text in new]), done=""
    )
    limit = store.settings.limit(target)
    verdict = validate_request(request, entries, EntryScanner(store.allowances), limit)
    if not isinstance(verdict, MemoryRefusal):
        return verdict
    if verdict.reason == "over_budget":
        size = sum(map(len, new))
        return Offer("refused", f"{file_name(target)} has no room for its {size:,} characters (limit {limit:,})")
    if verdict.findings:
        return Offer("refused", f"the scanner found: {', '.join(verdict.findings)}")
    return Offer("refused", verdict.message)


def _offered_before(store: MemoryStore, target: Target, *, rescan: bool) -> set[str]:
    """Return the texts that await approval, and those that a person has rejected or removed."""
    decided = [] if rescan else store.proposals.rejected()
    waiting = [
        operation.content
        for proposal in (*store.proposals.all(), *decided)
        if proposal.target == target
        for operation in proposal.operations
        if isinstance(operation, Add)
    ]
    recorded = [] if rescan else store.journal.recorded_entries(target)
    return {canonical(text) for text in (*waiting, *recorded)}
