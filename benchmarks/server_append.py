"""What a durable append costs in a file and on a PostgreSQL server, with eight writers in the same run.

    .venv/bin/python -m benchmarks.server_append [messages per writer]

Starts the server of the development group with its default durability (fsync on), next to a SQLite file on the same
disk. Eight processes append to sessions of their own. CPU is what counts: user and system time of all writers, and of
the server's processes, per message. Rates depend on the disk and on what else runs.
"""

import json
import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from memoranda.memory.record.store import open_store
from tests.storage.postgres.servers import Server, newest_binaries, start_server

WRITERS = 8
TEXT = (
    "The importer waits for the lock of the session before it reads the file, so that two imports never overlap. " * 10
)
_TICK = os.sysconf("SC_CLK_TCK")


def append_all(location: str, writer: int, count: int, ready: Any, start: Any, results: Any) -> None:
    """Append messages one by one, and report CPU and the time of each."""
    with open_store(location if "://" in location else Path(location), wait=60.0) as store:
        store.sessions.create_session(f"s{writer}", "cli")
        for number in range(20):
            store.messages.append_message(f"s{writer}", "user", f"warm {number}")
        ready.put(writer)
        start.wait()
        before, times = time.process_time(), []
        for number in range(count):
            began = time.perf_counter()
            store.messages.append_message(f"s{writer}", "user", f"{number} {TEXT}")
            times.append(time.perf_counter() - began)
        results.put((time.process_time() - before, times))


def server_cpu(server: Server) -> float:
    """User and system time of the server and all its processes, also of those that ended."""
    postmaster = int((server.directory / "data" / "postmaster.pid").read_text().split()[0])
    total = 0.0
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            fields = (directory / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(directory.name) == postmaster:
            total += sum(map(int, fields[11:15])) / _TICK
        elif int(fields[1]) == postmaster:
            total += sum(map(int, fields[11:13])) / _TICK
    return total


def measure(location: str, count: int, server: Server | None) -> dict[str, float]:
    context = multiprocessing.get_context("spawn")
    ready, results, start = context.Queue(), context.Queue(), context.Event()
    writers = [
        context.Process(target=append_all, args=(location, number, count, ready, start, results))
        for number in range(WRITERS)
    ]
    for process in writers:
        process.start()
    for _ in writers:
        ready.get()
    before, began = server_cpu(server) if server else 0.0, time.perf_counter()
    start.set()
    answers = [results.get() for _ in writers]
    wall = time.perf_counter() - began
    on_server = (server_cpu(server) if server else 0.0) - before
    for process in writers:
        process.join()
    total, times = WRITERS * count, sorted(each for _, one in answers for each in one)
    client = sum(cpu for cpu, _ in answers)
    return {
        "client_cpu_ms": 1000 * client / total,
        "server_cpu_ms": 1000 * on_server / total,
        "cpu_ms": 1000 * (client + on_server) / total,
        "per_second": total / wall,
        "p50_ms": 1000 * statistics.median(times),
        "p99_ms": 1000 * times[int(0.99 * len(times))],
    }


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    directory = Path(tempfile.mkdtemp(prefix="bench"))
    server = start_server(newest_binaries(), directory=directory, settings={"shared_buffers": "128MB"})
    try:
        file = measure(str(directory / "home" / "state.db"), count, None)
        with server.schema() as url:
            on_server = measure(url, count, server)
    finally:
        server.control("-m", "immediate", "stop")
        shutil.rmtree(directory)
    print(json.dumps({"sqlite": file, "postgres": on_server, "ratio": on_server["cpu_ms"] / file["cpu_ms"]}, indent=1))


if __name__ == "__main__":
    main()
