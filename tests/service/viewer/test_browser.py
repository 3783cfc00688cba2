"""The viewer in a real browser: from the link to the resumed conversation, with and without scripts."""

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.service.viewer.example_home import DEADLOCK, LONG
from tests.service.viewer.page_urls import page_urls
from tests.service.viewer.running_viewer import RunningViewer
from tests.timing import GIVE_UP

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

OpenPage = Callable[..., "Page"]
_RESUME = "cd /home/ana/heron && claude --resume 8c1f5c1e-0000-4000-8000-000000000001"


@pytest.fixture
def open_page(browser: "Browser", viewer: RunningViewer) -> Iterator[OpenPage]:
    """Opens a page in a new profile that is logged in; afterwards no script may have failed in it.

    Without a path, the page logs in by the link; otherwise a request does, and the browser draws one page less.
    """
    contexts, complaints = [], []

    def open_new(path: str = "", *, logged_in: bool = True, watched: bool = True, **options: object) -> "Page":
        context = browser.new_context(base_url=viewer.url, **options)  # type: ignore[arg-type]
        contexts.append(context)
        context.set_default_timeout(1000 * GIVE_UP)
        page = context.new_page()
        if watched:
            page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
            page.on("pageerror", lambda error: complaints.append(str(error)))
        if path:
            context.request.get(viewer.login_url())
            page.goto(path)
        elif logged_in:
            page.goto(viewer.login_url())
            page.wait_for_url("**/view/")
        return page

    yield open_new
    for context in contexts:
        context.close()
    assert [text for text in complaints if "the server responded with a status of 4" not in text] == []


def test_from_the_link_to_the_resumed_conversation(open_page: OpenPage) -> None:
    """Results appear while one types; a result leads to its message and to the command that resumes it."""
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    page.goto("/view/search")
    page.get_by_label("Search all conversations").press_sequentially("lock of the queue")
    result = page.locator(".result").first
    result.wait_for()
    assert "q=lock+of+the+queue" in page.url
    assert result.locator("mark").count() > 0
    result.get_by_text("Why this result").click()
    assert result.get_by_role("rowheader", name="coverage").is_visible()
    page.get_by_label("Agent").select_option("claude-code")
    page.wait_for_url("**/view/search?q=lock+of+the+queue&source=claude-code")
    page.locator(".result").first.get_by_role("link").first.click()
    page.wait_for_url(re.compile(rf"/view/sessions/{DEADLOCK}\?message=\d+#message-\d+"))
    assert page.locator("article.linked").is_visible()
    assert page.locator("#resume").inner_text() == _RESUME
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == _RESUME


def test_the_login_ends_with_logging_out(open_page: OpenPage) -> None:
    """After that, the address of a page leads to the login, and going back shows nothing."""
    page = open_page(f"/view/sessions/{DEADLOCK}")
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("heading", name="Logged out").wait_for()
    page.go_back()
    assert "deadlock" not in page.content()
    page.goto(f"/view/sessions/{DEADLOCK}")
    page.get_by_role("heading", name="Log in").wait_for()


def test_a_used_link_and_a_wrong_one_are_refused(open_page: OpenPage, viewer: RunningViewer) -> None:
    """The page says so, and what to do."""
    link = viewer.login_url()
    first = open_page(logged_in=False)
    first.goto(link)
    first.wait_for_url("**/view/")
    for address in (link, f"{viewer.url}/view/login?token=wrong"):
        page = open_page(logged_in=False)
        page.goto(address)
        assert "Press Enter in the terminal" in page.get_by_role("alert").inner_text()


def test_another_name_for_this_machine_is_refused(open_page: OpenPage, viewer: RunningViewer) -> None:
    """The browser resolves the name to this machine, and sends it as the Host."""
    # Its style sheets are refused as well, which the browser reports.
    page = open_page(logged_in=False, watched=False)
    foreign = viewer.login_url().replace("127.0.0.1", "rebound.example")
    answer = page.goto(foreign)
    assert answer is not None and answer.status == 421
    assert page.context.cookies() == []


def test_other_sites_can_link_here_but_not_send_forms(open_page: OpenPage, viewer: RunningViewer) -> None:
    """A link of another site opens the page; its form changes nothing, whatever the browser is logged in to."""
    page = open_page()
    target = f"{viewer.url}/view/timeline"
    html = (
        f'<a href="{target}">link</a><form method="post" action="{viewer.url}/view/logout"><button>send</button></form>'
    )
    page.route("http://other.example/**", lambda route: route.fulfill(body=html, content_type="text/html"))
    page.goto("http://other.example/")
    page.get_by_role("link", name="link").click()
    page.get_by_role("heading", name="Timeline").wait_for()
    page.goto("http://other.example/")
    page.get_by_role("button", name="send").click()
    page.get_by_role("heading", name="Forbidden").wait_for()
    page.goto("/view/")
    page.get_by_role("heading", name="Today").wait_for()


