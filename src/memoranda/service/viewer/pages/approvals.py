"""Approvals: proposed changes beside what they would change, and entries that are withheld from agents."""

from dataclasses import dataclass

from memoranda.errors import LockTimeoutError, SyncError
from memoranda.memory.curated.approval_queue import Proposal
from memoranda.memory.curated.operations import MemoryRefusal
from memoranda.service.http.problems import Problem
from memoranda.service.viewer.conversation_links import find_recorded
from memoranda.service.viewer.curated.conflicts import CHOICES, ConflictList, decide_conflict, read_conflicts
from memoranda.service.viewer.curated.proposals import (
    ProposalRow,
    WithheldEntry,
    approve_edited,
    list_proposals,
    list_rejected,
    list_withheld,
)
from memoranda.service.viewer.curated.writes import explain_refusal
from memoranda.service.viewer.page import Page, PageRequest, Redirect, Reply, View, page_url
from memoranda.service.viewer.pages.memory import finish_write, read_target, refusal_status
from memoranda.support.origin import PERSON

_PATH = "/approvals"
_TEXT = "text-"


@dataclass(frozen=True, slots=True)
class EditedProposal:
    """A proposal whose texts a person is editing; `refusal` says why it was not applied."""

    id: str
    texts: tuple[str, ...] = ()
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalsView:
    """What the page shows; `edited` is the proposal that is open for editing."""

    proposals: tuple[ProposalRow, ...]
    rejected: tuple[ProposalRow, ...]
    withheld: tuple[WithheldEntry, ...]
    conflicts: ConflictList
    can_write: bool
    edited: EditedProposal | None = None
    refusal: str = ""
    """Why a conflict was not decided."""


def show(request: PageRequest) -> View:
    """The page; with `edit`, a proposal has its texts in a form."""
    edited = request.query.get("edit", "")
    return _view(request, EditedProposal(edited) if edited else None)


def decide(request: PageRequest) -> Reply:
    """Approve, reject or restore a proposal."""
    action, store = request.form.get("action", ""), request.memory.curated
    proposal_id = request.path["proposal"]
    if action == "restore":
        rejected = store.proposals.get_rejected(proposal_id)
        if rejected is None:
            raise Problem(404, "not_found", "There is no such rejected proposal any more.")
        store.proposals.restore(rejected)
        request.audit("memory.restore", f"{rejected.target} proposal {rejected.id}")
        return Redirect(page_url(_PATH), "The proposal awaits approval again.")
    proposal = store.proposals.get(proposal_id)
    if proposal is None:
        raise Problem(404, "not_found", "There is no such proposal any more. It was approved or rejected meanwhile.")
    if action == "reject":
        store.proposals.reject(proposal)
        request.audit("memory.reject", f"{proposal.target} proposal {proposal.id}")
        return Redirect(page_url(_PATH), "Rejected. Nothing was saved; the proposal can be restored below.")
    if action != "approve":
        raise Problem(422, "invalid", "The form says neither approve nor reject.")
    return _approve(request, proposal)


def _approve(request: PageRequest, proposal: Proposal) -> Reply:
    names = [name for name in request.form if name.startswith(_TEXT)]
    texts = tuple(request.form[name] for name in sorted(names, key=lambda name: int(name.removeprefix(_TEXT) or 0)))
    outcome = approve_edited(request.memory.curated, proposal, texts)
    if isinstance(outcome, MemoryRefusal):
        return _view(request, EditedProposal(proposal.id, texts, explain_refusal(outcome)), refusal_status(outcome))
    return finish_write(request, "approve", outcome)


def allow(request: PageRequest) -> Reply:
    """Let agents see a withheld entry as it is."""
    target, handle = read_target(request.form.get("target", "")), request.form.get("handle", "")
    entry = request.memory.curated.allow(target, handle, PERSON)
    if entry is None:
        return Redirect(page_url(_PATH), "That entry is not withheld any more.")
    request.audit("memory.allow", f"{target} {handle[:80]}")
    return Redirect(page_url(_PATH), "Allowed. Agents see the entry from their next session on; History can revoke it.")


def decide_between(request: PageRequest) -> Reply:
    """Keep the text of this machine, of the other one, or both."""
    number, seen = request.form.get("number", ""), request.form.get("seen", "")
    choice = next((name for name in CHOICES if name == request.form.get("keep")), None)
    if choice is None or not (number.isascii() and number.isdigit() and len(number) <= 9):
        raise Problem(422, "invalid", "The form does not say which text to keep.")
    try:
        outcome = decide_conflict(request.memory, int(number), seen, choice)
    except (SyncError, LockTimeoutError) as error:
        return _view(request, None, 409, str(error))
    if isinstance(outcome, MemoryRefusal):
        return _view(request, None, refusal_status(outcome), explain_refusal(outcome))
    request.audit("memory.resolve", f"conflict {number} {choice}")
    if outcome is not None:
        return finish_write(request, "resolve", outcome)
    return Redirect(page_url(_PATH), "Your text stays. The other one is below, under Rejected, and can be restored.")


def _view(request: PageRequest, edited: EditedProposal | None, status: int = 200, refusal: str = "") -> View:
    store = request.memory.curated
    view = ApprovalsView(
        list_proposals(store),
        list_rejected(store),
        list_withheld(store),
        read_conflicts(request.memory),
        request.may("curate"),
        edited,
        refusal,
    )
    recorded = find_recorded(request, (row.proposal.session for row in (*view.proposals, *view.rejected)))
    return View("approvals.html", "Approvals", view, status, recorded)


PAGE = Page("approvals", _PATH, show, label="Approvals")
DECIDE = Page("approvals-decide", "/approvals/{proposal}", submit=decide)
RESOLVE = Page("approvals-resolve", "/approvals/conflicts/decide", submit=decide_between, owner_only=True)
ALLOW = Page("approvals-allow", "/approvals/withheld/allow", submit=allow)
