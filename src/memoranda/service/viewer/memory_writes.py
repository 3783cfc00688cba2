"""Writes of a person at a page: what its form showed counts as seen, and refusals are in the words of a page."""

from memoranda.memory.curated.operations import (
    AwaitsApproval,
    MemoryReceipt,
    MemoryRefusal,
    MemoryRefusalReason,
    MemoryWriteResult,
    Operation,
)
from memoranda.memory.curated.settings import Target, file_name, is_target
from memoranda.memory.curated.store import MemoryStore
from memoranda.service.http.problems import Problem
from memoranda.service.viewer.page import PageRequest, Redirect, page_url
from memoranda.support.origin import PERSON

MEMORY_PATH = "/memory"
_ALLOW = "allow:"
_STATUS: dict[MemoryRefusalReason, int] = {
    "invalid": 422,
    "blocked": 422,
    "disabled": 403,
    "over_budget": 409,
    "no_match": 409,
    "drift": 409,
    "conflict": 409,
}


def apply_seen(
    store: MemoryStore, target: Target, operation: Operation, fingerprint: str, allow: frozenset[str]
) -> MemoryWriteResult:
    """Carry out one operation of a form; `fingerprint` is that of the file which the form showed.

    The store refuses once to write over a change of another program that the writer may not have seen. A form that was
    made after that change has shown it, so the write is repeated.
    """
    was_seen = store.view(target).fingerprint == fingerprint
    outcome = store.apply(target, [operation], PERSON, allow)
    if was_seen and isinstance(outcome, MemoryRefusal) and outcome.reason == "drift":
        outcome = store.apply(target, [operation], PERSON, allow)
    return outcome


def explain_refusal(refusal: MemoryRefusal) -> str:
    """Why a write was refused, for a person at a page."""
    name = file_name(refusal.target)
    if refusal.reason == "blocked":
        return (
            f"The text looks like an attack on its later readers, or contains a secret ({', '.join(refusal.findings)})."
            " Nothing was written. Change the text, or allow it with the box below."
        )
    if refusal.reason == "over_budget":
        sizes = refusal.message.partition(" Nothing was written.")[0]
        return f"{sizes} Nothing was written. Shorten or remove an entry first, or raise the limit in the settings."
    if refusal.reason == "no_match":
        return "There is nothing to undo: the change was undone already, or cannot be undone."
    if refusal.reason == "drift":
        return f"Another program changed {name}. Nothing was written. Look at the entries, then save again."
    if refusal.reason == "conflict":
        return "An entry that this would change was changed or removed since. Nothing was written."
    return refusal.message


def read_target(name: str) -> Target:
    """The memory with a name; raises Problem 404."""
    if not is_target(name):
        raise Problem(404, "not_found", "There is no such memory: there is memory, user, and that of each project.")
    return name


def read_allowed(request: PageRequest) -> frozenset[str]:
    """The scanner findings that a person allows with the boxes of a form."""
    return frozenset(name.removeprefix(_ALLOW) for name in request.form if name.startswith(_ALLOW))


def finish_write(request: PageRequest, action: str, outcome: MemoryReceipt | AwaitsApproval) -> Redirect:
    """Go back to the entries, which show the change and offer to undo it, or to Today, which does so, too."""
    change = outcome.change if isinstance(outcome, MemoryReceipt) else None
    if change is not None:
        request.service.metrics.add("memoranda_curated_changes_total")
        request.audit(f"memory.{action}", f"{outcome.target} change {change}")
        done = f"Saved as change {change} in {file_name(outcome.target)}. Agents see it from their next session on."
        return go_back(request, page_url(MEMORY_PATH, change=change), done, elsewhere="")
    return go_back(request, page_url(MEMORY_PATH), outcome.message)


def go_back(request: PageRequest, url: str, notice: str, elsewhere: str | None = None) -> Redirect:
    """To a page, with a sentence that it shows; a form of Today leads back there. `elsewhere` is another sentence."""
    if request.form.get("back") == "today":
        return Redirect(page_url("/"), notice)
    return Redirect(url, notice if elsewhere is None else elsewhere)


def refusal_status(refusal: MemoryRefusal) -> int:
    """The status of a page that shows a refusal."""
    return _STATUS.get(refusal.reason, 503)
