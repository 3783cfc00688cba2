"""One entry of curated memory: its text in a form, where it comes from, and what to do when another tab changed it."""

from dataclasses import dataclass
from datetime import datetime

from memoranda.memory.curated.operations import Add, MemoryRefusal, Operation, Remove, Replace
from memoranda.memory.curated.settings import FILE_NAMES, Target
from memoranda.service.http.problems import Problem
from memoranda.service.viewer.conversation_links import find_recorded
from memoranda.service.viewer.curated.changes import read_changes
from memoranda.service.viewer.curated.entries import EditConflict, find_conflict, find_entry
from memoranda.service.viewer.curated.origins import EntryOrigin, find_message, find_origins
from memoranda.service.viewer.curated.writes import apply_seen, explain_refusal
from memoranda.service.viewer.page import Page, PageRequest, Reply, View
from memoranda.service.viewer.pages.memory import finish_write, read_allowed, read_target, refusal_status


@dataclass(frozen=True, slots=True)
class EntryView:
    """What the page shows. `id` names the text that the form replaces; it is empty if the entry is gone."""

    target: Target
    file: str
    id: str
    text: str
    fingerprint: str
    findings: tuple[str, ...]
    can_write: bool
    origin: EntryOrigin | None = None
    origin_message: int | None = None
    conflict: EditConflict | None = None
    refusal: str = ""
    refused_findings: tuple[str, ...] = ()


def show(request: PageRequest) -> View:
    """The page; raises Problem 404 for an entry that was changed or removed."""
    target, entry_id = read_target(request.path["target"]), request.path["entry"]
    store = request.memory.curated
    entry = find_entry(store, target, entry_id)
    if entry is None:
        raise Problem(404, "not_found", "There is no such entry any more. It was changed or removed; see the history.")
    origin = find_origins(read_changes(store), target).get(entry.text)
    view = EntryView(
        target,
        FILE_NAMES[target],
        entry_id,
        entry.text,
        store.view(target).fingerprint,
        entry.findings,
        request.may("curate"),
        origin,
        _message_of(request, origin),
    )
    recorded = find_recorded(request, [origin.session] if origin is not None else [])
    return View("memory_entry.html", "Entry", view, recorded=recorded)


def submit(request: PageRequest) -> Reply:
    """Save or remove the entry that the form shows, if it is still the same; otherwise show both texts."""
    target, entry_id = read_target(request.path["target"]), request.path["entry"]
    action, text = request.form.get("action", "save"), request.form.get("text", "")
    store = request.memory.curated
    operation: Operation
    if action == "add":
        operation = Add(text)
    else:
        if find_entry(store, target, entry_id) is None:
            return _conflict(request, target, entry_id, text)
        handle = f"entry:{entry_id}"
        operation = Remove(handle) if action == "remove" else Replace(handle, text)
    outcome = apply_seen(store, target, operation, request.form.get("file", ""), read_allowed(request))
    if not isinstance(outcome, MemoryRefusal):
        return finish_write(request, {"remove": "remove", "add": "add"}.get(action, "replace"), outcome)
    if outcome.reason == "no_match":
        # Another tab changed it between the two reads.
        return _conflict(request, target, entry_id, text)
    return _form(
        request, target, entry_id, text, refusal_status(outcome),
        refusal=explain_refusal(outcome), findings=outcome.findings,
    )  # fmt: skip


def _conflict(request: PageRequest, target: Target, entry_id: str, text: str) -> View:
    conflict = find_conflict(request.memory.curated, target, entry_id, text)
    return _form(request, target, conflict.current_id, text, 409, conflict=conflict)


def _form(
    request: PageRequest,
    target: Target,
    entry_id: str,
    text: str,
    status: int,
    *,
    conflict: EditConflict | None = None,
    refusal: str = "",
    findings: tuple[str, ...] = (),
) -> View:
    view = EntryView(
        target,
        FILE_NAMES[target],
        entry_id,
        text,
        request.memory.curated.view(target).fingerprint,
        (),
        request.may("curate"),
        conflict=conflict,
        refusal=refusal,
        refused_findings=findings,
    )
    return View("memory_entry.html", "Entry", view, status)


def _message_of(request: PageRequest, origin: EntryOrigin | None) -> int | None:
    if origin is None or not origin.session or not request.has_record:
        return None
    try:
        at = datetime.fromisoformat(origin.at.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None
    return find_message(request.memory.sessions, origin.session, at)


PAGE = Page("memory-entry", "/memory/{target}/{entry}", show, submit)
