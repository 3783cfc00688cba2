"""The pages about conversations: Today, Search, Timeline, Session, a single message, and exports."""

import json
import re
import time
from datetime import date, timedelta
from html import unescape
from pathlib import Path

import httpx
import pytest

from memoranda.integrations.hooks.log import HookLog
from memoranda.search.recall_log import TURN, PromptPlace
from memoranda.service.viewer.pages.session import PAGE_CHARS, TextBudget
from tests.service.viewer.example_home import BRANCH, COMPRESSED, CONTINUATION, DEADLOCK, HOST_ID, LONG
from tests.service.viewer.running_viewer import RunningViewer, run_viewer

pytestmark = pytest.mark.slow

_LINK = re.compile(r'href="(/view[^"]*)"')


def test_today_has_the_latest_of_each_agent(client: httpx.Client) -> None:
    """Conversations by agent, what was remembered, what waits and what it cost."""
    page = client.get("/view/").text
    for text in (
        "claude-code",
        "Fix the deadlock",
        "telegram",
        "Deploys happen on Tuesdays.",
        "awaiting approval",
        "spent today",
    ):
        assert text in page, text


def test_a_search_finds_marks_explains_and_says_how_to_resume(client: httpx.Client) -> None:
    """A result links to its message, marks the words, lists the signals, and has the exact command."""
    page = client.get("/view/search", params={"q": "deadlock queue"}).text
    assert "<mark>queue</mark>" in page
    assert f"/view/sessions/{DEADLOCK}?message=" in page
    assert "claude --resume 8c1f5c1e-0000-4000-8000-000000000001" in unescape(page)
    assert "coverage" in page
    assert "about eight of ten such results contained the answer" in page
    assert "Trip to Lisbon" not in page


def test_filters_are_addresses(client: httpx.Client) -> None:
    """Each filter narrows the search, and the form shows what is chosen."""
    assert "Fix the deadlock" in client.get("/view/search", params={"q": "deadlock", "source": "claude-code"}).text
    narrowed = client.get("/view/search", params={"q": "deadlock", "source": "telegram", "since": "30d"}).text
    assert "Fix the deadlock" not in narrowed
    assert '<option value="telegram" selected>' in narrowed and '<option value="30d" selected>' in narrowed
    assert "is not a time" in client.get("/view/search", params={"q": "deadlock", "since": "nonsense"}).text


def test_results_continue_on_the_next_page(tmp_path: Path) -> None:
    """More conversations than fit one page are reached by its link, each once."""
    with run_viewer(tmp_path / "home") as viewer:
        db = viewer.memory.sessions
        for number in range(25):
            db.create_session(f"s{number}", "cli", title=f"Heron {number}")
            db.append_message(f"s{number}", "user", f"The heron has number {number}.")
        client, address, found = viewer.client(), "/view/search?q=heron", []
        while address:
            page = client.get(address).text
            found += re.findall(r'<h2><a href="/view/sessions/(s\d+)', page)
            following = re.search(r'rel="next" href="([^"]+)"', page)
            address = unescape(following[1]) if following else ""
        assert sorted(found) == sorted(f"s{number}" for number in range(25))


def test_the_timeline_counts_and_lists_by_day(client: httpx.Client) -> None:
    """The table says how many conversations a day had, and an earlier day can be asked for."""
    page = client.get("/view/timeline").text
    assert page.count("data-x=") == 91
    assert "Trip to Lisbon" in page and "A long night" in page
    earlier = client.get("/view/timeline", params={"until": (date.today() - timedelta(days=3)).isoformat()}).text
    assert "Fix the deadlock" not in earlier and "A long night" in earlier
    assert client.get("/view/timeline?agent=telegram").text.count('class="conversation"') == 1
    for wrong in ("yesterday", "0001-01-01", "2026-13-40", "9999-12-31"):
        assert client.get("/view/timeline", params={"until": wrong}).status_code == 404


def test_the_counts_of_the_timeline_are_those_of_its_list(viewer: RunningViewer) -> None:
    """A compressed conversation and its messages count once, and what lists omit is not counted."""
    rows = viewer.memory.sessions.list_sessions_rich(limit=100, order_by_last_active=True)
    counted = viewer.memory.sessions.listing.last_activity(0.0, 4e9)
    assert sorted((row["last_active"], row["source"], row["message_count"]) for row in rows) == sorted(counted)


def test_a_session_shows_turns_tools_recall_and_relations(client: httpx.Client) -> None:
    """Tool calls are folded, the recall stands at its prompt, and branches are linked both ways."""
    page = client.get(f"/view/sessions/{DEADLOCK}").text
    assert "How do we fix the deadlock" in page
    assert re.search(r"<details class=\"call\"><summary>→ <strong>read_file</strong>", page)
    assert "Recalled into this prompt" in page and "1 conversation cleared the floor" in page
    assert f"/view/sessions/{BRANCH}" in page
    assert f'Branch of\n  <a href="/view/sessions/{DEADLOCK}"' in client.get(f"/view/sessions/{BRANCH}").text


