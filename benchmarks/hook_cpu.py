"""Measures how much CPU each hook event of a host takes, and how many answers are late on a busy machine.

    python benchmarks/hook_cpu.py                          # a new home with 100,000 messages, 30 calls of each event
    python benchmarks/hook_cpu.py --home DIRECTORY         # created once and reused
    python benchmarks/hook_cpu.py --load 20 --calls 100    # while 20 processes keep every core busy
    python benchmarks/hook_cpu.py --no-helper              # every hook does the work itself

Each call is a separate process, started as a host starts it. Its CPU is the user and system time of that process, by
`wait4`, plus what the helper used meanwhile, by its CPU clock; the process that records a transcript after the host has
its answer is not included. A call is late when its process took more than two seconds, from its start to its end. Two
calls of each event come first and are not counted; they start the helper. The CPU that this takes has a row of its own,
because it is paid once, until the helper ends after ten idle minutes. Starting Python with nothing to do is measured in
the same run, because no hook can avoid that part. The bytecode of the package is cached in a directory of the run, as
it is for an installed package, even if PYTHONDONTWRITEBYTECODE is set.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import memoranda
from memoranda.cli.hooks.helper_files import running_helpers
from memoranda.integrations.hooks.events import ANSWERED_EVENTS
from memoranda.support.home import Home

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.corpus import Session, corpus

_LATE = 2.0
_BASELINE_CALLS = 30
_PROGRAM = [sys.executable, "-m", "memoranda", "hook", "claude-code"]
_EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd")
# Ends by itself when the benchmark is killed.
_BURN = "import os; parent = os.getppid()\nwhile os.getppid() == parent: sum(range(100_000))"


@dataclass(frozen=True, slots=True)
class Call:
    """One process: its CPU, that of the helper, its duration in seconds, and how many bytes it printed."""

    cpu: float
    duration: float
    printed: int
    helper_cpu: float = 0.0


@dataclass(frozen=True, slots=True)
class Figures:
    """The calls of one kind, in milliseconds. The CPU is that of the hook and of its helper together."""

    name: str
    calls: int
    cpu_p50: float
    cpu_p95: float
    helper_p50: float
    helper_p95: float
    duration_p95: float
    answered: int
    late: int


def run(command: Sequence[str], payload: bytes, environment: dict[str, str]) -> Call:
    """Run one process to its end."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(payload)
    process.stdin.close()
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} exited with {process.returncode}.")
    return Call(usage.ru_utime + usage.ru_stime, time.perf_counter() - started, len(printed))