def test_everything_works_without_scripts(open_page: OpenPage) -> None:
    """Links and forms are enough to log in, search, filter, read, page and log out."""
    page = open_page(java_script_enabled=False)
    page.get_by_role("searchbox").fill("deadlock")
    page.get_by_role("button", name="Search").click()
    page.locator(".result").first.wait_for()
    page.get_by_label("Role").select_option("user")
    page.get_by_role("button", name="Search").click()
    page.wait_for_url(re.compile("role_filter=user"))
    page.locator(".result").first.get_by_role("link").first.click()
    assert page.locator("#resume").inner_text() == _RESUME
    assert not page.get_by_role("button", name="Copy").is_visible()
    page.get_by_role("link", name="Timeline").click()
    page.get_by_text("As a table").click()
    assert page.get_by_role("row").count() == 92
    page.goto(f"/view/sessions/{LONG}")
    page.get_by_role("link", name="Later").first.click()
    assert "51–100 of 240" in page.content()
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("heading", name="Logged out").wait_for()


def test_no_page_is_wider_than_its_window(open_page: OpenPage) -> None:
    """From a small phone to a large screen nothing has to be scrolled sideways, and the menu stays on one line."""
    page = open_page()
    for name, address in page_urls().items():
        # Loaded at the largest width, so that what keeps its width is wider than a smaller window.
        page.set_viewport_size({"width": 1920, "height": 740})
        page.goto(address)
        for width in (1920, 1280, 768, 360):
            page.set_viewport_size({"width": width, "height": 740})
            # A chart gets its new width within the next frame, before anybody sees it.
            page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
            tops = page.eval_on_selector_all(".menu a", "links => links.map(link => link.getBoundingClientRect().top)")
            assert len(set(tops)) == 1, (name, width)


def test_tabs_are_whole_words_below_the_heading(open_page: OpenPage) -> None:
    """On a phone each is on one line; none begins left of the page's margin."""
    page = open_page("/view/memory", viewport={"width": 390, "height": 900})
    boxes = page.eval_on_selector_all(".tabs a", "links => links.map(link => link.getBoundingClientRect().toJSON())")
    assert len({box["top"] for box in boxes}) == 1 and max(box["height"] for box in boxes) < 48
    assert boxes[0]["left"] >= page.locator("h1").bounding_box()["x"]  # type: ignore[index]
    assert boxes[-1]["right"] <= 390


def test_filters_leave_the_first_result_in_sight(open_page: OpenPage) -> None:
    """On a phone and on a laptop, the first result with its text is above the fold."""
    for width, height in ((360, 740), (1280, 800)):
        page = open_page("/view/search?q=deadlock", viewport={"width": width, "height": height})
        box = page.locator(".result .snippet").first.bounding_box()
        assert box is not None and box["y"] + box["height"] < height
        assert page.get_by_label("Agent").is_visible()


def test_pages_follow_the_colours_of_the_system(open_page: OpenPage) -> None:
    """Light text on a dark page, or dark text on a light one."""
    for scheme in ("light", "dark"):
        page = open_page("/view/timeline", color_scheme=scheme)
        page.locator(".chart canvas").wait_for()
        style = "getComputedStyle(document.documentElement)"
        colours = [page.evaluate(f"{style}.{name}") for name in ("color", "backgroundColor")]
        text, background = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours)
        assert (text > background) == (scheme == "dark"), colours


def test_the_keyboard_is_enough(open_page: OpenPage) -> None:
    """The first key leads past the menu, "/" leads to the search, and folded parts open with Enter."""
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.type("deadlock")
    page.keyboard.press("Enter")
    page.wait_for_url("**/view/search?q=deadlock")
    summary = page.get_by_text("Why this result").first
    summary.focus()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    page.keyboard.press("Enter")
    assert page.get_by_role("rowheader", name="coverage").first.is_visible()


def test_the_chart_leads_to_its_day(open_page: OpenPage) -> None:
    """The chart is drawn from the table; a click on a day shows the conversations up to it."""
    page = open_page("/view/timeline")
    chart = page.locator(".chart .u-over")
    chart.wait_for()
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] - 3, box["y"] + 20)
    page.mouse.click(box["x"] + box["width"] - 3, box["y"] + 20)
    page.wait_for_url("**/view/timeline?until=*")
