"""Kept: what else a home has, to look at: skills, items of programs, imports, and for the owner the API keys."""

import json
import time
from typing import Any

from memoranda.home.access.keys import ApiKey
from memoranda.importers.state.log import LoggedImport
from memoranda.importers.undo import ImportHistory
from memoranda.memory.skills.catalogue import Catalogue
from memoranda.service.viewer.page import Page, PageRequest, View
from memoranda.support.lazy_dataclass import dataclass
from memoranda.types import FoundItem

PAGE_SIZE = 50
_PATH = "/kept"


@dataclass(frozen=True, slots=True)
class KeptPage:
    """One page of the items, and all of the rest; `later` is where the next items begin, 0 if there are none."""

    skills: Catalogue
    items: tuple[tuple[FoundItem, str], ...]
    """Each item with its value as text."""
    imports: tuple[LoggedImport, ...]
    keys: tuple[ApiKey, ...]
    query: str
    later: int
    now: float


def read_kept(request: PageRequest) -> KeptPage:
    """What the user of a request has; a home without conversations has no items and no imports."""
    memory, after = request.memory, request.number("after", 0)
    query = request.query.get("q", "").strip()
    items: list[FoundItem] = []
    imports: list[LoggedImport] = []
    if request.has_record:
        items = memory.items.search((), query or None, limit=PAGE_SIZE + 1, offset=after)
        history = ImportHistory(memory.home.root, memory.sessions)
        try:
            imports = history.imports()
        finally:
            history.close()
    keys = request.service.keys.list_keys() if request.caller.is_owner and request.user is None else []
    return KeptPage(
        skills=memory.services.skills_for(request.user).catalogue(),
        items=tuple((found, _as_text(found.item.value)) for found in items[:PAGE_SIZE]),
        imports=tuple(imports),
        keys=tuple(keys),
        query=query,
        later=after + PAGE_SIZE if len(items) > PAGE_SIZE else 0,
        now=time.time(),
    )


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def show(request: PageRequest) -> View:
    """The page."""
    return View("kept.html", "Kept", read_kept(request))


PAGE = Page("kept", _PATH, show, label="Kept")
