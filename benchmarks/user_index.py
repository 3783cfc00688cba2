"""What one index file per user costs on a PostgreSQL server: the first search of a user, and those after it.

    .venv/bin/python -m benchmarks.user_index [--users 200] [--messages 200] [--large 10000]

Fills a server with `--users` users of `--messages` messages each, and one user with `--large`. Then a node without any
index answers searches of the large user, with an index of that user (`search.index: user`) and with one of all users.
Prints seconds of wall time and of CPU, and bytes.
"""

import argparse
import json
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memoranda.home.session_db import SessionDB
from memoranda.memory.record.scope import Scope
from memoranda.search.tool import SessionSearchTool
from tests.postgres import newest_binaries, start_server

_WORDS = (Path(__file__).parent / "transcript_words.txt").read_text().split()
_IN_SESSION = 25


def fill(db: SessionDB, users: int, messages: int, large: int) -> None:
    """Interleave the sessions of all users, as a server gets them; a message has 1.2 kB on average."""
    chooser = random.Random(7)
    pending = [(f"user-{number}", session) for number in range(users) for session in range(messages // _IN_SESSION)]
    pending += [("large", session) for session in range(large // _IN_SESSION)]
    chooser.shuffle(pending)
    for user, session in pending:
        name = f"{user}-{session}"
        db.create_session(name, "cli", user_id=user)
        texts = [" ".join(chooser.choices(_WORDS, k=chooser.randint(20, 380))) for _ in range(_IN_SESSION)]
        roles = ("user", "assistant")
        db.append_messages(name, [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)])


def timed(call: Callable[[], Any]) -> dict[str, float]:
    began, used = time.perf_counter(), time.process_time()
    call()
    return {"seconds": round(time.perf_counter() - began, 3), "cpu": round(time.process_time() - used, 3)}


def measure(url: str, directory: Path, user_index_mb: int) -> dict[str, Any]:
    """The first search and later ones of the large user, on a node without an index."""
    with SessionDB(url, index_directory=directory, user_index_mb=user_index_mb) as db:
        own = db.scoped(Scope.of("large"))
        tool = SessionSearchTool(lambda: own)
        chooser = random.Random(8)
        figures: dict[str, Any] = {}
        if user_index_mb:
            figures["first search"] = timed(lambda: tool.call({"query": "retry the import", "limit": 10}))
        else:
            figures["build"] = timed(own.index.catch_up)
        times = []
        for _ in range(20):
            query = " ".join(chooser.choices(_WORDS, k=4))
            times.append(timed(lambda: tool.call({"query": query, "limit": 10})))  # noqa: B023
        figures["later searches, median"] = {
            name: round(statistics.median(each[name] for each in times), 3) for name in ("seconds", "cpu")
        }
        figures["bytes"] = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--large", type=int, default=10_000)
    arguments = parser.parse_args()
    server, directory = start_server(newest_binaries()), Path(tempfile.mkdtemp(prefix="memoranda-users-"))
    try:
        with server.schema() as url:
            with SessionDB(url, index_directory=directory / "filling", user_index_mb=1) as db:
                fill(db, arguments.users, arguments.messages, arguments.large)
            server.admin("ANALYZE")
            for name, user_index_mb in (("user", 1000), ("node", 0)):
                print(name, json.dumps(measure(url, directory / name, user_index_mb)), flush=True)
    finally:
        server.stop()
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
