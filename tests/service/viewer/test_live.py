"""Pages follow what agents do while they are open, in a real browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memoranda.memory.curated.operations import Add
from memoranda.memory.curated.settings import CuratedSettings
from memoranda.memory.curated.store import MemoryStore
from memoranda.support.origin import PERSON, Origin
from tests.service.viewer.running_viewer import RunningViewer, run_viewer
from tests.timing import GIVE_UP

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow


@pytest.fixture
def viewer(tmp_path: Path) -> Iterator[RunningViewer]:
    """A viewer over a home with one conversation."""
    with run_viewer(tmp_path / "home") as running:
        running.memory.sessions.create_session("talk", "codex", title="The heron")
        running.memory.sessions.append_message("talk", "user", "Which colour has the heron?")
        yield running


@pytest.fixture
def page(viewer: RunningViewer, browser: "Browser") -> Iterator["Page"]:
    """A page that is logged in, in which no script fails."""
    context = browser.new_context(base_url=viewer.url)
    context.set_default_timeout(1000 * GIVE_UP)
    opened, complaints = context.new_page(), []
    opened.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    context.request.get(viewer.login_url())
    yield opened
    context.close()
    assert complaints == []


def _wait_for_first_look(page: "Page", path: str) -> None:
    with page.expect_response("**/view/version"):
        page.goto(path)


def test_a_new_message_appears_in_its_conversation(viewer: RunningViewer, page: "Page") -> None:
    """At the end, without a reload, and what the reader has opened stays open."""
    db = viewer.memory.sessions
    db.append_message("talk", "tool", "grey\n" * 50, tool_name="look")
    _wait_for_first_look(page, "/view/sessions/talk")
    page.locator("article.tool summary").click()
    page.evaluate("window.untouched = true")
    db.append_message("talk", "assistant", "It is **grey**.")
    page.locator("article.assistant strong", has_text="grey").wait_for()
    assert page.locator("article.message").last.inner_text().endswith("It is grey.")
    assert page.locator("article.tool details").get_attribute("open") is not None
    assert page.evaluate("window.untouched") is True
    assert page.locator("article.message").count() == 3


def test_today_shows_what_is_saved_and_proposed(viewer: RunningViewer, page: "Page") -> None:
    """On top of the stream, by time; the figures follow."""
    _wait_for_first_look(page, "/view/")
    store = viewer.memory.curated
    store.add("memory", "Herons are grey.", PERSON)
    page.locator(".event-saved", has_text="Herons are grey.").wait_for()
    proposing = MemoryStore(store.directory, CuratedSettings(write_approval="propose"))
    proposing.apply("memory", [Add("Herons are shy.")], Origin("agent", "talk"))
    page.locator(".event-awaits", has_text="Herons are shy.").wait_for()
    page.locator(".today-figures", has_text="1 awaiting approval").wait_for()
    assert "event-awaits" in (page.locator(".event").first.get_attribute("class") or "")
    store.proposals.reject(store.proposals.all()[0])
    page.locator(".event-awaits").wait_for(state="detached")


def test_what_is_typed_stays(viewer: RunningViewer, page: "Page") -> None:
    """An entry that an agent saves appears, and the text in the form beside it is still there."""
    _wait_for_first_look(page, "/view/memory")
    field = page.locator("textarea").first
    field.fill("I was writing this")
    viewer.memory.curated.add("memory", "Herons are grey.", PERSON)
    page.locator("#entries-memory li", has_text="Herons are grey.").wait_for()
    assert field.input_value() == "I was writing this"


def test_the_first_conversation_appears_on_an_empty_home(tmp_path: Path, browser: "Browser") -> None:
    """Whoever opens the viewer before anything is recorded sees the first conversation arrive."""
    with run_viewer(tmp_path / "empty") as running:
        page = browser.new_page(base_url=running.url)
        page.goto(running.login_url())
        page.locator("#first-day").wait_for()
        page.wait_for_timeout(1_200)
        running.memory.sessions.create_session("first", "cli", title="Hello")
        running.memory.sessions.append_message("first", "user", "Hello")
        page.locator(".event-conversation").wait_for()
        page.locator("#first-day").wait_for(state="detached")
        page.close()


def test_a_hidden_tab_asks_nothing(viewer: RunningViewer, page: "Page") -> None:
    """And asks again as soon as it is shown."""
    _wait_for_first_look(page, "/view/")
    page.evaluate(
        "() => { window.hiddenNow = true;"
        " Object.defineProperty(document, 'hidden', {get: () => window.hiddenNow});"
        " document.dispatchEvent(new Event('visibilitychange')); }"
    )
    page.wait_for_timeout(1_500)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    viewer.memory.curated.add("memory", "Herons are grey.", PERSON)
    page.wait_for_timeout(2_500)
    assert asked == []
    page.evaluate("() => { window.hiddenNow = false; document.dispatchEvent(new Event('visibilitychange')); }")
    page.locator(".event-saved", has_text="Herons are grey.").wait_for()
