"""History: every change of curated memory with the difference it made, and a button that undoes it.

Lines of the journal that a page has read before are not decoded again.
"""

import re
from collections.abc import Sequence
from typing import Any

from memoranda.memory.curated import change_history
from memoranda.memory.curated.facts import seconds_of
from memoranda.memory.curated.journal import MemoryChange
from memoranda.memory.curated.operations import MemoryRefusal, summarise_edits
from memoranda.memory.curated.person_changes import revoke_findings
from memoranda.memory.curated.settings import Target, file_name
from memoranda.memory.curated.store import MemoryStore
from memoranda.service.http.problems import Problem
from memoranda.service.viewer.conversation_lists import find_recorded
from memoranda.service.viewer.memory_writes import explain_refusal, finish_write, read_target, refusal_status
from memoranda.service.viewer.page import Page, PageRequest, Redirect, Reply, View, page_url
from memoranda.service.viewer.text_diff import DiffPart, diff_words
from memoranda.storage.files.journal import undone_numbers
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.origin import PERSON

PAGE_SIZE = 25
_MAX_EDITS = 100
_HANDLE = re.compile(r"entry:[0-9a-f]{8,64}")
_PATH = "/memory/history"


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One change; `edits` has the difference of each entry, and `more_edits` how many are left out.

    `summary` says what became of several entries. `can_undo` says that the page offers to undo it, `undone` that this
    was done. `allowed_handle` names the entry whose findings a person allowed, which can be revoked while it
    `is_allowed`.
    """

    change: MemoryChange
    file: str
    edits: tuple[tuple[DiffPart, ...], ...]
    more_edits: int
    summary: str
    can_undo: bool
    undone: bool
    allowed_handle: str = ""


def read_history(store: MemoryStore, target: Target | None = None, before: int = 0) -> dict[str, Any]:
    """One page of the changes, the newest first, those before a number if one is given.

    `older` is the number before which the next page begins, 0 on the last page.
    """
    everything = change_history.log(store)
    matching = [change for change in everything if target in (None, change.target)]
    earlier = [change for change in matching if not before or change.number < before]
    shown = earlier[-PAGE_SIZE:][::-1]
    older = shown[-1].number if shown and len(earlier) > PAGE_SIZE else 0
    return {"changes": _rows(store, everything, shown), "older": older, "total": len(matching)}


def read_latest(store: MemoryStore, before: float, limit: int) -> list[tuple[float, ChangeRow]]:
    """The latest changes of entries before a time, the newest first, each with its time."""
    everything = change_history.log(store)
    found: list[tuple[float, MemoryChange]] = []
    for change in reversed(everything):
        at = seconds_of(change.at)
        if at is not None and at < before and change.edits:
            found.append((at, change))
        if len(found) == limit:
            break
    rows = _rows(store, everything, [change for _, change in found])
    return [(at, row) for (at, _), row in zip(found, rows, strict=True)]


def read_change(store: MemoryStore, number: int) -> ChangeRow | None:
    everything = change_history.log(store)
    found = [change for change in everything if change.number == number]
    return _rows(store, everything, found)[0] if found else None


def _rows(
    store: MemoryStore, everything: Sequence[MemoryChange], shown: Sequence[MemoryChange]
) -> tuple[ChangeRow, ...]:
    undone = undone_numbers(everything)
    revoked = {
        handle: change.number for change in everything if change.action == "revoke" and (handle := _handle_in(change))
    }
    return tuple(_row(store, change, change.number in undone, revoked) for change in shown)


def _row(store: MemoryStore, change: MemoryChange, undone: bool, revoked: dict[str, int]) -> ChangeRow:
    def show(text: str | None) -> str | None:
        return None if text is None else store.visible_text(change.target, text)

    edits = tuple(diff_words(show(edit.before), show(edit.after)) for edit in change.edits[:_MAX_EDITS])
    sides = [(edit.before, edit.after) for edit in change.edits]
    allowed = _handle_in(change) if change.action == "allow" else ""
    return ChangeRow(
        change,
        file_name(change.target),
        edits,
        max(0, len(change.edits) - _MAX_EDITS),
        summarise_edits(sides, len(change.to_notes)) if len(sides) > 1 else "",
        bool(change.edits)
        and change.action != "found"
        and not undone
        and not change_history.has_forgotten_text(change),
        undone or bool(allowed and revoked.get(allowed, 0) > change.number),
        allowed if revoked.get(allowed, 0) < change.number else "",
    )


def _handle_in(change: MemoryChange) -> str:
    found = _HANDLE.match(change.note)
    return found.group() if found else ""


def undo(request: PageRequest) -> Reply:
    """Undo one change, as a new change; a refusal shows the history with the reason."""
    number = request.form.get("change", "")
    if not number.isascii() or not number.isdigit() or len(number) > 15:
        raise Problem(422, "invalid", "The form names no change.")
    outcome = change_history.undo(request.memory.curated, int(number), PERSON)
    if isinstance(outcome, MemoryRefusal):
        return show(request, explain_refusal(outcome), 409 if outcome.reason == "no_match" else refusal_status(outcome))
    return finish_write(request, "undo", outcome)


def revoke(request: PageRequest) -> Reply:
    """Withhold an entry again whose findings a person had allowed."""
    target, handle = read_target(request.form.get("target", "")), request.form.get("handle", "")
    if revoke_findings(request.memory.curated, target, handle, PERSON) is None:
        return Redirect(page_url(_PATH), "Nothing was allowed for that entry any more.")
    request.audit("memory.revoke", f"{target} {handle[:80]}")
    return Redirect(page_url(_PATH), "The entry is scanned like any other again.")


def show(request: PageRequest, refusal: str = "", status: int = 200) -> View:
    """The page; `refusal` says why a form was refused."""
    name = request.query.get("target", "")
    target = read_target(name) if name else None
    page = read_history(request.memory.curated, target, request.number("before", 0))
    recorded = find_recorded(request, (row.change.session for row in page["changes"]))
    view = {"page": page, "target": target, "can_write": request.may("curate"), "refusal": refusal}
    return View("memory_history.html", "History", view, status, recorded)


PAGE = Page("memory-history", _PATH, show)
UNDO = Page("memory-undo", "/memory/undo", submit=undo)
REVOKE = Page("memory-revoke", "/memory/revoke", submit=revoke)
