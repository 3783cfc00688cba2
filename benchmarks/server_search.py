"""What a search costs over a record in a file and over the same record on a PostgreSQL server, in the same run.

    .venv/bin/python -m benchmarks.server_search [--data DIRECTORY] [--set NAME] [--questions 100] [--delay MS]

Every question is asked on both, one after the other, so that whatever else runs slows both. Prints for each set: the
median and the 95th percentile of the time, CPU of the client and of the server, the ratio of the times, and the round
trips of a search, counted by a proxy. `--delay` adds a network's delay to each round trip.
"""

import argparse
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from benchmarks.recall import fill_store, read_sets
from benchmarks.server_append import server_cpu
from memoranda.home.session_db import SessionDB
from memoranda.search.tool import SessionSearchTool
from tests.storage.postgres.proxy import Proxy
from tests.storage.postgres.servers import Server, newest_binaries, start_server

_WARM = 5


def measure(server: Server, data: dict[str, Any], count: int, delay: float) -> dict[str, Any]:
    """The figures of the first store of a set."""
    store = data["stores"][0]
    questions = [query["q"] for query in data["queries"] if query["store"] == store["id"]][:count]
    directory, proxy = Path(tempfile.mkdtemp(prefix="memoranda-search-")), Proxy(server.directory, delay)
    old, new = (quote(str(path), safe="") for path in (server.directory, proxy.directory))
    try:
        with (
            server.schema() as url,
            SessionDB(directory / "state.db") as file,
            SessionDB(url, index_directory=directory / "node") as direct,
            SessionDB(url.replace(old, new) if delay else url, index_directory=directory / "node") as on_server,
            SessionDB(url.replace(old, new), index_directory=directory / "node") as counted,
        ):
            for sessions in (file, direct):
                fill_store(sessions, data["name"], store)
                sessions.index.catch_up()
            return _compare(file, on_server, counted, questions, server, proxy)
    finally:
        proxy.close()
        shutil.rmtree(directory)


def _compare(
    file: SessionDB, on_server: SessionDB, counted: SessionDB, questions: list[str], server: Server, proxy: Proxy
) -> dict[str, Any]:
    tools = [SessionSearchTool(lambda: file), SessionSearchTool(lambda: on_server)]
    times: list[list[float]] = [[], []]
    cpu = [0.0, 0.0]
    for question in questions[:_WARM]:
        for tool in (*tools, SessionSearchTool(lambda: counted)):
            tool.call({"query": question, "limit": 10})
    before = server_cpu(server)
    for question in questions:
        for number, tool in enumerate(tools):
            began, used = time.perf_counter(), time.process_time()
            tool.call({"query": question, "limit": 10})
            times[number].append(time.perf_counter() - began)
            cpu[number] += time.process_time() - used
    of_server = server_cpu(server) - before
    trips = []
    for question in questions[:30]:
        proxy.round_trips = -1
        SessionSearchTool(lambda: counted).call({"query": question, "limit": 10})
        trips.append(proxy.round_trips + 1)
    per_search = 1000 / len(questions)
    return {
        "questions": len(questions),
        "file_ms": _percentiles(times[0]),
        "server_ms": _percentiles(times[1]),
        "ratio": round(sum(times[1]) / sum(times[0]), 2),
        "file_cpu_ms": round(cpu[0] * per_search, 1),
        "server_cpu_ms": [round(cpu[1] * per_search, 1), round(of_server * per_search, 1)],
        "round_trips": [min(trips), statistics.median(trips), max(trips)],
    }


def _percentiles(times: list[float]) -> list[float]:
    ordered = sorted(times)
    return [round(1000 * ordered[int(share * (len(ordered) - 1))], 1) for share in (0.5, 0.95)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory with *.json.gz sets; without it only our own sets")
    parser.add_argument("--set", action="append", dest="sets", help="only this set; can be given several times")
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--delay", type=float, default=0.0, metavar="MS", help="the network's delay per round trip")
    arguments = parser.parse_args()
    server = start_server(newest_binaries())
    try:
        for data in read_sets(arguments.data, arguments.sets):
            figures = measure(server, data, arguments.questions, arguments.delay / 1000)
            print(data["name"], json.dumps(figures), flush=True)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
