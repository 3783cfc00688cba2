"""Approvals: what awaits a person, and the forms that decide it.

These are changes that agents propose, beside the entries that they would change; entries that two machines have changed
differently; and entries that are withheld from agents.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, get_args

from memoranda.api.memory import Memory
from memoranda.errors import LockTimeoutError, StorageError, SyncError
from memoranda.memory.curated.approval_queue import Proposal
from memoranda.memory.curated.operations import (
    Add,
    EntryPlan,
    MemoryReceipt,
    MemoryRefusal,
    Operation,
    Remove,
    Replace,
    plan,
)
from memoranda.memory.curated.person_changes import allow_findings
from memoranda.memory.curated.settings import Target, file_name
from memoranda.memory.curated.store import MemoryStore
from memoranda.service.http.problems import Problem
from memoranda.service.viewer.conversation_lists import find_recorded
from memoranda.service.viewer.memory_writes import (
    explain_refusal,
    finish_write,
    go_back,
    read_target,
    refusal_status,
)
from memoranda.service.viewer.page import Page, PageRequest, Redirect, Reply, View, page_url
from memoranda.service.viewer.text_diff import diff_words
from memoranda.storage.files.file_lock import FileLock
from memoranda.support.canonical_text import digest
from memoranda.support.origin import PERSON, Origin
from memoranda.upkeep.sync.conflicts import Choice, Conflict, list_conflicts, resolve_conflict
from memoranda.upkeep.sync.synchroniser import LOCK_NAME
from memoranda.upkeep.sync_state import SyncState

CHOICES: tuple[Choice, ...] = get_args(Choice)
_PATH = "/approvals"
_TEXT = "text-"


def read_conflicts(memory: Memory) -> list[dict[str, Any]] | None:
    """What waits for the home's owner; the memory of other users, and that on a server, is not synchronised.

    None while a synchronisation is running.
    """
    root = memory.home.root
    if memory.user is not None or memory.config.store.url or not SyncState(root).exists():
        return []
    try:
        # A run writes what it has read bundle by bundle; a page does not wait for its end.
        with FileLock(root / LOCK_NAME, 0):
            found = list_conflicts(root, memory.sessions, memory.curated)
    except LockTimeoutError:
        return None
    return [_describe_conflict(memory, conflict) for conflict in found]


def _decide_conflict(memory: Memory, number: int, seen: str, choice: Choice) -> MemoryReceipt | MemoryRefusal | None:
    """Decide a conflict whose texts are still those that the form showed. None if no file changed.

    When this machine's text stays, the other text becomes a rejected proposal, which can be restored. Raises SyncError
    if the conflict is gone or its texts have changed.
    """
    root, db, store = memory.home.root, memory.sessions, memory.curated
    conflict = next((each for each in list_conflicts(root, db, store) if each.number == number), None)
    if conflict is None or _name_texts(conflict) != seen:
        raise SyncError("The entry was changed or the conflict was decided meanwhile. Look at it again.")
    if choice == "mine":
        _keep_other_text(memory, conflict)
    return resolve_conflict(root, db, store, number, choice)


def _keep_other_text(memory: Memory, conflict: Conflict) -> None:
    operation: Operation
    if conflict.theirs is None:
        if conflict.mine is None:
            return
        operation = Remove(conflict.mine)
    elif conflict.mine is None:
        operation = Add(conflict.theirs)
    else:
        operation = Replace(conflict.mine, conflict.theirs)
    queue = memory.curated.proposals
    origin = Origin(f"sync:{conflict.machine}")
    queue.reject(queue.add(conflict.target, [operation], origin, [conflict.mine]))


def _describe_conflict(memory: Memory, conflict: Conflict) -> dict[str, Any]:
    """A conflict with its texts as they may be shown; None where the entry was removed or could not be added."""
    mine, theirs = (_visible(memory.curated, conflict.target, text) for text in (conflict.mine, conflict.theirs))
    return {
        "number": conflict.number,
        "file": file_name(conflict.target),
        "machine": conflict.machine,
        "mine": mine,
        "theirs": theirs,
        "parts": diff_words(mine, theirs),
        # It names the two texts, so that a form decides only what it has shown.
        "seen": _name_texts(conflict),
    }


def _name_texts(conflict: Conflict) -> str:
    return sha256(repr((conflict.mine, conflict.theirs)).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def describe_proposals(store: MemoryStore, proposals: Sequence[Proposal]) -> list[dict[str, Any]]:
    """Proposals beside the entries as they are now; an `outdated` one would change others than it was made for."""
    entries: dict[Target, list[str]] = {}
    for target in {proposal.target for proposal in proposals}:
        try:
            entries[target] = [entry.text for entry in store.view(target).entries]
        except StorageError:
            entries[target] = []
    return [_describe_proposal(store, proposal, entries[proposal.target]) for proposal in proposals]


def _describe_proposal(store: MemoryStore, proposal: Proposal, entries: list[str]) -> dict[str, Any]:
    target = proposal.target
    whole = plan(entries, proposal.operations)
    outdated = not isinstance(whole, EntryPlan) or [edit.before for edit in whole.edits] != list(proposal.replaced)
    texts = []
    for operation in proposal.operations:
        planned = plan(entries, [operation])
        edit = planned.edits[0] if isinstance(planned, EntryPlan) and planned.edits else None
        content = None if isinstance(operation, Remove) else operation.content
        before = edit.before if edit else operation.old_text if isinstance(operation, Replace | Remove) else None
        parts = diff_words(_visible(store, target, before), _visible(store, target, content))
        texts.append({"action": type(operation).__name__.lower(), "content": content, "parts": parts})
        entries = list(planned.entries) if isinstance(planned, EntryPlan) else entries
    return {"proposal": proposal, "file": file_name(target), "texts": texts, "outdated": outdated}


def approve_edited(store: MemoryStore, proposal: Proposal, contents: Sequence[str]) -> MemoryReceipt | MemoryRefusal:
    """Approve a proposal with other texts: one for each operation that writes a text, in order."""
    remaining = iter(contents)
    operations = tuple(_with_content(operation, remaining) for operation in proposal.operations)
    return store.approve(replace(proposal, operations=operations))


def list_withheld(store: MemoryStore) -> list[dict[str, Any]]:
    """The entries that the scanner withholds from agents, each with its text, for the person who decides."""
    found = []
    for target in store.storage.targets():
        try:
            entries = store.view(target).entries
        except StorageError:
            # The page Memory says that the file cannot be read.
            continue
        found += [
            {"target": target, "file": file_name(target), "id": digest(entry.text), "entry": entry}
            for entry in entries
            if entry.findings
        ]
    return found


def _with_content(operation: Operation, contents: Iterator[str]) -> Operation:
    if isinstance(operation, Remove):
        return operation
    return replace(operation, content=next(contents, operation.content))


def _visible(store: MemoryStore, target: Target, text: str | None) -> str | None:
    return None if text is None else store.visible_text(target, text)


def show(request: PageRequest) -> View:
    """The page; with `edit`, a proposal has its texts in a form."""
    edited = request.query.get("edit", "")
    return _view(request, _edited(edited) if edited else None)


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
        return go_back(request, page_url(_PATH), "Rejected. Nothing was saved; Approvals can restore the proposal.")
    if action != "approve":
        raise Problem(422, "invalid", "The form says neither approve nor reject.")
    return _approve(request, proposal)


def _approve(request: PageRequest, proposal: Proposal) -> Reply:
    names = [name for name in request.form if name.startswith(_TEXT)]
    texts = tuple(request.form[name] for name in sorted(names, key=lambda name: int(name.removeprefix(_TEXT) or 0)))
    outcome = approve_edited(request.memory.curated, proposal, texts)
    if isinstance(outcome, MemoryRefusal):
        return _view(request, _edited(proposal.id, texts, explain_refusal(outcome)), refusal_status(outcome))
    return finish_write(request, "approve", outcome)


def allow(request: PageRequest) -> Reply:
    """Let agents see a withheld entry as it is."""
    target, handle = read_target(request.form.get("target", "")), request.form.get("handle", "")
    entry = allow_findings(request.memory.curated, target, handle, PERSON)
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
        outcome = _decide_conflict(request.memory, int(number), seen, choice)
    except (SyncError, LockTimeoutError) as error:
        return _view(request, None, 409, str(error))
    if isinstance(outcome, MemoryRefusal):
        return _view(request, None, refusal_status(outcome), explain_refusal(outcome))
    request.audit("memory.resolve", f"conflict {number} {choice}")
    if outcome is not None:
        return finish_write(request, "resolve", outcome)
    return Redirect(page_url(_PATH), "Your text stays. The other one is below, under Rejected, and can be restored.")


def _edited(proposal_id: str, texts: tuple[str, ...] = (), refusal: str = "") -> dict[str, Any]:
    """A proposal whose texts a person is editing; `refusal` says why it was not applied."""
    return {"id": proposal_id, "texts": texts, "refusal": refusal}


def _view(request: PageRequest, edited: dict[str, Any] | None, status: int = 200, refusal: str = "") -> View:
    store = request.memory.curated
    proposals = describe_proposals(store, store.proposals.all())
    rejected = describe_proposals(store, store.proposals.rejected()[::-1])
    view = {
        "proposals": proposals,
        "rejected": rejected,
        "withheld": list_withheld(store),
        "conflicts": read_conflicts(request.memory),
        "can_write": request.may("curate"),
        "edited": edited,
        "refusal": refusal,
    }
    recorded = find_recorded(request, (row["proposal"].session for row in (*proposals, *rejected)))
    return View("approvals.html", "Approvals", view, status, recorded)


PAGE = Page("approvals", _PATH, show, label="Approvals")
DECIDE = Page("approvals-decide", "/approvals/{proposal}", submit=decide)
RESOLVE = Page("approvals-resolve", "/approvals/conflicts/decide", submit=decide_between, owner_only=True)
ALLOW = Page("approvals-allow", "/approvals/withheld/allow", submit=allow)