def summarize(name: str, calls: Sequence[Call]) -> Figures:
    cpu = sorted(1000 * (call.cpu + call.helper_cpu) for call in calls)
    helper = sorted(1000 * call.helper_cpu for call in calls)
    durations = sorted(1000 * call.duration for call in calls)
    return Figures(
        name,
        len(calls),
        round(cpu[len(cpu) // 2], 1),
        round(cpu[_index_of_95(cpu)], 1),
        round(helper[len(helper) // 2], 1),
        round(helper[_index_of_95(helper)], 1),
        round(durations[_index_of_95(durations)], 1),
        sum(call.printed > 0 for call in calls),
        sum(call.duration > _LATE for call in calls),
    )


def _index_of_95(values: Sequence[float]) -> int:
    return min(len(values) - 1, round(0.95 * len(values)))


def fill_home(home: Path, messages: int) -> None:
    """Create a home with this many messages, all indexed, and ten remembered facts."""
    with memoranda.open(home) as memory:
        for number in range(10):
            memory.remember(f"Project {number} uses pytest with xdist and port {5400 + number}.")
        for session in corpus(messages):
            memory.sessions.create_session(session.id, session.source)
            memory.sessions.append_messages(session.id, [_message(message) for message in session.messages])
        memory.sessions.index.catch_up()


def _message(message: object) -> dict[str, object]:
    return {name: value for name, value in asdict(message).items() if value is not None}  # type: ignore[call-overload]


def prompts(sessions: Sequence[Session], count: int) -> list[str]:
    """Return prompts: every other one quotes an earlier conversation, so that there is evidence; the rest do not."""
    everyday = [line for line in (Path(__file__).parent / "everyday_prompts.txt").read_text().splitlines() if line]
    first = [session.messages[0].content for session in sessions if not session.chinese and session.messages]
    found = []
    for number in range(count):
        words = first[number * 7 % len(first)].split()[:12]
        question = f"What did we decide about {' '.join(words)}?"
        found.append(question if number % 2 else everyday[number * 3 % len(everyday)])
    return found


def payload_of(event: str, prompt: str, directory: Path) -> bytes:
    """Return the JSON that the host sends on standard input."""
    transcript = directory / "transcript.jsonl"
    fields = {"hook_event_name": event, "session_id": "bench", "transcript_path": str(transcript), "cwd": "/"}
    return json.dumps(fields | ({"prompt": prompt} if event == "UserPromptSubmit" else {})).encode()


@contextmanager
def busy_processes(processes: int) -> Iterator[None]:
    """Keep this many processes computing while the block runs."""
    running = [subprocess.Popen([sys.executable, "-I", "-c", _BURN]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def measure(home: Path, directory: Path, calls: int, events: Sequence[str], *, helper: bool) -> list[Figures]:
    """Start Python with nothing to do, then call each event."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPYCACHEPREFIX": str(directory / "bytecode"), "HOME": str(directory)}
    environment |= {} if helper else {"MEMORANDA_HOOKS_HELPER": "off"}
    (directory / "transcript.jsonl").touch()
    found = [
        summarize(" ".join(["python", *flags, "-c pass"]), [
            run([sys.executable, *flags, "-c", "pass"], b"", environment) for _ in range(min(calls, _BASELINE_CALLS))
        ]) for flags in ([], ["-I"])
    ]  # fmt: skip
    prompt_list = prompts(corpus(20_000), calls)
    for event in events:
        command = [*_PROGRAM, event, "--home", str(home)]
        payloads = [payload_of(event, prompt, directory) for prompt in prompt_list]
        first = [run(command, payload, environment) for payload in payloads[:2]]
        if helper and event in ANSWERED_EVENTS:
            cpu = wait_for_helper(home)
            if cpu is not None:
                found.append(summarize("(starting the helper)", [replace(first[-1], helper_cpu=cpu)]))
        found.append(summarize(event, [run_with_helper(command, payload, environment, home) for payload in payloads]))
    return found


def run_with_helper(command: Sequence[str], payload: bytes, environment: dict[str, str], home: Path) -> Call:
    """Run one process to its end, and count what the helper used meanwhile."""
    before = {helper.process: cpu_of(helper.process) for helper in running_helpers(Home(home))}
    call = run(command, payload, environment)
    # What the helper does after its answer, such as closing the connection, belongs to the call.
    time.sleep(0.02)
    used = sum(cpu_of(process) - cpu for process, cpu in before.items())
    return replace(call, helper_cpu=used)


_STARTED: set[int] = set()


def wait_for_helper(home: Path) -> float | None:
    """Wait until the helper that the calls so far have started is there; its CPU, or None when it was there before."""
    deadline = time.monotonic() + 60
    while not (helpers := running_helpers(Home(home))):
        if time.monotonic() > deadline:
            raise SystemExit("No helper has started.")
        time.sleep(0.1)
    processes = {helper.process for helper in helpers} - _STARTED
    _STARTED.update(processes)
    time.sleep(0.5)
    return sum(map(cpu_of, processes)) if processes else None


def cpu_of(process: int) -> float:
    """The CPU that a process has used, in seconds; 0 when it has ended."""
    try:
        # The id of a process's CPU clock on Linux.
        return time.clock_gettime((~process << 3) | 2)
    except OSError:
        return 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--home", type=Path, help="the home to use; it is created when it does not exist")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--calls", type=int, default=30, help="calls of each event")
    parser.add_argument("--event", action="append", choices=_EVENTS, help="only this event (repeatable)")
    parser.add_argument("--load", type=int, default=0, help="how many processes keep the machine busy")
    parser.add_argument("--no-helper", action="store_true", help="every hook does the work itself")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        directory = Path(scratch)
        home = options.home or directory / "home"
        if not home.exists():
            fill_home(home, options.messages)
        try:
            with busy_processes(options.load):
                helper = not options.no_helper
                found = measure(home, directory, options.calls, options.event or _EVENTS, helper=helper)
        finally:
            for process in _STARTED:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGTERM)
    if options.json:
        print(json.dumps([asdict(figures) for figures in found], indent=2))
        return
    print(f"{'':22} {'calls':>5} {'CPU p50':>8} {'CPU p95':>8} {'of it helper':>14}"
          f" {'time p95':>9} {'answered':>8} {'late':>4}   (ms)")  # fmt: skip
    for row in found:
        helper_share = f"{row.helper_p50:.1f} / {row.helper_p95:.1f}"
        print(f"{row.name:22} {row.calls:5} {row.cpu_p50:8.1f} {row.cpu_p95:8.1f} {helper_share:>14}"
              f" {row.duration_p95:9.1f} {row.answered:8} {row.late:4}")  # fmt: skip


if __name__ == "__main__":
    main()
