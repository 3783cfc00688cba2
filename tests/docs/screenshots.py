"""Writes the pictures of the viewer in docs/pictures from a demo home: `python -m tests.docs.screenshots`.

Needs chromium and playwright. The conversations are made up; pages and numbers are what the viewer shows of them.
"""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from memoranda.api.memory import Memory
from memoranda.memory.curated.operations import Add, Replace
from memoranda.memory.curated.settings import CuratedSettings
from memoranda.memory.curated.store import MemoryStore
from memoranda.models.model import Usage
from memoranda.models.spending.ledger import Ledger
from memoranda.support.origin import PERSON, Origin
from tests.models.spending.models import QUESTION, Fixed
from tests.service.viewer.running_viewer import RunningViewer, run_viewer

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
MAX_BYTES = 150_000
WIDTH, HEIGHT = 1180, 780
_DAY = 86_400.0
_DEADLOCK = "7f0c52d4-heron"

PAGES = {
    "viewer-today": "/",
    "viewer-search": "/search?q=deadlock+worker",
    "viewer-session": f"/sessions/{_DEADLOCK}",
    "viewer-memory": "/memory?change=9",
    "viewer-tidy": "/memory/tidy",
    "viewer-approvals": "/approvals",
    "viewer-spending": "/spending?days=30",
}
_TALKS = (
    (0.1, _DEADLOCK, "claude-code", "Fix the deadlock in the job queue", "/home/ana/heron", (
        "The workers hang again since this morning. Where is the deadlock?",
        "Two locks are taken in different order: `Queue.take` takes the queue and then the worker, `Worker.stop` the "
        "worker and then the queue. I would take the lock of the queue first in both.",
        "Do that, and add a test that stops a worker while it takes a job.",
        "Done: both take the lock of the queue first, and `test_stop_while_taking` runs 200 rounds without a hang.",
    )),
    (0.3, "rollout-heron", "codex", "Roll out the new queue to staging", "/home/ana/heron", (
        "Deploy the branch with the deadlock fix to staging and watch the workers.",
        "Deployed to staging at 09:40. Eight workers, no restarts in 30 minutes, the queue is empty.",
    )),
    (1.2, "ferry-lisbon", "telegram", "Trip to Lisbon", "", (
        "Which ferry do I take to Cacilhas on Saturday?",
        "From Cais do Sodré, every 20 minutes; the last one back is at 01:40.",
    )),
    (2.1, "invoice-march", "claude-code", "Import the invoices of March", "/home/ana/ledgerly", (
        "The importer skips invoices with a negative total. Why?",
        "Credit notes were filtered as invalid. They are imported with type `credit` now.",
    )),
    (4.0, "index-migration", "opencode", "Move the search index", "/home/ana/heron", (
        "How long does the migration of the index take for 400,000 documents?",
        "About 11 minutes on the staging machine, and reads keep working meanwhile.",
    )),
    (8.0, "release-notes", "claude-code", "Release notes for 2.4", "/home/ana/heron", (
        "Write the release notes for 2.4 from the merged changes.",
        "Here they are: the worker deadlock, faster imports, and the new retry policy.",
    )),
)  # fmt: skip
_MEMORY = (
    "The staging database is called heron-staging; deploys go through `make ship`.",
    "Workers take the lock of the queue before their own.",
    "CI runs on GitLab; the slow tests run at night.",
    "Invoices of ledgerly come as CSV with semicolons.",
)
_USER = ("Ana, works on heron and ledgerly.", "Prefers short answers with the command to run.", "Time zone: Lisbon.")


def fill_demo(memory: Memory) -> None:
    """Fill a home with two weeks of made-up work."""
    now = time.time()
    for ago, name, source, title, project, texts in _TALKS:
        started = now - ago * _DAY
        memory.sessions.create_session(name, source, title=title, started_at=started, project=project or None)
        memory.sessions.append_messages(
            name,
            [
                {"role": ("user", "assistant")[number % 2], "content": text, "timestamp": started + 40.0 * number}
                for number, text in enumerate(texts)
            ],
        )
    agent = Origin("agent", _DEADLOCK)
    for text in _MEMORY:
        memory.curated.add("memory", text, agent)
    for text in _USER:
        memory.curated.add("user", text, PERSON)
    memory.curated.replace(
        "memory", "at night", "CI runs on GitLab; the slow tests run at night and on release tags.", PERSON
    )
    proposing = MemoryStore(memory.curated.directory, CuratedSettings(write_approval="propose"))
    proposing.apply("memory", [Replace("make ship", _MEMORY[0].replace("make ship", "make deploy"))], agent)
    sources = Origin("agent", "invoice-march", sources=("web_fetch",))
    proposing.apply("memory", [Add("Credit notes of ledgerly have type `credit` and a negative total.")], sources)
    for text in ("The shop runs on Node 18.", "The shop moved from Node 18 to Node 22."):
        memory.curated.add("memory", text, agent)
    _add_spending(memory, now)


def _add_spending(memory: Memory, now: float) -> None:
    for day in range(29, -1, -1):
        ledger = Ledger(memory.home.root, clock=partial(float, now - day * _DAY))
        size = 20_000 + 9_000 * (day * 7 % 11)
        ledger.metered(Fixed(Usage(size, size // 20, size * 7 // 10)), "chat", session_id=_DEADLOCK).reply("", QUESTION)
        ledger.metered(Fixed(Usage(size // 6, 300)), "review", session_id=_DEADLOCK, background=True).reply(
            "", QUESTION
        )
        ledger.close()


@contextmanager
def demo_viewer() -> Iterator[RunningViewer]:
    """A viewer over the demo home."""
    with TemporaryDirectory() as directory, run_viewer(Path(directory) / "home") as viewer:
        fill_demo(viewer.memory)
        yield viewer


def write_pictures(directory: Path = PICTURES) -> list[Path]:
    """Write one PNG per page; raises AssertionError if one is too large for the documentation."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    written = []
    with demo_viewer() as viewer, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(viewer.login_url())
        page.wait_for_url("**/view/")
        for name, address in PAGES.items():
            page.goto(f"{viewer.url}/view{address}")
            page.wait_for_load_state("networkidle")
            picture = directory / f"{name}.png"
            page.screenshot(path=picture)
            assert picture.stat().st_size < MAX_BYTES, f"{picture.name} has {picture.stat().st_size:,} bytes"
            written.append(picture)
        browser.close()
    return written


if __name__ == "__main__":
    for path in write_pictures():
        print(f"{path} {path.stat().st_size:,} bytes")
