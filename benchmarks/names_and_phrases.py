"""Measures what names in code, phrases and searches without a match cost, beside plain questions in the same process.

    python -m benchmarks.names_and_phrases --home DIR --messages 100000

The store is built once: messages of 100 to 1,500 characters of Python sources, those of this interpreter and of what is
installed for it, twenty in a session. Each search is asked in a home that was just opened, so that no set is in memory.
The figures are CPU of `session_search`, the median of the rounds, divided by the median of the plain questions.
"""

import argparse
import random
import sysconfig
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from statistics import median

import memoranda

PLAIN = (
    "how does the parser handle empty input",
    "where is the connection timeout configured",
    "which module reads the configuration file",
    "why does the test for unicode fail",
    "how are the headers of the response encoded",
    "what happens when the cache directory is missing",
    "who removes the temporary files after a run",
)
NAMES = (
    *("os.path.join", "self._lock", "__init__.py", "NotImplementedError", "ValueError", "src/app/main.py", "--dry-run"),
    *("ana@example.com", "PROJ-1234", "v2.3.1", "sys.version_info", "self.assertEqual", "json.loads", "user.name"),
)
PHRASES = (
    *('"the value of"', '"is not defined"', '"return None"', '"of the"', '"import os"', '"if not self"', '"to be"'),
    *('"connection refused"', '"permission denied"', '"is not a"', '"default is to"', '"in the same"'),
)
NOTHING = ("zyxwvutsrq", "qwertzuiop asdfghjkl", "blorptangle wibblefrotz snarkle")
_LENGTHS = (120, 250, 400, 600, 900, 1500)
_PER_SESSION = 20
_ROLES = ("user", "assistant", "tool", "assistant")
_MAX_LINE = 300


def texts() -> Iterator[str]:
    """Pieces of all sources, the same in every run; when all were used, again with other lengths."""
    paths = sysconfig.get_paths()
    files = sorted({path for name in ("stdlib", "purelib") for path in Path(paths[name]).rglob("*.py")})
    for chosen in map(random.Random, count(1)):
        for path in chosen.sample(files, len(files)):
            piece, length = "", chosen.choice(_LENGTHS)
            for line in path.read_text("utf-8", "replace").splitlines(keepends=True):
                piece += line if len(line) <= _MAX_LINE else ""
                if len(piece) > length:
                    yield piece
                    piece, length = "", chosen.choice(_LENGTHS)


def build(home: Path, messages: int) -> None:
    with memoranda.open(home) as memory:
        source = islice(texts(), messages)
        number = 0
        while batch := list(islice(source, _PER_SESSION)):
            memory.sessions.create_session(f"s{number}", "cli")
            rows = [{"role": _ROLES[place % 4], "content": text} for place, text in enumerate(batch)]
            memory.sessions.append_messages(f"s{number}", rows)
            number += 1
        memory.sessions.index.catch_up()


def cost(home: Path, query: str, rounds: int) -> float:
    """Milliseconds of CPU of a search in a home that has just been opened and answered another one."""
    spent = []
    for _ in range(rounds):
        with memoranda.open(home) as memory:
            memory.call("session_search", {"query": "elephant", "limit": 3})
            started = time.process_time()
            memory.call("session_search", {"query": query, "limit": 3})
            spent.append(time.process_time() - started)
    return 1000 * median(spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--home", type=Path, required=True, help="where the store is kept")
    parser.add_argument("--messages", type=int, default=20_000, help="how many messages a new store gets")
    parser.add_argument("--rounds", type=int, default=5, help="how often each search is asked")
    arguments = parser.parse_args()
    if not arguments.home.exists():
        build(arguments.home, arguments.messages)
    for query in PLAIN:
        cost(arguments.home, query, 1)
    plain = median(cost(arguments.home, query, arguments.rounds) for query in PLAIN)
    print(f"a plain question {plain:.1f} ms\n")
    for kind, queries in (("name", NAMES), ("phrase", PHRASES), ("nothing", NOTHING)):
        for query in queries:
            spent = cost(arguments.home, query, arguments.rounds)
            print(f"{kind:8} {query:34} {spent:8.1f} ms {spent / plain:6.2f}")


if __name__ == "__main__":
    main()
