"""The pages of the viewer over a large home: CPU until the first byte, and the size of each page.

    .venv/bin/python -m benchmarks.viewer [--home DIRECTORY] [--messages 100000] [--only NAME]

The home is made if it is missing, and stays in DIRECTORY. `memoranda view` runs as a process of its own; CPU is its
user and system time. "start" is the first request of a process for this page, after the viewer has prepared itself in
the background; "next" is the mean of several requests after that. The first line is a browser that asks at once, while
the viewer still prepares itself: it includes the CPU of both.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.viewer_home import LONG, build
from memoranda.service.viewer.page import page_url
from memoranda.service.viewer.pages import PAGES

_REPEATS = 10
_QUIET_SECONDS = 0.3
_TICK = os.sysconf("SC_CLK_TCK")


@contextmanager
def run_viewer(home: Path) -> Iterator[tuple[int, str]]:
    """The process of `memoranda view`, and its login link."""
    command = [sys.executable, "-m", "memoranda", "view", "--no-browser", "--json", "--home", str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        text = ""
        while not text.rstrip().endswith("}"):
            text += process.stdout.readline()
        try:
            yield process.pid, json.loads(text)["login_url"]
        finally:
            process.terminate()


def cpu_of(process: int) -> float:
    """User and system seconds of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


class Visitor:
    """A browser that is logged in to a viewer that has just been started."""

    def __init__(self, process: int, link: str) -> None:
        self.process = process
        address = urlsplit(link)
        self._connection = http.client.HTTPConnection("127.0.0.1", address.port or 80, timeout=60)
        self._connection.request("GET", f"{address.path}?{address.query}")
        answer = self._connection.getresponse()
        answer.read()
        self._cookie = (answer.getheader("Set-Cookie") or "").partition(";")[0]

    def get(self, url: str) -> int:
        """The size of a page; raises RuntimeError for anything but a page."""
        self._connection.request("GET", url, headers={"Cookie": self._cookie})
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{url}: {answer.status} {body[:300]!r}")
        return len(body)

    def wait_until_idle(self) -> float:
        """Wait until the process has nothing to do any more; returns its CPU so far."""
        before, now = -1.0, cpu_of(self.process)
        while now != before:
            time.sleep(_QUIET_SECONDS)
            before, now = now, cpu_of(self.process)
        return now


def measure_start(home: Path) -> tuple[float, float]:
    """CPU ms and ms until a browser has the first page that asks as soon as the viewer has printed its link."""
    with run_viewer(home) as (process, link):
        start, began = cpu_of(process), time.monotonic()
        Visitor(process, link).get(page_url("/"))
        return 1000 * (cpu_of(process) - start), 1000 * (time.monotonic() - began)


def measure(home: Path, url: str) -> tuple[float, float, int]:
    """For one page in a new process: CPU of the first request and of the following ones in ms, and bytes."""
    with run_viewer(home) as (process, link):
        visitor = Visitor(process, link)
        start = visitor.wait_until_idle()
        size = visitor.get(url)
        first = visitor.wait_until_idle() - start
        start = cpu_of(process)
        for _ in range(_REPEATS):
            visitor.get(url)
        return 1000 * first, 1000 * (cpu_of(process) - start) / _REPEATS, size


def _addresses() -> dict[str, str]:
    session = "/sessions/{session}"
    others = {page.name: page_url(page.path) for page in PAGES if page.label and page.name != "search"}
    return others | {
        "search, one word": page_url("/search", q="deadlock"),
        "search, a question": page_url("/search", q="why does the replica lose the snapshot of the invoice table?"),
        "search, filtered": page_url("/search", q="deadlock canary", agent="codex", since="30d", role="user"),
        "session": page_url(session, session=LONG),
        "session, in the middle": page_url(session, session=LONG, after=1_500),
        "recall log of a session": page_url("/recall", session=LONG),
        "memory history": page_url("/memory/history"),
        "memory prompt": page_url("/memory/prompt"),
        "spending by session": page_url("/spending", by="session", days=365),
        "facts with words": page_url("/facts", words="replica"),
        "health, checked": page_url("/health", check=1),
    }


def main() -> None:
    """Build the home if it is missing, measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--home", type=Path, default=Path(tempfile.gettempdir()) / "memoranda-viewer-benchmark")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--only", default="", help="only pages whose names contain this")
    options = parser.parse_args()
    if not (options.home / "state.db").exists():
        build(options.home, options.messages)
    cpu, wall = measure_start(options.home)
    print(f"The first page at once after the start: {cpu:.0f} ms of CPU, {wall:.0f} ms.")
    print(f"{'page':28} {'start, ms CPU':>14} {'next, ms CPU':>14} {'kB':>8}")
    for name, url in _addresses().items():
        if options.only not in name:
            continue
        first, following, size = measure(options.home, url)
        print(f"{name:28} {first:14.0f} {following:14.1f} {size / 1000:8.1f}", flush=True)


if __name__ == "__main__":
    main()
