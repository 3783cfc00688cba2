"""What a durable append costs, compared with plain SQLite that gives the same guarantee.

Both stores get the same messages, one at a time and twenty at a time, in turns of a few dozen appends, so that both see
the same machine. Plain SQLite writes one table with an index by session and a counter per session, with 4 KB pages and
`synchronous=FULL`, and checkpoints its log as usual. Memoranda also redacts credentials and keeps every other promise
of the record. The CPU time is that of the process, checkpoints included; nothing is indexed meanwhile.

With `--checksums`, a third store is Memoranda without the checksums of messages, in the same turns: the difference is
what they cost.

    .venv/bin/python benchmarks/append_cost.py [--dir DIR] [--messages 3000] [--checksums] [--json]
"""

import argparse
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.corpus import corpus
from memoranda.memory.record import messages as store_messages
from memoranda.memory.record.store import open_store
from memoranda.safety.redaction import Redactor

CHARACTERS = 616
BATCH = 20
_ROUND = 40

Message = dict[str, Any]
Append = Callable[[Sequence[Message]], object]


def make_messages(count: int) -> list[Message]:
    """Messages of the same length, in the words of the sessions benchmark; one in ten calls a tool."""
    text = "\n".join(message.content for session in corpus(count) for message in session.messages)
    messages: list[Message] = []
    for number in range(count):
        content = text[number * CHARACTERS : (number + 1) * CHARACTERS].ljust(CHARACTERS, ".")
        messages.append({"role": "assistant" if number % 2 else "user", "content": content})
        if number % 10 == 9:
            call = {"id": f"call_{number}", "function": {"name": "read_file", "arguments": '{"path": "notes.txt"}'}}
            messages[-1]["tool_calls"] = [call]
    return messages


class PlainSqlite:
    """A store as small as one can be that survives a power cut."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        for statement in (
            "PRAGMA page_size=4096",
            "PRAGMA journal_mode=WAL",
            "PRAGMA synchronous=FULL",
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, message_count INTEGER, last_active REAL)",
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, tool_calls TEXT,"
            " timestamp REAL)",
            "CREATE INDEX by_session ON messages(session_id)",
            "INSERT INTO sessions VALUES ('a-session-of-the-benchmark', 0, 0)",
        ):
            self._connection.execute(statement)

    def append(self, messages: Sequence[Message]) -> None:
        connection, now = self._connection, time.time()
        connection.execute("BEGIN IMMEDIATE")
        for message in messages:
            calls = message.get("tool_calls")
            connection.execute(
                "INSERT INTO messages (session_id, role, content, tool_calls, timestamp) VALUES (?, ?, ?, ?, ?)",
                ("a-session-of-the-benchmark", message["role"], message["content"], calls and json.dumps(calls), now),
            )
        connection.execute(
            "UPDATE sessions SET message_count = message_count + ?, last_active = ? WHERE id = ?",
            (len(messages), now, "a-session-of-the-benchmark"),
        )
        connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


class Ours:
    def __init__(self, path: Path) -> None:
        self._store = open_store(path, redactor=Redactor(["a-key-that-occurs-nowhere"]))
        self._store.sessions.create_session("a-session-of-the-benchmark", "cli")

    def append(self, messages: Sequence[Message]) -> None:
        if len(messages) == 1:
            (message,) = messages
            self._store.messages.append_message("a-session-of-the-benchmark", **message)
        else:
            self._store.messages.append_messages("a-session-of-the-benchmark", messages)

    def close(self) -> None:
        self._store.close()


class OursWithoutChecksums(Ours):
    """Memoranda as it was before messages had checksums."""

    def append(self, messages: Sequence[Message]) -> None:
        names = vars(store_messages)
        compute, names["checksum_of_row"] = names["checksum_of_row"], _no_checksum
        try:
            super().append(messages)
        finally:
            names["checksum_of_row"] = compute


def _no_checksum(session_id: str, row: Sequence[Any]) -> Any:
    return None


def _written() -> int:
    """The bytes that this process has written to files, where the system counts them."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("wchar")), 0)


class Costs:
    """What the appends of one store have cost: CPU and elapsed milliseconds of each call, and bytes written."""

    def __init__(self) -> None:
        self.cpu: list[float] = []
        self.elapsed: list[float] = []
        self.written = 0

    def measure(self, append: Append, calls: Sequence[Sequence[Message]]) -> None:
        written = _written()
        for messages in calls:
            cpu, elapsed = time.process_time(), time.perf_counter()
            append(messages)
            self.cpu.append((time.process_time() - cpu) * 1000)
            self.elapsed.append((time.perf_counter() - elapsed) * 1000)
        self.written += _written() - written

    def per_message(self, size: int) -> dict[str, float]:
        count = len(self.cpu) * size
        return {
            "cpu_p50": statistics.median(self.cpu) / size,
            "cpu_mean": sum(self.cpu) / count,
            "elapsed_p50": statistics.median(self.elapsed) / size,
            "written_kb": self.written / count / 1024,
        }


def measure(directory: Path, count: int, *, checksums: bool = False) -> dict[str, dict[str, dict[str, float]]]:
    """The costs per message of the stores, single and in batches."""
    messages = make_messages(count)
    stores: dict[str, PlainSqlite | Ours] = {
        "plain SQLite": PlainSqlite(directory / "plain.db"),
        "memoranda": Ours(directory / "state.db"),
    }
    if checksums:
        stores["without checksums"] = OursWithoutChecksums(directory / "without.db")
    results: dict[str, dict[str, dict[str, float]]] = {name: {} for name in stores}
    for kind, size in (("single", 1), (f"batch of {BATCH}", BATCH)):
        calls = [messages[start : start + size] for start in range(0, count, size)]
        turns = [calls[start : start + _ROUND] for start in range(0, len(calls), _ROUND)]
        costs = {name: Costs() for name in stores}
        for store in stores.values():
            store.append(calls[0])
        for turn in turns:
            for name, store in stores.items():
                costs[name].measure(store.append, turn)
        for name, found in costs.items():
            results[name][kind] = found.per_message(size)
    for store in stores.values():
        store.close()
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, default=Path.cwd(), help="a directory on the disk to measure")
    parser.add_argument("--messages", type=int, default=4000)
    parser.add_argument("--checksums", action="store_true", help="also measure without checksums")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix=".append-cost-", dir=options.dir) as directory:
        results = measure(Path(directory), options.messages, checksums=options.checksums)
    if options.json:
        print(json.dumps(results))
        return
    print(
        f"{os.cpu_count()} cores, SQLite {sqlite3.sqlite_version}, milliseconds per message of {CHARACTERS} characters"
    )
    for kind in results["memoranda"]:
        print(f"{kind}:")
        plain, ours = results["plain SQLite"][kind], results["memoranda"][kind]
        for name in plain:
            ratio = ours[name] / plain[name] if plain[name] else float("nan")
            line = f"  {name:12} plain {plain[name]:8.4f}  memoranda {ours[name]:8.4f}  ratio {ratio:5.2f}"
            if options.checksums:
                without = results["without checksums"][kind][name]
                line += f"  without checksums {without:8.4f} ({ours[name] / without - 1 if without else 0:+.1%})"
            print(line)


if __name__ == "__main__":
    main()
