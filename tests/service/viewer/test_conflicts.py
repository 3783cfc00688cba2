"""Entries that two machines changed differently are decided on the page, and every decision can be undone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from memoranda.service.viewer.pages.approvals import read_conflicts
from memoranda.storage.files.file_lock import FileLock
from memoranda.support.origin import PERSON
from memoranda.upkeep.sync.synchroniser import LOCK_NAME
from tests.service.viewer.running_viewer import RunningViewer, form_token, run_viewer
from tests.upkeep.sync.machines import Machine, sync_all

pytestmark = pytest.mark.slow


@contextmanager
def _two_machines(tmp_path: Path) -> Iterator[tuple[RunningViewer, list[Machine]]]:
    """The viewer of a machine whose entry another machine has changed too."""
    with run_viewer(tmp_path / "mine") as running:
        (tmp_path / "shared").mkdir()
        pair = [Machine(tmp_path / name, tmp_path / "shared") for name in ("mine", "theirs")]
        pair[0].memory.remember("Likes tea.")
        sync_all(pair, 2)
        for machine, text in zip(reversed(pair), ("Likes <b>black</b> tea.", "Likes green tea."), strict=True):
            machine.memory.curated.replace("memory", "Likes tea.", text, PERSON)
        sync_all(pair[::-1], 2)
        try:
            yield running, pair
        finally:
            for machine in pair:
                machine.close()


def _decide(running: RunningViewer, client: httpx.Client, keep: str) -> httpx.Response:
    page = client.get("/view/approvals").text
    (row,) = read_conflicts(running.memory) or [{}]
    fields = {"form_token": form_token(page), "number": str(row["number"]), "seen": row["seen"], "keep": keep}
    return client.post("/view/approvals/conflicts/decide", data=fields, follow_redirects=True)


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        ("mine", {"Likes green tea."}),
        ("theirs", {"Likes <b>black</b> tea."}),
        ("both", {"Likes green tea.", "Likes <b>black</b> tea."}),
    ],
)
def test_a_conflict_is_decided_on_the_page_and_undone(tmp_path: Path, keep: str, expected: set[str]) -> None:
    """Both machines then agree; the text that was not kept is one button away."""
    with _two_machines(tmp_path) as (running, pair):
        client = running.client()
        page = client.get("/view/approvals").text
        assert "Changed on two machines" in page and "Likes green tea." in page
        assert "Likes &lt;b&gt;black&lt;/b&gt; tea." in page and "<b>black" not in page
        answer = _decide(running, client, keep)
        assert answer.status_code == 200
        assert "Changed on two machines" not in client.get("/view/approvals").text
        sync_all(pair, 2)
        assert pair[0].entries() == pair[1].entries() == expected
        token = {"form_token": form_token(answer.text)}
        if keep == "mine":
            (rejected,) = running.memory.curated.proposals.rejected()
            for action in ("restore", "approve"):
                client.post(f"/view/approvals/{rejected.id}", data=token | {"action": action})
            assert pair[0].entries() == {"Likes <b>black</b> tea."}
        else:
            change = str(answer.url.params["change"])
            client.post("/view/memory/undo", data=token | {"change": change})
            assert pair[0].entries() == {"Likes green tea."}


def test_what_changed_meanwhile_is_not_decided(tmp_path: Path) -> None:
    """A form decides only the texts that it has shown; a run that is going on is not waited for."""
    with _two_machines(tmp_path) as (running, pair):
        client = running.client()
        (row,) = read_conflicts(running.memory) or [{}]
        token = form_token(client.get("/view/approvals").text)
        pair[0].memory.curated.replace("memory", "Likes green tea.", "Likes white tea.", PERSON)
        pair[0].sync()
        fields = {"form_token": token, "number": str(row["number"]), "seen": row["seen"], "keep": "theirs"}
        answer = client.post("/view/approvals/conflicts/decide", data=fields)
        assert answer.status_code == 409 and "Look at it again" in answer.text
        assert pair[0].entries() == {"Likes white tea."}
        assert client.post("/view/approvals/conflicts/decide", data=fields | {"keep": "x"}).status_code == 422
        with FileLock(tmp_path / "mine" / LOCK_NAME, 1):
            assert "A synchronisation is running" in client.get("/view/approvals").text
