"""The HTTP service under load: what a request costs beside a direct call, how long it takes, and a steady load.

    .venv/bin/python -m benchmarks.service_load cost [--server]
    .venv/bin/python -m benchmarks.service_load mixed [--server] [--seconds 20]
    .venv/bin/python -m benchmarks.service_load steady [--server] [--minutes 10]

`--server` puts the record into a PostgreSQL server of its own (fsync on) instead of a file. CPU is user and system time
of the service and, with `--server`, of PostgreSQL; the clients are a process of their own and do not count.
"""

import argparse
import http.client
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import memoranda
from benchmarks.server_append import server_cpu
from memoranda.home import config
from memoranda.support.home import Home
from tests.storage.postgres.servers import Server, newest_binaries, start_server

_ANSWER = "The importer waits for the lock of the session before it reads the file, so that imports never overlap."
_SYLLABLES = ("ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ru", "sa", "te", "vi", "zo")
_VOCABULARY = 5_000
_QUESTION = "why does the importer wait for the lock?"
_TICK = os.sysconf("SC_CLK_TCK")
_STEADY_CLIENTS = 200
_SETTLE_SECONDS = 1.0
_STEADY_RATE = 50


class Service:
    """A running service, and what it has used."""

    def __init__(self, process: int, port: int, server: Server | None) -> None:
        self.process, self.port, self._server = process, port, server

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        own = sum(map(int, fields[11:13])) / _TICK
        return own + (server_cpu(self._server) if self._server else 0.0)

    def memory(self) -> float:
        """Resident memory in MB."""
        status = Path(f"/proc/{self.process}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024

    def client(self) -> "Client":
        return Client(self.port)


class Client:
    """A connection that is used again for every request."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def post(self, path: str, body: Any) -> Any:
        self._connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{path}: {answer.status} {content[:300]!r}")
        return json.loads(content)

    def open_session(self, name: str) -> "Callable[[int], object]":
        """Create a session; the returned function appends to it."""
        self.post("/v1/sessions", {"id": name, "source": "benchmark"})

        def append(number: int) -> object:
            messages = [{"role": "user", "content": f"{number} {_text(number)}"}]
            return self.post(f"/v1/sessions/{name}/messages", {"messages": messages})

        return append

    def search(self) -> object:
        return self.post("/v1/search", {"query": _QUESTION, "limit": 5})


def _text(number: int) -> str:
    """About 1,000 characters: common and rare words as in real texts, and in one of 100 what the question asks for."""
    chance = random.Random(number)
    words = [_word(int(_VOCABULARY * chance.random() ** 3)) for _ in range(150)]
    return " ".join([*words, _ANSWER] if number % 100 == 0 else words)


def _word(index: int) -> str:
    syllables = []
    for _ in range(4):
        index, last = divmod(index, len(_SYLLABLES))
        syllables.append(_SYLLABLES[last])
    return "".join(syllables)


@contextmanager
def _running(use_server: bool) -> Iterator[tuple[Service, Path]]:
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memoranda-load-"))) / "home"
        home.mkdir()
        server = None
        if use_server:
            directory = Path(tempfile.mkdtemp(prefix="memoranda-load-pg-"))
            server = start_server(newest_binaries(), directory=directory, settings={"max_connections": "100"})
            stack.callback(server.stop)
            config.set_value(Home.at(home), "store.url", server.url("memoranda"))
        began = time.monotonic()
        command = [str(Path(sys.executable).with_name("memoranda")), "serve", "--port", "0", "--rate", "0", "--json"]
        process = stack.enter_context(
            subprocess.Popen(
                [*command, "--home", str(home)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        )
        stack.callback(process.terminate)
        assert process.stdout is not None
        port = 0
        for line in process.stdout:
            if found := re.search(r"127\.0\.0\.1:(\d+)", line):
                port = int(found[1])
                break
        threading.Thread(target=process.stdout.read, daemon=True).start()
        print(f"  start-up {time.monotonic() - began:.1f} s", flush=True)
        yield Service(process.pid, port, server), home


def measure_cost(use_server: bool, rounds: int = 8, count: int = 300) -> None:
    """CPU of an append through HTTP, beside the same append by the library; in turns, because other load changes."""
    with _running(use_server) as (service, home):
        append = service.client().open_session("http")
        ratios, http_costs, direct_costs = [], [], []
        for number in range(rounds + 1):
            through_http = _cpu_each(append, count, service.cpu)
            # Closed while the service works, so that it cannot index what the service appends.
            with memoranda.open(home) as memory:
                memory.sessions.create_session("direct", "benchmark")
                append_directly = partial(_append_to, memory)
                append_directly(0)
                direct = _cpu_each(append_directly, count, lambda: time.process_time() + service.cpu())
            if number:
                # The first round only warms up.
                http_costs.append(through_http)
                direct_costs.append(direct)
                ratios.append(through_http / direct)
        print(
            f"  append: {statistics.median(http_costs):.2f} ms of CPU through HTTP, "
            f"{statistics.median(direct_costs):.2f} direct, ratio {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f} in {rounds} rounds)"
        )


def _append_to(memory: memoranda.Memory, number: int) -> int:
    return memory.sessions.append_message("direct", "user", f"{number} {_text(number)}")


def _cpu_each(action: Callable[[int], object], count: int, cpu: Callable[[], float]) -> float:
    """Milliseconds of CPU for each call, with what follows from it: the index reads what was appended."""
    before = cpu()
    for number in range(count):
        action(number)
    time.sleep(_SETTLE_SECONDS)
    return (cpu() - before) / count * 1000


def measure_mixed(use_server: bool, seconds: float) -> None:
    """The time of an append with 16 clients that append, while 2 others search."""
    with _running(use_server) as (service, _):
        stop = time.monotonic() + seconds
        times: list[float] = []
        searches: list[float] = []

        def append_all(name: str) -> None:
            append, number = service.client().open_session(name), 0
            while time.monotonic() < stop:
                times.append(_timed(partial(append, number)))
                number += 1

        def search_all() -> None:
            client = service.client()
            while time.monotonic() < stop:
                searches.append(_timed(client.search))

        before = service.cpu()
        threads = [threading.Thread(target=append_all, args=(f"s{number}",)) for number in range(16)]
        threads += [threading.Thread(target=search_all) for _ in range(2)]
        _run_all(threads)
        print(f"  appends {_describe(times)}; searches {_describe(searches)}")
        print(f"  CPU {service.cpu() - before:.1f} s in {seconds:g} s, memory {service.memory():.0f} MB")


def measure_steady(use_server: bool, minutes: float) -> None:
    """200 clients at a steady rate: errors, and whether memory grows."""
    with _running(use_server) as (service, _):
        stop = time.monotonic() + minutes * 60
        times: list[float] = []
        searches: list[float] = []
        errors: list[str] = []
        pause = _STEADY_CLIENTS / _STEADY_RATE

        def work(index: int) -> None:
            client = service.client()
            append, number = client.open_session(f"s{index}"), 0
            time.sleep(pause * index / _STEADY_CLIENTS)
            while time.monotonic() < stop:
                number += 1
                try:
                    if number % 5 == 0:
                        searches.append(_timed(client.search))
                    else:
                        times.append(_timed(partial(append, number)))
                except (OSError, RuntimeError, http.client.HTTPException) as error:
                    errors.append(repr(error))
                    client = service.client()
                time.sleep(pause)

        threads = [threading.Thread(target=work, args=(index,)) for index in range(_STEADY_CLIENTS)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            time.sleep(min(60.0, minutes * 6))
            done = len(times) + len(searches)
            print(f"  {done:,} requests, {len(errors)} errors, memory {service.memory():.0f} MB", flush=True)
        print(f"  appends {_describe(times)}; searches {_describe(searches)}; errors {len(errors)} {errors[:3]}")


def _timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1000


def _describe(times: list[float]) -> str:
    if len(times) < 2:
        return f"{len(times)} only"
    cuts = statistics.quantiles(times, n=100)
    return f"{len(times):,}, p50 {cuts[49]:.0f} ms, p99 {cuts[98]:.0f} ms, max {max(times):.0f} ms"


def _run_all(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["cost", "mixed", "steady"])
    parser.add_argument("--server", action="store_true", help="keep the record on a PostgreSQL server")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--minutes", type=float, default=10.0)
    options = parser.parse_args()
    print(f"{options.part}, record {'on a server' if options.server else 'in a file'}:", flush=True)
    if options.part == "cost":
        measure_cost(options.server)
    elif options.part == "mixed":
        measure_mixed(options.server, options.seconds)
    else:
        measure_steady(options.server, options.minutes)


if __name__ == "__main__":
    main()
