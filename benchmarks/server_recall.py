"""Compares the answers of a search over a record in a file and over the same record on a PostgreSQL server.

    .venv/bin/python -m benchmarks.server_recall [--data DIRECTORY] [--set NAME]

Every question of every set is asked on both; the whole answers must be equal, with ids, excerpts and confidence.
Halfway the index of the server's node is deleted. Prints one line per set, and fails if any answer differs.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.recall import fill_store, read_sets
from memoranda.home.session_db import SessionDB
from memoranda.search.tool import SessionSearchTool
from tests.postgres import Server, newest_binaries, start_server


def different_answers(server: Server, data: dict[str, Any], store: dict[str, Any], limit: int) -> Iterator[bool]:
    """For each question about a store, whether the two answers differ."""
    directory = Path(tempfile.mkdtemp(prefix="memoranda-recall-"))
    questions = [query["q"] for query in (*data["queries"], *data["no_answer"]) if query["store"] == store["id"]]
    try:
        with (
            server.schema() as url,
            SessionDB(directory / "state.db") as in_file,
            SessionDB(url, index_directory=directory / "node") as on_server,
        ):
            for sessions in (in_file, on_server):
                fill_store(sessions, data["name"], store)
                sessions.index.catch_up()
            for number, question in enumerate(questions[:limit]):
                if number == len(questions[:limit]) // 2:
                    for file in on_server.index.files:
                        file.unlink()
                    # While a node has no index, it searches directly and says so.
                    on_server.index.catch_up()
                answers = [
                    SessionSearchTool(lambda: sessions).call({"query": question, "limit": 10})  # noqa: B023
                    for sessions in (in_file, on_server)
                ]
                yield answers[0] != answers[1]
    finally:
        shutil.rmtree(directory)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory with *.json.gz sets; without it only our own sets")
    parser.add_argument("--set", action="append", dest="sets", help="only this set; can be given several times")
    arguments = parser.parse_args()
    server, total = start_server(newest_binaries()), 0
    try:
        for data in read_sets(arguments.data, arguments.sets):
            compared = [
                differs for store in data["stores"] for differs in different_answers(server, data, store, sys.maxsize)
            ]
            total += sum(compared)
            print(f"{data['name']}: {len(compared):,} questions, {sum(compared)} answers differ", flush=True)
    finally:
        server.control("-m", "immediate", "stop")
        shutil.rmtree(server.directory)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
