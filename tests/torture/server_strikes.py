"""Writers of a record on a PostgreSQL server: killed clients, crashed servers, ended backends, lost packets."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import quote

from memoranda.home import config
from memoranda.support.home import Home
from tests.forked import Forked
from tests.storage.postgres.proxy import Proxy
from tests.storage.postgres.servers import Server, newest_binaries, start_server
from tests.torture.counts import Counts
from tests.torture.workload import REFUSED, acknowledged, find_faults, prepare, write

Progress = Callable[[int], object]

_WRITERS = 4
_STRIKES_PER_HOME = 25
_LONGEST_ROUND = 600
# As an operator runs it: a commit is on the disk before it is acknowledged.
_SETTINGS = {"max_connections": "100", "shared_buffers": "64MB", "log_min_messages": "fatal"}
_END_BACKENDS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'memoranda' ORDER BY random() LIMIT 1"
)


def kill_clients(directory: Path, wanted: int, seed: int, progress: Progress = lambda done: None) -> Counts:
    """Kill writers with -9, each after it has acknowledged something."""
    counts, chance = Counts("killed clients"), random.Random(seed)
    with running_server() as server:
        while counts.strikes < wanted:
            with new_home(directory, server, counts.strikes) as home:
                said: dict[str, bytes] = {}
                while len(said) < _STRIKES_PER_HOME and counts.strikes < wanted:
                    writers = _start_writers(home, counts.strikes, min(_WRITERS, wanted - counts.strikes), chance)
                    said |= _kill(writers, chance)
                    counts.strikes += len(writers)
                    progress(counts.strikes)
                _compare(counts, home, said)
    return counts


def restart_server(directory: Path, wanted: int, seed: int, progress: Progress = lambda done: None) -> Counts:
    """Let the server crash and start again while clients write."""
    return _strike("crashes of the server", directory, wanted, seed, progress, _crash)


def end_backends(directory: Path, wanted: int, seed: int, progress: Progress = lambda done: None) -> Counts:
    """End the server's processes for some connections, idle ones and busy ones."""
    return _strike("ended connections", directory, wanted, seed, progress, _end_backend)


def lose_packets(directory: Path, wanted: int, seed: int, progress: Progress = lambda done: None) -> Counts:
    """Cut connections between a request and its answer: half of the requests arrive, and no answer does."""
    return _strike("lost answers", directory, wanted, seed, progress, _lose)


def _crash(server: Server, proxy: Proxy, chance: random.Random) -> None:
    server.control("-m", "immediate", "restart")


def _end_backend(server: Server, proxy: Proxy, chance: random.Random) -> None:
    server.admin(_END_BACKENDS)


def _lose(server: Server, proxy: Proxy, chance: random.Random) -> None:
    proxy.lose = chance.choice(("request", "answer"))
    while proxy.lose:
        time.sleep(0.001)


def _strike(
    kind: str,
    directory: Path,
    wanted: int,
    seed: int,
    progress: Progress,
    strike: Callable[[Server, Proxy, random.Random], None],
) -> Counts:
    """Strike while clients write through a proxy; each must acknowledge something between two strikes."""
    counts, chance = Counts(kind), random.Random(seed)
    with running_server() as server:
        proxy = Proxy(server.directory)
        try:
            while counts.strikes < wanted:
                with new_home(directory, server, counts.strikes, proxy.directory) as home:
                    writers = _start_writers(home, counts.strikes, _WRITERS, chance)
                    # Each has opened the home and written something.
                    said = {name: writer.heard() for name, writer in writers.items()}
                    for _ in range(min(_STRIKES_PER_HOME, wanted - counts.strikes)):
                        time.sleep(chance.uniform(0, 0.02))
                        strike(server, proxy, chance)
                        counts.strikes += 1
                        for name, writer in writers.items():
                            said[name] += writer.heard()
                        progress(counts.strikes)
                    for name, lines in _kill(writers, chance).items():
                        said[name] += lines
                    _compare(counts, home, said)
        finally:
            proxy.close()
    return counts


def _start_writers(home: Path, number: int, count: int, chance: random.Random) -> dict[str, Forked]:
    names = [f"writer {number}-{index}" for index in range(count)]
    return {name: Forked(partial(write, home, name, chance.randrange(1 << 30), None), _LONGEST_ROUND) for name in names}


def _kill(writers: dict[str, Forked], chance: random.Random) -> dict[str, bytes]:
    """What each writer had said: something before it was killed, and perhaps more."""
    said = {name: writer.heard() for name, writer in writers.items()}
    for name, writer in writers.items():
        time.sleep(chance.uniform(0, 0.02))
        said[name] += writer.kill()
    return said


def _compare(counts: Counts, home: Path, said: dict[str, bytes]) -> None:
    counts.acknowledged += sum(len(acknowledged(lines)) for lines in said.values())
    counts.remark("refused", sum(lines.count(REFUSED.encode()) for lines in said.values()))
    counts.wrong += find_faults(home, said)


@contextmanager
def running_server() -> Iterator[Server]:
    # Outside the directory of the test, which only its owner can enter.
    server = start_server(newest_binaries(), directory=Path(mkdtemp(prefix="pg")), settings=_SETTINGS)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def new_home(directory: Path, server: Server, number: int, socket_directory: Path | None = None) -> Iterator[Path]:
    """A home with an empty record on the server."""
    home = prepare(directory / f"home-{number}")
    with server.schema() as url:
        through = quote(str(socket_directory or server.directory), safe="")
        config.set_value(Home.at(home), "store.url", url.replace(quote(str(server.directory), safe=""), through))
        yield home
