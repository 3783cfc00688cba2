"""Runs the commands of `memoranda` that grow with a home: exporting, deleting a conversation, pruning a tenth."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import memoranda
from benchmarks.curated import clean_environment
from benchmarks.growth.corpora import Corpus, LineHeader
from benchmarks.growth.plan import reference_word
from benchmarks.sessions.tasks import disk

_CHUNK = 1 << 24
# Of a word in a sorted list, an index may store only the end that differs from the word before it.
_TAIL = 10
# A reference word has no vowels, and little else in a file has so many consonants in a row.
_CONSONANTS = re.compile(rb"[bcdfghjklmnpqrtvwxz]{%d,}" % _TAIL)


class Command(NamedTuple):
    """A command that ran: CPU and wall time in seconds, and the most memory it used, in MB."""

    cpu: float
    wall: float
    rss: float


def run_command(home: Path, *arguments: str) -> Command:
    """Run `memoranda` in a separate process."""
    command = [sys.executable, "-m", "memoranda", *arguments, "--home", str(home)]
    started = time.perf_counter()
    with subprocess.Popen(
        command, env=clean_environment(home.parent), stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}.")
    return Command(usage.ru_utime + usage.ru_stime, time.perf_counter() - started, usage.ru_maxrss / 1024)


def measure_export(home: Path) -> dict[str, float]:
    """Export everything to a file."""
    output = home.with_name(f"{home.name}.export.jsonl")
    ran = run_command(home, "sessions", "export", "--output", str(output))
    size = output.stat().st_size
    output.unlink()
    return {"export, RSS, MB": ran.rss, "export, CPU, s": ran.cpu, "export, file, MB": size / 1e6}


def measure_deletion(home: Path, corpus: Corpus, messages: int) -> dict[str, float]:
    """Delete one conversation and prune the oldest tenth; `home` is a copy that is lost by this."""
    headers = list(corpus.headers(messages))
    return _delete_one(home, corpus, headers) | _prune_tenth(home, corpus, headers)


def _delete_one(home: Path, corpus: Corpus, headers: list[LineHeader]) -> dict[str, float]:
    """Delete the longest of the newer conversations that have a word of their own."""
    known = [header for header in headers[len(headers) // 2 : -1] if reference_word(header.number)]
    longest = max(known, key=lambda header: header.messages)
    words = [reference_word(longest.number) or ""]
    before = find_words(home, words)
    ran = run_command(home, "sessions", "delete", corpus.session_id(longest.number), "--yes")
    return {
        "delete a conversation, messages": longest.messages,
        "delete a conversation, CPU, s": ran.cpu,
        "delete a conversation, wall, s": ran.wall,
        "delete a conversation, words in the files before": before,
        "delete a conversation, words in the files after": find_words(home, words),
    }


def _prune_tenth(home: Path, corpus: Corpus, headers: list[LineHeader]) -> dict[str, float]:
    tenth = headers[: len(headers) // 10]
    with memoranda.open(home) as memory:
        next_one = memory.sessions.get_session(corpus.session_id(len(tenth)))
        count = memory.sessions.session_count()
    if next_one is None:
        raise RuntimeError("The conversation after the oldest tenth is missing.")
    hours = (time.time() - next_one["started_at"]) / 3600
    words = [word for header in tenth if (word := reference_word(header.number))]
    before, size = find_words(home, words), disk(home)
    ran = run_command(home, "sessions", "prune", "--older-than", f"{hours:.0f}h", "--yes")
    with memoranda.open(home) as memory:
        pruned = count - memory.sessions.session_count()
    return {
        "prune a tenth, conversations": pruned,
        "prune a tenth, CPU, s": ran.cpu,
        "prune a tenth, wall, s": ran.wall,
        "prune a tenth, words in the files before": before,
        "prune a tenth, words in the files after": find_words(home, words),
        "prune a tenth, disk after / before": disk(home) / size,
    }


def find_words(home: Path, words: Iterable[str]) -> int:
    """Return how many of the words are somewhere in the bytes of the files of a home."""
    tails = {word[-_TAIL:].encode() for word in words}
    found: set[bytes] = set()
    for path in home.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                rest = b""
                while chunk := file.read(_CHUNK):
                    for run in _CONSONANTS.findall(rest + chunk):
                        found.update(tails.intersection(run[at : at + _TAIL] for at in range(len(run) - _TAIL + 1)))
                    rest = chunk[-_TAIL:]
    return len(found)