def test_what_was_said_is_rendered() -> None:
    """Markdown becomes elements, unless that would make the page too large; then it is shown as it was written."""
    small, large = "**bold** and <b>raw</b>", "*a* " * (PAGE_CHARS // 10)
    budget = TextBudget()
    rendered = budget.render(budget.shorten(small, 6_000)).html
    assert rendered == "<p><strong>bold</strong> and &lt;b&gt;raw&lt;/b&gt;</p>"
    shown = [budget.render(budget.shorten(large, 6_000)).html for _ in range(50)]
    assert "<em>" in shown[0] and "*a*" in shown[-1]
    assert sum(map(len, shown)) < 1.2 * PAGE_CHARS


def test_a_branch_shows_the_context_that_it_copied(tmp_path: Path) -> None:
    """The copies link to the original messages; with messages of its own, the context is folded."""
    with run_viewer(tmp_path / "home") as running:
        db, client = running.memory.sessions, running.client()
        db.create_session("first", "cli", title="The trip")
        ids = [db.append_message("first", "user", f"Question {number}") for number in range(30)]
        db.branch_session("first", "second")
        page = client.get("/view/sessions/second").text
        assert '<details class="card context" open>' in page and "its last 20 messages" in page
        assert "Question 29" in page and "Question 9<" not in page
        assert f'href="/view/sessions/first?message={ids[29]}#message-{ids[29]}"' in page
        db.append_message("second", "user", "Another way")
        page = client.get("/view/sessions/second").text
        assert '<details class="card context">' in page and "Question 29" in page and "Another way" in page


def test_today_counts_all_conversations(tmp_path: Path) -> None:
    """Also those that the page does not list, and none of yesterday."""
    now = time.time()
    with run_viewer(tmp_path / "home") as running:
        db = running.memory.sessions
        for number in range(60):
            db.create_session(f"s{number}", "cli", started_at=now)
            # All at once, so that midnight does not come between them.
            at = now - (2 * 86_400 if number >= 55 else 0)
            db.append_messages(f"s{number}", [{"role": "user", "content": "Hello", "timestamp": at}])
        assert "<strong>55</strong> conversations today" in running.client().get("/view/").text


def test_each_recall_stands_at_its_own_prompt(tmp_path: Path) -> None:
    """Our agent logs the message; of hooks with equal words, the nearest in time counts; the rest is in the log."""
    with run_viewer(tmp_path / "home") as running:
        memory, client, home = running.memory, running.client(), tmp_path / "home"
        db, name = memory.sessions, f"codex-{HOST_ID}"
        db.create_session(name, "codex", title="Repeated", started_at=1_700_000_000.0)
        texts = ("Please continue", "Please continue", "Use sk-live-0a1b2c3d now")
        rows = [
            {"role": "user", "content": text, "timestamp": 1_700_000_000.0 + 600 * place}
            for place, text in enumerate(texts)
        ]
        ids = db.append_messages(name, rows)
        for at, prompt in ((601.0, texts[0]), (1_199.0, texts[2]), (86_400.0, texts[0])):
            log = HookLog(home, 1_700_000_000.0 + at)
            log.begin("codex", "UserPromptSubmit", HOST_ID, prompt)
            log.end("nothing", f"reason {at:g}", {"given": [{"session_id": "gone", "message_id": 3}]})
        place = PromptPlace(TURN, "codex", name, ids[0])
        memory.services.recall_log(None).add(place, "other words", "given", "our own", began=1.0, text="Otto <b>")
        page = client.get(f"/view/sessions/{name}").text
        parts = [page.partition(f'id="message-{number}"')[0] for number in ids]
        assert [("our own" in part, "reason 601" in part, "reason 1199" in part) for part in parts] == [
            (True, False, False), (True, True, False), (True, True, True),
        ]  # fmt: skip
        assert "Otto &lt;b&gt;" in page and "not in the record any more" in page
        assert f'href="/view/recall?session={name}">1 further recall</a>' in page
        listed = client.get(f"/view/recall?session={name}").text
        assert listed.count('class="card call"') == 4 and "reason 86400" in listed
        everything = client.get("/view/recall").text
        assert f"/view/sessions/{name}?message={ids[0]}#message-{ids[0]}" in everything
        assert everything.count("Please continue</a>") == 3


@pytest.mark.parametrize("session", [COMPRESSED, CONTINUATION])
def test_a_compressed_conversation_is_one(client: httpx.Client, session: str) -> None:
    """Every session of the chain shows the whole, each message once, and where it was compressed."""
    page = client.get(f"/view/sessions/{session}").text
    assert "Compressed 1 time" in page
    drawn = page.split('aria-label="Lineage"')[1].split("</section>")[0]
    assert re.findall(r">(Session \d)</a>", drawn) == ["Session 1", "Session 2"] and "after compression" in drawn
    assert page.count("Add the tax.") == 1
    assert "The invoice is 120 euros." in page and "142.80" in page
    assert "The context was compressed here" in page


def test_a_long_session_is_read_part_by_part(client: httpx.Client) -> None:
    """Following the links forward and back shows every message once, in order."""

    def follow(address: str, relation: str) -> list[list[int]]:
        parts = []
        while address:
            page = client.get(address).text
            parts.append([int(number) for number in re.findall(r'id="message-(\d+)"', page)])
            link = re.search(rf'rel="{relation}" href="([^"]+)"', page)
            address = unescape(link[1]) if link else ""
        return parts

    forward = follow(f"/view/sessions/{LONG}", "next")
    everything = [number for part in forward for number in part]
    assert len(everything) == 240 and everything == sorted(set(everything))
    backward = follow(f"/view/sessions/{LONG}?after={forward[-2][-1]}", "prev")
    assert [number for part in reversed(backward) for number in part] == everything


def test_a_link_to_a_message_opens_its_part(client: httpx.Client) -> None:
    """The message is on the page, marked; a message of another conversation is not found there."""
    first = int(re.findall(r'id="message-(\d+)"', client.get(f"/view/sessions/{LONG}").text)[0])
    page = client.get(f"/view/sessions/{LONG}?message={first + 150}").text
    assert re.search(rf'class="message [a-z]+ linked" id="message-{first + 150}"', page)
    assert client.get(f"/view/sessions/ferry?message={first}").status_code == 404
    assert client.get(f"/view/sessions/ferry/messages/{first}").status_code == 404
    for wrong in ("x", "-1", "9" * 30, "99999999"):
        assert client.get(f"/view/sessions/{LONG}?message={wrong}").status_code == 404


def test_pages_stay_small_and_long_texts_stay_reachable(tmp_path: Path) -> None:
    """Fifty huge messages make a page below 200 kB, and every character of one can be read."""
    text = "\"<&>' \N{SNOWMAN}" * 30_000
    with run_viewer(tmp_path / "home") as viewer:
        db = viewer.memory.sessions
        db.create_session("huge", "cli")
        parts = [text, *(text[:7_000] for _ in range(49))]
        roles = ["tool", "user"] * 25
        messages = [{"role": role, "content": part} for role, part in zip(roles, parts, strict=True)]
        ids = db.append_messages("huge", messages)
        client = viewer.client()
        assert len(client.get("/view/sessions/huge").content) < 200_000
        address, read = f"/view/sessions/huge/messages/{ids[0]}", ""
        while address:
            answer = client.get(address)
            assert len(answer.content) < 200_000
            read += unescape(answer.text.split('<pre class="text whole"')[1].split(">", 1)[1].split("</pre>")[0])
            link = re.search(r'rel="next" href="([^"]+)"', answer.text)
            address = unescape(link[1]) if link else ""
        assert read == text


def test_a_budget_is_spent_on_the_first_texts() -> None:
    """All texts of a page together stay within the budget and a small remainder for each."""
    budget = TextBudget()
    shown = [budget.shorten('"' * 50_000, 6_000) for _ in range(50)]
    assert sum(5 * len(text.text) for text in shown) < PAGE_CHARS + 50 * 5 * 160
    assert len(shown[0].text) == 6_000 and all(text.text for text in shown)


@pytest.mark.parametrize(
    ("file_format", "text"), [("md", "# Fix the deadlock"), ("html", "<!doctype html>"), ("jsonl", "{")]
)
def test_a_conversation_can_be_exported(client: httpx.Client, file_format: str, text: str) -> None:
    """The browser saves a file with the whole conversation."""
    answer = client.get(f"/view/sessions/{DEADLOCK}/export?format={file_format}")
    assert answer.headers["content-disposition"] == f'attachment; filename="Fix-the-deadlock.{file_format}"'
    assert answer.text.startswith(text) and "lock of the queue" in answer.text
    if file_format == "jsonl":
        assert json.loads(answer.text.splitlines()[0])["id"] == DEADLOCK
    assert client.get(f"/view/sessions/{DEADLOCK}/export?format=exe").status_code == 404


def test_no_link_of_a_page_is_broken(client: httpx.Client) -> None:
    """Every link on the main pages answers."""
    seen: set[str] = set()
    for start in ("/view/", "/view/search?q=deadlock", f"/view/sessions/{DEADLOCK}"):
        for link in _LINK.findall(client.get(start).text):
            address = unescape(link).partition("#")[0]
            if address not in seen:
                seen.add(address)
                assert client.get(address).status_code == 200, f"{start} links to {address}"


def test_users_see_only_their_own(tmp_path: Path) -> None:
    """A viewer for one user shows neither the sessions nor the messages of another."""
    home = tmp_path / "home"
    with run_viewer(home, "ben") as viewer:
        db = viewer.memory.sessions
        db.create_session("secret", "cli", title="The heron plan")
        message = db.append_message("secret", "user", "The heron lands at dawn.")
        client = viewer.client()
        for path in ("/view/", "/view/search?q=heron", "/view/timeline"):
            assert "heron" not in client.get(path).text.replace("q=heron", "").replace('value="heron"', "").replace(
                "Search: heron", ""
            ), path
        for path in ("secret", f"secret/messages/{message}", "secret/export"):
            assert client.get(f"/view/sessions/{path}").status_code == 404
