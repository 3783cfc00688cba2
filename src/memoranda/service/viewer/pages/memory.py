"""Memory: the entries of MEMORY.md and USER.md with their budgets, and the form that adds one."""

from dataclasses import dataclass

from memoranda.memory.curated.operations import (
    Add,
    AwaitsApproval,
    MemoryReceipt,
    MemoryRefusal,
    MemoryRefusalReason,
    MemoryWriteResult,
)
from memoranda.memory.curated.settings import TARGETS, Target
from memoranda.service.http.problems import Problem
from memoranda.service.viewer.conversation_links import find_recorded
from memoranda.service.viewer.curated.entries import MemoryFile, read_files
from memoranda.service.viewer.curated.history import ChangeRow, read_change
from memoranda.service.viewer.curated.writes import apply_seen, explain_refusal
from memoranda.service.viewer.page import Page, PageRequest, Redirect, Reply, View, page_url

PATH = "/memory"
ALLOW = "allow:"
_STATUS: dict[MemoryRefusalReason, int] = {
    "invalid": 422,
    "blocked": 422,
    "disabled": 403,
    "over_budget": 409,
    "no_match": 409,
    "drift": 409,
    "conflict": 409,
}


@dataclass(frozen=True, slots=True)
class RefusedText:
    """A text that was not saved, so that its form still has it, with the reason and what a person may allow."""

    target: Target
    text: str
    reason: str
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryView:
    """What the page shows; `receipt` is the change that was just made."""

    files: tuple[MemoryFile, ...]
    can_write: bool
    receipt: ChangeRow | None = None
    refused: RefusedText | None = None


def read_target(name: str) -> Target:
    """The memory with a name; raises Problem 404."""
    for target in TARGETS:
        if target == name:
            return target
    raise Problem(404, "not_found", "There are two memories: memory and user.")


def read_allowed(request: PageRequest) -> frozenset[str]:
    """The scanner findings that a person allows with the boxes of a form."""
    return frozenset(name.removeprefix(ALLOW) for name in request.form if name.startswith(ALLOW))


def finish_write(request: PageRequest, action: str, outcome: MemoryReceipt | AwaitsApproval) -> Redirect:
    """Go back to the entries, which show the change and offer to undo it."""
    change = outcome.change if isinstance(outcome, MemoryReceipt) else None
    if change is not None:
        request.service.metrics.add("memoranda_curated_changes_total")
        request.audit(f"memory.{action}", f"{outcome.target} change {change}")
        return Redirect(page_url(PATH, change=change))
    return Redirect(page_url(PATH), outcome.message)


def refusal_status(refusal: MemoryRefusal) -> int:
    """The status of a page that shows a refusal."""
    return _STATUS.get(refusal.reason, 503)


def show(request: PageRequest) -> View:
    """The page."""
    number = request.number("change", 0)
    receipt = read_change(request.memory.curated, number) if number else None
    return _view(request, receipt=receipt)


def submit(request: PageRequest) -> Reply:
    """Add an entry; a refusal shows the page again with the text in its form."""
    target, text = read_target(request.form.get("target", "")), request.form.get("text", "")
    fingerprint = request.form.get("file", "")
    outcome: MemoryWriteResult = apply_seen(
        request.memory.curated, target, Add(text), fingerprint, read_allowed(request)
    )
    if isinstance(outcome, MemoryRefusal):
        refused = RefusedText(target, text, explain_refusal(outcome), outcome.findings)
        return _view(request, refused=refused, status=refusal_status(outcome))
    return finish_write(request, "add", outcome)


def _view(
    request: PageRequest, *, receipt: ChangeRow | None = None, refused: RefusedText | None = None, status: int = 200
) -> View:
    files = read_files(request.memory.curated)
    origins = (entry.origin for file in files for entry in file.entries)
    recorded = find_recorded(request, (origin.session for origin in origins if origin is not None))
    view = MemoryView(files, request.may("curate"), receipt, refused)
    return View("memory.html", "Memory", view, status, recorded)


PAGE = Page("memory", PATH, show, submit, label="Memory")
