"""Today: one stream of what was said, saved, recalled, imported and proposed, with the actions at hand."""

import re
import time
from html import unescape
from pathlib import Path

import pytest

from memoranda.importers.reader_protocol import ImportedConversation, ImportedMessage
from memoranda.memory.curated.operations import Add
from memoranda.memory.curated.settings import CuratedSettings
from memoranda.memory.curated.store import MemoryStore
from memoranda.search.recall_log import TURN, PromptPlace
from memoranda.service.viewer.pages import today
from memoranda.support.origin import PERSON, Origin
from tests.service.viewer.example_operation import add_import
from tests.service.viewer.running_viewer import RunningViewer, form_token, run_viewer

_KINDS = re.compile(r'class="event event-(\w+)"')
_SAID = ImportedMessage({"role": "user", "content": "Hello", "external_id": "m1", "timestamp": 100.0})
_SKILL = "---\nname: ship\ndescription: How heron is released.\n---\nRun make ship.\n"


def _fill(viewer: RunningViewer) -> None:
    """One event of each kind, a minute apart, and a conversation from two days ago."""
    memory, now = viewer.memory, time.time()
    memory.sessions.create_session("old", "cli", title="An old talk", started_at=now - 200_000)
    memory.sessions.append_message("old", "user", "The heron is grey.", timestamp=now - 200_000)
    memory.sessions.create_session("new", "codex", title="A new talk", started_at=now - 300)
    asked = memory.sessions.append_message("new", "user", "Which colour has the heron?", timestamp=now - 300)
    place = PromptPlace(TURN, "codex", "new", asked)
    given = {"given": [{"session_id": "old", "message_id": 1}]}
    for second in (290, 280):
        memory.services.recall_log(None).add(place, "colour", "given", "recalled", began=now - second, details=given)
    memory.curated.add("memory", "Herons are grey.", PERSON)
    assert memory.curated.notes is not None
    memory.curated.notes.add("Herons eat fish.", "memory", Origin("agent"))
    proposing = MemoryStore(memory.curated.directory, CuratedSettings(write_approval="propose"))
    proposing.apply("memory", [Add("Herons are shy.")], Origin("agent", "new"))
    skill = memory.home.root / "skills" / "ship"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(_SKILL)


@pytest.mark.slow
def test_one_stream_has_every_kind_by_time(tmp_path: Path) -> None:
    """The latest comes first, the days are apart, and recalls for one conversation are one line."""
    with run_viewer(tmp_path / "home") as viewer:
        _fill(viewer)
        page = viewer.client().get("/view/").text
        kinds = _KINDS.findall(page)
        assert sorted(kinds[:4]) == ["awaits", "note", "saved", "skill"]
        assert kinds[4:] == ["recalled", "conversation", "conversation"]
        assert page.count('class="stream plain"') == 2
        for text in (
            "Herons are grey.",
            "Herons eat fish.",
            "Herons are shy.",
            "How heron is released.",
            "An old talk",
        ):
            assert text in page, text
        assert "Recalled into 2 prompts" in page and 'href="/view/sessions/old?message=1#message-1"' in page


@pytest.mark.slow
def test_a_kind_can_be_chosen(tmp_path: Path) -> None:
    """Each chip shows its events and no others; an unknown kind shows none."""
    with run_viewer(tmp_path / "home") as viewer:
        _fill(viewer)
        client = viewer.client()
        shown = {kind: set(_KINDS.findall(client.get("/view/", params={"kind": kind}).text)) for kind in today._READERS}
        assert shown == {
            "conversation": {"conversation"},
            "saved": {"saved", "note", "skill"},
            "awaits": {"awaits"},
            "recalled": {"recalled"},
            "imported": set(),
        }
        assert _KINDS.findall(client.get("/view/?kind=nonsense").text) == []


@pytest.mark.slow
def test_an_import_is_an_event(tmp_path: Path) -> None:
    """With its source and the number of conversations; one that added nothing is none."""
    with run_viewer(tmp_path / "home") as viewer:
        memory = viewer.memory
        add_import(memory, "one", ImportedConversation("a", "Locks"), _SAID)
        add_import(memory, "two")
        page = viewer.client().get("/view/?kind=imported").text
        assert _KINDS.findall(page) == ["imported"] and "Imported 1 conversation" in page


