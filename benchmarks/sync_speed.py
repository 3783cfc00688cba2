"""What it costs to send messages to a shared folder, and to receive them on another machine.

CPU time of the thread that synchronises, and of the process. The messages are those of `append_cost.py`, a hundred in
each session.

    .venv/bin/python benchmarks/sync_speed.py [--dir DIR] [--messages 10000] [--json]
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import memoranda
from benchmarks.append_cost import make_messages
from memoranda.api.memory import Memory
from memoranda.upkeep.sync.synchroniser import synchronise

_PER_SESSION = 100


def record_messages(memory: Memory, count: int) -> None:
    messages = make_messages(count)
    for start in range(0, count, _PER_SESSION):
        session = f"session-{start}"
        memory.sessions.create_session(session, "cli")
        memory.sessions.append_messages(session, messages[start : start + _PER_SESSION])


def measure_run(home: Path, memory: Memory, folder: Path) -> dict[str, float]:
    """The CPU seconds of one synchronisation, and what it sent and received."""
    thread, process = time.thread_time(), time.process_time()
    report = synchronise(home, memory.sessions, memory.curated, folder)
    spent = {"thread": round(time.thread_time() - thread, 2), "process": round(time.process_time() - process, 2)}
    return spent | {"sent": report.sent.get("messages", 0), "received": report.received.get("messages", 0)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, help="where the homes are made (default: the temporary directory)")
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.dir) as directory:
        homes = [Path(directory) / name for name in ("first", "second")]
        folder = Path(directory) / "folder"
        folder.mkdir()
        found = {}
        with memoranda.open(homes[0]) as memory:
            record_messages(memory, options.messages)
            found["send"] = measure_run(homes[0], memory, folder)
            found["send again"] = measure_run(homes[0], memory, folder)
        with memoranda.open(homes[1]) as memory:
            found["receive"] = measure_run(homes[1], memory, folder)
            found["receive again"] = measure_run(homes[1], memory, folder)
    if options.json:
        print(json.dumps(found))
        return
    for name, row in found.items():
        print(f"{name:14} {row['thread']:7.2f} s of the thread {row['process']:7.2f} s of the process  "
              f"{row['sent']:,} sent, {row['received']:,} received")  # fmt: skip


if __name__ == "__main__":
    main()
