"""One address of every page, in the home of `example_home`: tests that look at all pages take them from here."""

from memoranda.service.viewer.page import page_url
from memoranda.service.viewer.pages import PAGES
from tests.service.viewer.example_home import DEADLOCK
from tests.service.viewer.example_operation import ENTRY_ID, IMPORT_ID, LEFTOVER_ID, first_call_id

_VALUES: dict[str, dict[str, object]] = {
    "session": {"session": DEADLOCK},
    "message": {"session": DEADLOCK, "message": 1},
    "search": {"q": "deadlock"},
    "memory-entry": {"target": "memory", "entry": ENTRY_ID},
    "recall-call": {"call": first_call_id()},
    "import-undo": {"logged": IMPORT_ID},
    "health": {"check": 1},
    "health-repair": {"finding": LEFTOVER_ID},
}
"""The values for pages whose address needs some, by the name of the page."""


def page_urls() -> dict[str, str]:
    """The address of each page that GET shows, by its name; KeyError if a new page has no values here."""
    found = {}
    for page in PAGES:
        if page.show is not None and not page.download:
            values = _VALUES[page.name] if "{" in page.path else _VALUES.get(page.name, {})
            found[page.name] = page_url(page.path, **values)
    return found
