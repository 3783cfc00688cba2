"""What programs keep: found beside conversations, and facts of the holographic provider changed by a person."""

import re
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from memoranda.external.holographic.fact_store import Fact, FactStore
from memoranda.external.holographic.user_facts import stored_facts
from memoranda.support.origin import Origin
from tests.service.viewer.running_viewer import RunningViewer, form_token, run_viewer

pytestmark = pytest.mark.slow


def test_a_search_shows_notes_and_items_with_their_kind_and_page(tmp_path: Path) -> None:
    """Also if no conversation has the words, and not again on the next page of results."""
    with run_viewer(tmp_path / "home") as viewer:
        memory = viewer.memory
        memory.sessions.create_session("s", "cli")
        memory.items.put(("trip", "rome"), "seat", {"text": "Ana sits by the <b>aisle</b>."})
        assert memory.curated.notes is not None
        memory.curated.notes.add("The aisle seat of row 7 is broken.", "memory", Origin("agent"))
        page = viewer.client().get("/view/search?q=aisle+seat").text
        kept = page.split('id="kept"')[1]
        assert re.findall(r'class="tag">(\w+)</span><bdi>([^<]+)', kept) == [
            ("note", "MEMORY.md"),
            ("item", "trip / rome / seat"),
        ]
        noted = memory.curated.notes.all()[0].at[:10]
        assert f"<span>{noted}</span>" in kept  # The day is all that a search knows.
        assert 'dir="auto">The aisle seat of row 7 is broken.</pre>' in viewer.client().get("/view/kept").text
        assert "row 7 is broken" in kept and "&lt;b&gt;aisle" in kept and "/view/kept?q=aisle+seat#items" in kept
        assert 'id="kept"' not in viewer.client().get("/view/search?q=aisle+seat&cursor=1").text


def _change(client: httpx.Client, fact: int, **form: str) -> str:
    page = client.get("/view/facts").text
    seen = re.findall(rf'name="fact" value="{fact}"><input type="hidden" name="seen" value="([^"]+)"', page)[0]
    form = {"form_token": form_token(page), "fact": str(fact), "seen": seen} | form
    return client.post("/view/facts", data=form, follow_redirects=True).text


def _facts(viewer: RunningViewer) -> list[Fact]:
    with stored_facts(viewer.memory.home.root, None) as store:
        return [] if store is None else store.list_facts()


def test_a_person_corrects_rates_and_removes_facts(tmp_path: Path) -> None:
    """The provider has the change at once; a text that another fact has, or that changed meanwhile, is refused."""
    with run_viewer(tmp_path / "home") as viewer:
        with closing(FactStore(viewer.memory.home.root, "")) as store:
            first = store.add("Ana lives in Berlin.")[0].fact_id
            other = store.add("Ana likes tea.")[0].fact_id
            mirrored = store.add("Bo is new.", mirror_of="memory")[0].fact_id
        client = viewer.client()
        assert f'name="fact" value="{mirrored}"' not in client.get("/view/facts").text
        assert "Corrected" in _change(client, first, action="correct", text="Ana lives in Lisbon.")
        assert "50% and is 55% now" in _change(client, first, action="trust")
        assert "55% and is 45% now" in _change(client, first, action="doubt")
        assert "already says that" in _change(client, first, action="correct", text="Ana likes tea.")
        assert "changed meanwhile" in _change(client, first, action="remove", seen="0")
        assert "Removed" in _change(client, other, action="remove")
        assert {fact.content: round(fact.trust, 2) for fact in _facts(viewer)} == {
            "Ana lives in Lisbon.": 0.45,
            "Bo is new.": 0.5,
        }
