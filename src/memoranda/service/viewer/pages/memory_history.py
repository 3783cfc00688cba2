"""History: every change of curated memory with its difference, and a button that undoes it."""

from dataclasses import dataclass

from memoranda.memory.curated import change_history
from memoranda.memory.curated.operations import MemoryRefusal
from memoranda.memory.curated.settings import Target
from memoranda.service.http.problems import Problem
from memoranda.service.viewer.conversation_links import find_recorded
from memoranda.service.viewer.curated.history import HistoryPage, read_history
from memoranda.service.viewer.curated.writes import explain_refusal
from memoranda.service.viewer.page import Page, PageRequest, Redirect, Reply, View, page_url
from memoranda.service.viewer.pages.memory import finish_write, read_target, refusal_status
from memoranda.support.origin import PERSON

_PATH = "/memory/history"


@dataclass(frozen=True, slots=True)
class HistoryView:
    """What the page shows: the changes of one file or of both; `refusal` says why a change was not undone."""

    page: HistoryPage
    target: Target | None
    can_write: bool
    refusal: str = ""


def show(request: PageRequest) -> View:
    """The page."""
    return _view(request)


def undo(request: PageRequest) -> Reply:
    """Undo one change, as a new change; a refusal shows the history with the reason."""
    number = request.form.get("change", "")
    if not number.isascii() or not number.isdigit() or len(number) > 15:
        raise Problem(422, "invalid", "The form names no change.")
    outcome = change_history.undo(request.memory.curated, int(number), PERSON)
    if isinstance(outcome, MemoryRefusal):
        return _view(
            request, explain_refusal(outcome), 409 if outcome.reason == "no_match" else refusal_status(outcome)
        )
    return finish_write(request, "undo", outcome)


def revoke(request: PageRequest) -> Reply:
    """Withhold an entry again whose findings a person had allowed."""
    target, handle = read_target(request.form.get("target", "")), request.form.get("handle", "")
    if request.memory.curated.revoke(target, handle, PERSON) is None:
        return Redirect(page_url(_PATH), "Nothing was allowed for that entry any more.")
    request.audit("memory.revoke", f"{target} {handle[:80]}")
    return Redirect(page_url(_PATH), "The entry is scanned like any other again.")


def _view(request: PageRequest, refusal: str = "", status: int = 200) -> View:
    name = request.query.get("target", "")
    target = read_target(name) if name else None
    page = read_history(request.memory.curated, target, request.number("before", 0))
    recorded = find_recorded(request, (row.change.session for row in page.changes))
    view = HistoryView(page, target, request.may("curate"), refusal)
    return View("memory_history.html", "History", view, status, recorded)


PAGE = Page("memory-history", _PATH, show)
UNDO = Page("memory-undo", "/memory/undo", submit=undo)
REVOKE = Page("memory-revoke", "/memory/revoke", submit=revoke)
