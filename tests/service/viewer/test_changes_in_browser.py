"""A person changes memory in a real browser: edit to undo, conflict, approve, reject, and repair."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memoranda.memory.curated.operations import Add, Replace
from memoranda.memory.curated.settings import CuratedSettings
from memoranda.memory.curated.store import MemoryStore
from memoranda.support.origin import PERSON, Origin
from tests.service.viewer.running_viewer import RunningViewer, run_viewer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = pytest.mark.slow

JENKINS, GITLAB = "CI runs on Jenkins.", "CI runs on GitLab."


@pytest.fixture
def viewer(tmp_path: Path) -> Iterator[RunningViewer]:
    """A viewer over a home of the test's own."""
    with run_viewer(tmp_path / "home") as running:
        running.memory.curated.add("memory", JENKINS, PERSON)
        yield running


@contextmanager
def _logged_in(viewer: RunningViewer, browser: "Browser", *, scripts: bool) -> "Iterator[BrowserContext]":
    """A browser that is logged in; when the block ends, no page may have complained."""
    context = browser.new_context(java_script_enabled=scripts)
    problems: list[str] = []
    context.on("console", lambda message: problems.append(message.text))
    context.on("weberror", lambda error: problems.append(str(error.error)))
    context.request.get(viewer.login_url())
    yield context
    context.close()
    # A page that shows a refusal has its status, which the console notes.
    assert [problem for problem in problems if "the server responded with a status of 409" not in problem] == []


def _open(context: "BrowserContext", viewer: RunningViewer, path: str) -> "Page":
    page = context.new_page()
    page.goto(f"{viewer.url}/view{path}")
    return page


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_an_edit_is_undone(viewer: RunningViewer, browser: "Browser", scripts: bool) -> None:
    """From the entry to its form, to the receipt with the difference, to Undo; with and without scripts."""
    curated = viewer.memory.curated
    with _logged_in(viewer, browser, scripts=scripts) as context:
        page = _open(context, viewer, "/memory")
        page.get_by_role("link", name="Edit entry 1 of MEMORY.md").click()
        page.get_by_label("Text").fill(GITLAB)
        page.get_by_role("button", name="Save").click()
        assert page.locator(".receipt del").text_content() == "Jenkins"
        assert page.locator(".receipt ins").text_content() == "GitLab"
        assert curated.entries("memory") == (GITLAB,)
        page.get_by_role("button", name="Undo").click()
        page.get_by_text("Undone as change 3").wait_for()
        assert curated.entries("memory") == (JENKINS,)
        page.get_by_role("link", name="History").click()
        page.wait_for_url("**/view/memory/history")
        assert page.locator(".changes > li").count() == 3
        page.get_by_role("button", name="Undo change 3").click()
        assert curated.entries("memory") == (GITLAB,)


def test_two_tabs_edit_one_entry(viewer: RunningViewer, browser: "Browser") -> None:
    """The second tab sees both texts, keeps its own in the form, and can save it."""
    curated = viewer.memory.curated
    with _logged_in(viewer, browser, scripts=True) as context:
        tabs = [_open(context, viewer, "/memory") for _ in range(2)]
        for tab, text in zip(tabs, (GITLAB, "CI runs on Drone."), strict=True):
            tab.get_by_role("link", name="Edit entry 1 of MEMORY.md").click()
            tab.get_by_label("Text").fill(text)
        for tab in tabs:
            tab.get_by_role("button", name="Save").click()
        second = tabs[1]
        conflict = second.get_by_role("alert")
        assert "your text was not saved" in (conflict.text_content() or "")
        assert conflict.locator("pre").all_text_contents() == [JENKINS, GITLAB, "CI runs on Drone."]
        assert second.get_by_label("Text").input_value() == "CI runs on Drone."
        assert curated.entries("memory") == (GITLAB,)
        second.get_by_role("button", name="Add as a new entry").click()
        second.get_by_text("Saved as change 3").wait_for()
        assert curated.entries("memory") == (GITLAB, "CI runs on Drone.")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_proposals_are_rejected_edited_and_approved(viewer: RunningViewer, browser: "Browser", scripts: bool) -> None:
    """One is rejected and restored, then edited and approved; each result can be seen on the page."""
    store = MemoryStore(viewer.memory.curated.directory, CuratedSettings(write_approval="propose"))
    store.apply("memory", [Replace("Jenkins", GITLAB), Add("Bo is new.")], Origin("agent", "s1"))
    with _logged_in(viewer, browser, scripts=scripts) as context:
        page = _open(context, viewer, "/approvals")
        assert page.locator("article del").first.text_content() == "Jenkins"
        page.get_by_role("button", name="Reject").click()
        page.get_by_text("Nothing is waiting for approval.").wait_for()
        assert store.entries("memory") == (JENKINS,)
        page.get_by_role("button", name="Restore").click()
        page.get_by_role("link", name="Edit first").click()
        page.get_by_label("Text 1").fill("CI runs on GitLab 17.")
        page.get_by_role("button", name="Save and approve").click()
        page.get_by_text("Saved as change 2").wait_for()
        assert store.entries("memory") == ("CI runs on GitLab 17.", "Bo is new.")


def test_a_problem_is_repaired_after_a_question(viewer: RunningViewer, browser: "Browser") -> None:
    """Health finds it by itself, asks before it repairs, and then no longer finds it."""
    leftover = viewer.memory.home.root / ".MEMORY.md.tmp"
    leftover.write_text("left over")
    with _logged_in(viewer, browser, scripts=True) as context:
        page = _open(context, viewer, "/health")
        page.get_by_role("button", name="Repair .MEMORY.md.tmp").or_(
            page.get_by_role("link", name="Repair .MEMORY.md.tmp")
        ).click()
        assert leftover.exists()
        page.get_by_role("button", name="Repair").click()
        page.get_by_text(".MEMORY.md.tmp: Repaired.").wait_for()
        assert not leftover.exists()


def test_the_chart_of_spending_is_drawn(viewer: RunningViewer, browser: "Browser") -> None:
    """From the JSON route, beside a table that has the same numbers."""
    from memoranda.models.model import Usage
    from tests.models.spending.models import QUESTION, Fixed

    viewer.memory.services.metered(Fixed(Usage(1_000, 100)), "chat", "s1", None).reply("", QUESTION)
    with _logged_in(viewer, browser, scripts=True) as context:
        page = _open(context, viewer, "/spending")
        page.locator("#spending-chart canvas").wait_for()
        page.get_by_role("link", name="by model").click()
        page.locator("#spending-chart canvas").wait_for()
        assert page.locator("tbody tr").count() == 1