@pytest.mark.slow
def test_an_import_is_undone_from_the_stream(tmp_path: Path) -> None:
    """The page that Undo leads to says what would be removed; an import that was undone has no such page."""
    with run_viewer(tmp_path / "home") as viewer:
        add_import(viewer.memory, "one", ImportedConversation("a", "Locks"), _SAID)
        client = viewer.client()
        address = re.findall(r'href="([^"]+)" aria-label="Undo import one"', client.get("/view/").text)[0]
        asked = client.get(address).text
        assert "remove 1 message: 1 conversation as a whole" in asked
        done = client.post(address, data={"form_token": form_token(asked)}, follow_redirects=True).text
        assert "Removed 1 imported conversation" in done and "undone" in done
        assert viewer.memory.sessions.list_sessions_rich() == []
        assert client.get(address).status_code == 404


@pytest.mark.slow
def test_the_stream_continues_on_the_next_page(tmp_path: Path) -> None:
    """Every event is on one page, also those of the same moment."""
    with run_viewer(tmp_path / "home") as viewer:
        db, now = viewer.memory.sessions, time.time()
        for number in range(75):
            at = now - 3_600 * (number // 3)
            db.create_session(f"s{number}", "cli", title=f"Talk {number}", started_at=at)
            db.append_message(f"s{number}", "user", "Hello", timestamp=at)
        for number in range(40):
            viewer.memory.curated.add("memory", f"Fact {number}.", PERSON)
        client, address, found, pages = viewer.client(), "/view/", [], 0
        while address:
            page = client.get(address).text
            found += re.findall(r'id="event-([^"]+)"', page)
            following = re.search(r'rel="next" href="([^"]+)"', page)
            address, pages = unescape(following[1]) if following else "", pages + 1
        assert sorted(found) == sorted(
            [*(f"s{number}" for number in range(75)), *(f"change-{n}" for n in range(1, 41))]
        )
        assert 3 <= pages <= 5


@pytest.mark.slow
def test_the_actions_of_the_stream_lead_back_to_it(tmp_path: Path) -> None:
    """Approve, undo and reject do what their pages do, and Today shows what became of it."""
    with run_viewer(tmp_path / "home") as viewer:
        _fill(viewer)
        client, store = viewer.client(), viewer.memory.curated
        token = form_token(client.get("/view/").text)
        form = {"form_token": token, "back": "today"}
        proposal = store.proposals.all()[0].id
        answer = client.post(f"/view/approvals/{proposal}", data={**form, "action": "approve"}, follow_redirects=True)
        assert answer.url.path == "/view/" and "Saved as change 2 in MEMORY.md" in answer.text
        assert "Herons are shy." in viewer.memory.entries("memory")
        answer = client.post("/view/memory/undo", data={**form, "change": "2"}, follow_redirects=True)
        assert answer.url.path == "/view/" and "Herons are shy." not in viewer.memory.entries("memory")
        assert "<del>Herons are shy.</del>" in answer.text
        proposing = MemoryStore(store.directory, CuratedSettings(write_approval="propose"))
        proposing.apply("memory", [Add("Herons are loud.")], Origin("agent", "new"))
        proposal = store.proposals.all()[0].id
        answer = client.post(f"/view/approvals/{proposal}", data={**form, "action": "reject"}, follow_redirects=True)
        assert answer.url.path == "/view/" and "Rejected." in answer.text and store.proposals.all() == []


@pytest.mark.slow
def test_the_first_day_says_how_to_begin(tmp_path: Path) -> None:
    """An empty home names the command; with one conversation the stream has it and nothing else."""
    with run_viewer(tmp_path / "home") as viewer:
        client = viewer.client()
        assert "memoranda setup" in client.get("/view/").text
        viewer.memory.sessions.create_session("first", "cli", title="Hello")
        viewer.memory.sessions.append_message("first", "user", "Hello")
        page = client.get("/view/").text
        assert _KINDS.findall(page) == ["conversation"] and "memoranda setup" not in page


@pytest.mark.slow
def test_the_first_day_of_a_user_says_how_the_service_is_filled(tmp_path: Path) -> None:
    """`memoranda setup` would fill the home of the machine, and not the memory of this user."""
    with run_viewer(tmp_path / "home", "ana") as viewer:
        page = viewer.client().get("/view/").text
    assert "memoranda setup" not in page and "do as ana appears here" in page and "MEMORANDA_URL" in page
