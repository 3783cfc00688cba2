"""Hostile text in every field of every page, in a real browser: nothing of it is executed, and nothing breaks."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from memoranda.service.viewer.page import page_url
from memoranda.service.viewer.pages import PAGES
from memoranda.service.viewer.pages.health import find_problems
from memoranda.support.canonical_text import digest
from tests.service.viewer.hostile_home import HOSTILE, MARK, SESSION, SHORT, fill_hostile
from tests.service.viewer.running_viewer import RunningViewer, run_viewer

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

WIDTH = 360
_QUERY = {"q": f"deadlock {SHORT}", "words": "img", "check": "1", "edit": "0badc0de", "message": "1", "by": "purpose"}
# Pages that show no text of the home, and one that cannot know it: the journal of the hostile home is damaged.
_WITHOUT_TEXT = {"timeline", "memory-day"}
# Parameters that are shown, and those that must be one of a few values.
_TEXTS = ("q", "words", "outcome", "host", "agent", "project", "role", "since", "edit", "next", "cursor")
_VALUES = (
    "category",
    "by",
    "days",
    "target",
    "before",
    "after",
    "skip",
    "change",
    "role",
    "since",
    "page",
    "day",
    "message",
)
# What became of the page. A handler that was smuggled in would be an attribute, whether it has run or not.
_INSPECT = f"""() => ({{
    headings: document.querySelectorAll('h1').length,
    text: document.body.textContent,
    fields: [...document.querySelectorAll('textarea, input')].map(field => field.value).join(),
    owned: window.{MARK} === undefined ? null : 'executed',
    foreign: document.querySelectorAll('main img, main iframe, main script, main style, main object, base').length,
    handlers: [...document.querySelectorAll('*')].flatMap(one => [...one.attributes])
        .filter(found => found.name.startsWith('on') || /^\\s*javascript:/i.test(found.value)).map(found => found.name),
    forms: [...document.forms].map(form => form.getAttribute('action')).filter(path => !path.startsWith('/view')),
    width: document.documentElement.scrollWidth,
}})"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningViewer]:
    """A viewer over the hostile home."""
    with run_viewer(tmp_path_factory.mktemp("hostile") / "home") as running:
        fill_hostile(running.memory)
        yield running


def _urls(viewer: RunningViewer) -> dict[str, str]:
    """One address of each page, with hostile parameters where the page takes text."""
    memory = viewer.memory
    problem = next(
        finding for finding in find_problems(memory.home) if finding["can_repair"] and SHORT in finding["name"]
    )
    parts = {
        "session": SESSION,
        "message": memory.sessions.get_messages(SESSION)[0]["id"],
        "target": "memory",
        "entry": digest(memory.curated.view("memory").entries[-1].text),
        "call": "0badc0de",
        "finding": problem["id"],
        "logged": SHORT,
    }
    shown = [page for page in PAGES if page.show is not None and not page.download]
    return {
        page.name: page_url(page.path, **_QUERY | {name: parts[name] for name in re.findall(r"{(\w+)}", page.path)})
        for page in shown
    }


def test_hostile_text_executes_nothing_on_any_page(hostile: RunningViewer, browser: "Browser") -> None:
    """No script runs, no request leaves, the console stays empty, and a narrow page does not scroll sideways."""
    context = browser.new_context(viewport={"width": WIDTH, "height": 740})
    page = context.new_page()
    problems: list[str] = []
    address = ""
    page.on("console", lambda message: problems.append(f"{address}: {message.type} {message.text}"))
    page.on("pageerror", lambda error: problems.append(f"{address}: {error}"))
    page.on("dialog", lambda dialog: dialog.accept("a dialog opened"))
    page.on("request", lambda sent: _check_address(sent.url, hostile, problems))
    page.goto(hostile.login_url())
    page.wait_for_url("**/view/")
    for name, address in _urls(hostile).items():
        page.goto(hostile.url + address)
        found = page.evaluate(_INSPECT)
        assert found["headings"] == 1, name
        assert MARK in found["text"] + found["fields"] or name in _WITHOUT_TEXT, (
            f"{name} shows nothing of the hostile text"
        )
        assert found["owned"] is None and found["foreign"] == 0, name
        assert found["handlers"] == [] and found["forms"] == [], name
        assert found["width"] <= WIDTH, f"{name} is {found['width']} wide"
    context.close()
    assert problems == []


def test_hostile_parameters_are_text(hostile: RunningViewer) -> None:
    """What an address contains is shown as text or refused, whatever the parameter is called."""
    client = hostile.client()
    for page in PAGES:
        if page.show is None or "{" in page.path:
            continue
        for names in (_TEXTS, _VALUES):
            answer = client.get(page_url(page.path, **dict.fromkeys(names, HOSTILE[:900])))
            assert answer.status_code < 500, (page.name, names)
            assert "<script>window" not in answer.text and "<img src=x" not in answer.text, (page.name, names)


def _check_address(address: str, viewer: RunningViewer, problems: list[str]) -> None:
    if not address.startswith((f"{viewer.url}/view", "data:image/svg+xml")):
        problems.append(f"a request to {address}")
