"""Kept: what else a home has, to look at: skills, items of programs, imports, and for the owner the API keys."""

import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from memoranda.importers.importer import ImportRunningError, import_lock
from memoranda.importers.state.log import LoggedImport
from memoranda.importers.undo import ImportHistory
from memoranda.memory.curated.notes import read_note
from memoranda.service.http.problems import Problem
from memoranda.service.viewer.page import Page, PageRequest, Redirect, View, page_url
from memoranda.types import FoundItem, Item

PAGE_SIZE = 50
_PATH = "/kept"
_LOCK_SECONDS = 2.0


def show(request: PageRequest) -> View:
    """One page of the items, and all of the rest; a home without conversations has no items and no imports."""
    memory, after = request.memory, request.number("after", 0)
    query = request.query.get("q", "").strip()
    items: list[FoundItem] = []
    imports: list[LoggedImport] = []
    if request.has_record:
        items = memory.items.search((), query or None, limit=PAGE_SIZE + 1, offset=after)
        with closing(ImportHistory(memory.home.root, memory.sessions)) as history:
            imports = history.imports()
    keys = request.service.keys.list_keys() if request.caller.is_owner and request.user is None else []
    view = {
        "skills": memory.services.skills_for(request.user).catalogue(),
        "kept": [(found, _as_text(found.item)) for found in items[:PAGE_SIZE]],
        "imports": imports,
        "api_keys": keys,
        "query": query,
        # Where the next items begin.
        "later": after + PAGE_SIZE if len(items) > PAGE_SIZE else 0,
        "now": time.time(),
        "can_undo": request.may("admin"),
    }
    return View("kept.html", "Kept", view)


def _as_text(item: Item) -> str:
    """The value; of a note, what it says."""
    note = read_note(item.namespace, item.value)
    value = item.value if note is None else note.text
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


@contextmanager
def _import_of(request: PageRequest) -> Iterator[tuple[ImportHistory, str]]:
    """The imports, and the id of the one that the address names; raises Problem 404 if there is none."""
    memory, wanted = request.memory, request.path["logged"]
    unknown = Problem(404, "not_found", "There is no such import to undo.")
    if not request.has_record:
        raise unknown
    with closing(ImportHistory(memory.home.root, memory.sessions, memory.curated)) as history:
        if all(each.id != wanted or each.undone for each in history.imports()):
            raise unknown
        yield history, wanted


def show_undo(request: PageRequest) -> View:
    """Ask whether to undo an import, with what that would remove."""
    with _import_of(request) as (history, import_id):
        return View("import_undo.html", "Undo an import", history.preview(import_id))


def undo(request: PageRequest) -> Redirect:
    """Undo an import after a person confirmed it."""
    memory = request.memory
    with _import_of(request) as (history, import_id):
        try:
            with import_lock(memory.home.root, _LOCK_SECONDS, store=memory.sessions):
                report = history.undo(import_id)
        except ImportRunningError:
            return Redirect(page_url(_PATH), "Another import is running, and nothing was removed. Try again later.")
    request.audit("import.undo", import_id)
    kept = f" {len(report.kept):,} that changed here since stay." if report.kept else ""
    return Redirect(page_url(_PATH), f"Removed {len(report.removed):,} imported conversations.{kept}")


PAGE = Page("kept", _PATH, show, label="Kept")
UNDO = Page("import-undo", "/kept/imports/{logged}", show_undo, undo, scope="admin", submit_scope="admin")
