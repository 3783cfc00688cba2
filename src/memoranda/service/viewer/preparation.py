"""Prepares the viewer in the background, so that the first page of a browser is as quick as the following ones."""

import logging
import sqlite3
import threading
import time
from collections.abc import Iterable, Mapping

from memoranda.errors import MemorandaError
from memoranda.service.http.callers import OWNER
from memoranda.service.http.problems import Problem
from memoranda.service.http.service import Service
from memoranda.service.viewer.page import Page, PageRequest
from memoranda.service.viewer.renderer import Renderer

_log = logging.getLogger(__name__)
# A request that arrives meanwhile comes first.
_PAUSE = 0.01
# Pages that read what other pages read, too: the latest conversations, the index, the journal of memory, the logs.
_PAGES: Mapping[str, Mapping[str, str]] = {
    "today": {},
    "search": {"q": "today"},
    "timeline": {},
    "memory": {},
    "recall": {},
}


def prepare_in_background(renderer: Renderer, pages: Iterable[Page], service: Service, user: str | None) -> None:
    """Compile the templates, and read once what the pages read, in a thread that ends with the process."""
    shown = [page for page in pages if page.name in _PAGES]

    def prepare() -> None:
        for _ in renderer.compile_templates():
            time.sleep(_PAUSE)
        for page in shown:
            assert page.show is not None
            time.sleep(_PAUSE)
            try:
                page.show(PageRequest(service, OWNER, user, {}, _PAGES[page.name]))
            except (Problem, MemorandaError, OSError, sqlite3.Error) as error:
                # The page itself says what is wrong when a person opens it.
                _log.debug("The page %s could not be prepared: %s", page.name, error)

    threading.Thread(target=prepare, name="viewer-preparation", daemon=True).start()
