"""Pages over HTTP: they show what is stored, as text."""

import html
import re
import threading
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from memoranda.service.viewer.mount import LocalViewer
from tests.service.http.running_service import run_service
from tests.service.viewer.example_home import DEADLOCK, fill
from tests.service.viewer.example_operation import fill_pages
from tests.service.viewer.page_urls import page_urls
from tests.service.viewer.running_viewer import run_viewer
from tests.timing import GIVE_UP


@pytest.mark.slow
@pytest.mark.parametrize("name", page_urls())
def test_every_page_answers(client: httpx.Client, name: str) -> None:
    """Every page has a title, one main part, and no style or script inside it."""
    answer = client.get(page_urls()[name])
    assert answer.status_code == 200
    assert answer.text.count("<h1") == 1
    assert "<script>" not in answer.text and " style=" not in answer.text and "<style" not in answer.text
    assert len(answer.content) < 200_000


@pytest.mark.slow
@pytest.mark.parametrize("name", page_urls())
def test_every_page_works_on_an_empty_home(tmp_path: Path, name: str) -> None:
    """Looking at a home without anything creates nothing."""
    home = tmp_path / "home"
    with run_viewer(home) as viewer:
        answer = viewer.client().get(page_urls()[name])
        assert answer.status_code in (200, 404)
        assert not (home / "state.db").exists()


def test_unknown_addresses_are_not_found(client: httpx.Client) -> None:
    """The page of the error has the menu, and shows the text as text."""
    for path in ("/view/nothing", "/view/sessions/none", "/view/sessions/%00", "/view/static/x/../../page.py"):
        answer = client.get(path)
        assert answer.status_code == 404, path
    assert client.get("/view/sessions/%ff").status_code == 404


def test_static_files_are_kept_by_browsers(client: httpx.Client) -> None:
    """Their addresses change with their contents."""
    page = client.get("/view/").text
    address = page.split('<script src="')[1].split('"')[0]
    answer = client.get(address)
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["content-type"].startswith("text/javascript")


@pytest.mark.slow
def test_every_page_answers_on_a_server(tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the record in PostgreSQL the pages about conversations show the same."""
    monkeypatch.setenv("MEMORANDA_STORE", postgres_url)
    with run_viewer(tmp_path / "home") as viewer:
        fill(viewer.memory)
        client = viewer.client()
        for name in ("today", "search", "timeline", "session", "message"):
            answer = client.get(page_urls()[name])
            assert answer.status_code == 200, name
            assert "deadlock" in answer.text, name


def test_contradictions_are_found_after_the_page_is_shown(client: httpx.Client) -> None:
    """Comparing all facts takes long, so the page asks for it, and without scripts there is a link."""
    page = client.get("/view/facts").text
    assert 'hx-get="/view/facts?compare=1"' in page and "Ana lives in Berlin." in page
    assert "Older" not in page
    compared = client.get("/view/facts?compare=1").text
    assert 'aria-label="Contradiction 1"' in compared and "Find facts" not in compared


@pytest.mark.slow
def test_a_viewer_prepares_itself_in_the_background(tmp_path: Path) -> None:
    """Also over an empty home, in which it creates no record; pages are shown meanwhile."""
    viewer = LocalViewer(prepare=True)
    with run_service(tmp_path / "home", mounts=(viewer.mount,), own_routes=()) as running:
        client = running.client()
        assert client.get(viewer.new_login_path(), follow_redirects=True).status_code == 200
        preparing = [thread for thread in threading.enumerate() if thread.name == "viewer-preparation"]
        for thread in preparing:
            thread.join(GIVE_UP)
        assert client.get("/view/search?q=heron").status_code == 200
    assert not (tmp_path / "home" / "state.db").exists()


@pytest.mark.slow
def test_every_link_leads_to_a_page(tmp_path: Path) -> None:
    """Also when the conversation that entries, facts, deliveries and calls name is deleted."""
    addresses = [*page_urls().values(), "/view/spending?by=session", "/view/facts?compare=1"]
    with run_viewer(tmp_path / "home") as viewer:
        fill(viewer.memory)
        fill_pages(viewer.memory)
        client = viewer.client()
        before = _follow_links(client, addresses)
        assert any(DEADLOCK in href for href in before)
        viewer.memory.sessions.delete_session(DEADLOCK)
        left = [address for address in addresses if DEADLOCK not in address]
        assert {
            href: page for href, page in _follow_links(client, left).items() if f"/sessions/{DEADLOCK}" in href
        } == {}


def _follow_links(client: httpx.Client, addresses: Sequence[str]) -> dict[str, str]:
    """The links on some pages, with one page that has each; all of them lead to a page."""
    found = {href: address for address in addresses for href in _links(client.get(address).text)}
    missing = {href: address for href, address in found.items() if client.get(href).status_code != 200}
    assert missing == {}
    return found


def _links(page: str) -> set[str]:
    hrefs = {html.unescape(href).partition("#")[0] for href in re.findall(r'<a [^>]*?href="([^"]+)"', page)}
    return {href for href in hrefs if href.startswith("/view")}
