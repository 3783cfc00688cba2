"""Tidy up and On a day: what the curator proposes, with a button that does it, and memory as it was on a day."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import zip_longest
from typing import Any

from memoranda.api.curate import curate
from memoranda.memory.curated import change_history
from memoranda.memory.curated.journal import MemoryChange
from memoranda.memory.curated.settings import file_name
from memoranda.memory.curated.store import MemoryStore
from memoranda.service.viewer.memory_writes import MEMORY_PATH
from memoranda.service.viewer.page import Page, PageRequest, Redirect, Reply, View, page_url
from memoranda.service.viewer.text_diff import diff_words
from memoranda.support.canonical_text import digest
from memoranda.types import CuratedChange

_TIDY_PATH = "/memory/tidy"
_CHANGED = "Memory changed since the page was opened, so nothing was done. This is what would be done now."


def tidy(request: PageRequest) -> Reply:
    """Do what the page showed, as one change; if it would be something else by now, show that instead."""
    memory = request.memory
    if _name_changes(_proposed(request)) != request.form.get("seen", ""):
        return show_tidy(request, _CHANGED, 409)
    answer = curate(memory.services, memory.curated, memory.user, apply=True, model=False)
    if refused := answer.get("refused"):
        return show_tidy(request, " ".join(refused), 409)
    for number in answer.get("applied", ()):
        request.service.metrics.add("memoranda_curated_changes_total")
        request.audit("memory.curate", f"change {number}")
        return Redirect(page_url(MEMORY_PATH, change=number))
    return Redirect(page_url(_TIDY_PATH), "There was nothing to tidy up.")


def _proposed(request: PageRequest) -> list[CuratedChange]:
    memory = request.memory
    # A page asks no model: looking at it must cost nothing.
    return curate(memory.services, memory.curated, memory.user, apply=False, model=False)["changes"]


def _name_changes(changes: list[CuratedChange]) -> str:
    return digest(repr([(change["target"], change["before"], change["after"]) for change in changes]))


def show_tidy(request: PageRequest, refusal: str = "", status: int = 200) -> View:
    """The page; `refusal` says why a form was refused."""
    store, changes = request.memory.curated, _proposed(request)
    view = {
        "changes": [_describe(store, change) for change in changes],
        "seen": _name_changes(changes),
        "mode": request.memory.config.curate.mode,
        "can_write": request.may("curate"),
        "refusal": refusal,
    }
    return View("memory_tidy.html", "Tidy up", view, status)


def _describe(store: MemoryStore, change: CuratedChange) -> dict[str, Any]:
    """A change as differences: what leaves beside what comes in its place, then what stays."""

    def shown(texts: list[str]) -> list[str]:
        return [store.visible_text(change["target"], text) for text in texts]

    gone = shown([text for text in change["before"] if text not in change["after"]])
    new = shown([text for text in change["after"] if text not in change["before"]])
    return {
        "rule": change["rule"],
        "file": file_name(change["target"]),
        "reason": change["reason"],
        "differences": [diff_words(old, text) for old, text in zip_longest(gone, new)],
        "stays": shown([text for text in change["after"] if text in change["before"]]),
    }


TIDY = Page("memory-tidy", _TIDY_PATH, show_tidy, tidy)


def show_day(request: PageRequest) -> View:
    """Memory at the end of a day, which is counted from the day of the first change."""
    store = request.memory.curated
    changes = change_history.log(store)
    today = datetime.now(UTC).date()
    days = _days_of(changes, today)
    first = days[0] if days else today
    last = max(0, (today - first).days)
    number = min(request.number("day", last), last)
    day = first + timedelta(days=number)
    view = {"first": first, "day": day, "number": number, "last": last, "files": _files_on(store, days, day)}
    return View("memory_day.html", "On a day", view)


def _days_of(changes: Sequence[MemoryChange], today: date) -> list[date]:
    """The day of each change in UTC; one whose time cannot be read has that of the change before it."""
    days: list[date] = []
    for change in changes:
        try:
            days.append(min(today, date.fromisoformat(change.at[:10])))
        except ValueError:
            days.append(days[-1] if days else today)
    return days


def _files_on(store: MemoryStore, days: list[date], day: date) -> list[dict[str, Any]]:
    """The entries of each file at the end of a day; None if damaged lines of the history make them unknown."""
    numbers = [change.number for change, at in zip(change_history.log(store), days, strict=True) if at <= day]
    files = []
    for target in store.storage.targets():
        texts = store.journal.entries_after(target, numbers[-1]) if numbers else []
        shown = None if texts is None else [store.visible_text(target, text) for text in texts]
        files.append({"name": file_name(target), "entries": shown})
    return files


DAY = Page("memory-day", "/memory/day", show_day)
