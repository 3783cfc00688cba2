"""Measures how often a prompt would get evidence without asking, and how often the right one, at our relevance floors.

Each store gets five kinds of prompt: questions with an answer in it, questions without one, questions about other
people's conversations, everyday prompts of people at work with an agent (everyday_prompts.txt), and messages of users
in other stores. See docs/explanation/how-relevance-was-measured.md.
"""

import argparse
import gzip
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.recall import fill_store
from memoranda.index.postings import Filters
from memoranda.recall.relevance import relevant_hits
from memoranda.session_db import SessionDB

EVERYDAY = Path(__file__).with_name("everyday_prompts.txt")
UNSPACED = ("cmrc_zh", "jsquad_ja")
KINDS = ("answered", "no answer", "other people's", "everyday", "other work")
_FOREIGN, _PROMPTS = 60, 12
Row = tuple[str, str]


@dataclass
class PromptResult:
    """One prompt: whether it would get evidence, whether the first hit is right, and the time it took."""

    has_evidence: bool
    right: bool
    seconds: float


def prompts(sets: dict[str, Any], name: str, store: dict[str, Any]) -> Iterator[tuple[str, str, set[str]]]:
    """Yield every prompt for one store: its kind, its text, and the sessions with the evidence."""
    data, rng = sets[name], random.Random(f"{name} {store['id']}")
    for question in data["queries"]:
        if question["store"] == store["id"]:
            yield "answered", question["q"], set(question["gold_sessions"])
    for question in data["no_answer"]:
        if question["store"] == store["id"]:
            yield "no answer", question["q"], set()
    for other, theirs in sets.items():
        if other != name and (other in UNSPACED) == (name in UNSPACED):
            for question in rng.sample(theirs["queries"], _FOREIGN):
                yield "other people's", question["q"], set()
        if other in UNSPACED or name in UNSPACED:
            continue
        for other_store in theirs["stores"]:
            texts = [
                m["text"] for session in other_store["sessions"] for m in session["messages"] if m["role"] == "user"
            ]
            if other_store["id"] != store["id"] and other != "locomo":
                for text in rng.sample(texts, min(_PROMPTS, len(texts))):
                    yield "other work", text, set()
    for line in EVERYDAY.read_text("utf-8").splitlines():
        yield "everyday", line, set()


def measure(sets: dict[str, Any], name: str) -> dict[str, list[PromptResult]]:
    """Try every prompt on every store of a set."""
    found: dict[str, list[PromptResult]] = defaultdict(list)
    for store in sets[name]["stores"]:
        with TemporaryDirectory(prefix="memoranda-relevance-") as home, SessionDB(Path(home, "state.db")) as db:
            names = fill_store(db, name, store)
            db.index.catch_up()
            for kind, prompt, gold in prompts(sets, name, store):
                start = time.process_time()
                hits = relevant_hits(db, prompt, Filters(db.scope, titles=False), limit=6)
                right = bool(hits) and names[hits[0].session_id] in gold
                found[kind].append(PromptResult(bool(hits), right, time.process_time() - start))
    return found


def row(name: str, found: dict[str, list[PromptResult]]) -> str:
    cells = [name]
    for kind in KINDS:
        results = found.get(kind, [])
        cells.append(f"{mean(result.has_evidence for result in results):.3f} of {len(results)}" if results else "–")
    with_evidence = [result for result in found["answered"] if result.has_evidence]
    cells.append(f"{mean(result.right for result in with_evidence):.2f}" if with_evidence else "–")
    seconds = sorted(result.seconds for results in found.values() for result in results)
    cells.append(f"{1000 * seconds[len(seconds) // 2]:.1f} / {1000 * seconds[len(seconds) * 95 // 100]:.1f}")
    return f"| {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory with *.json.gz sets")
    parser.add_argument("--set", action="append", dest="chosen", help="only this set; can be given several times")
    arguments = parser.parse_args()
    sets = {}
    for path in sorted(arguments.data.glob("*.json.gz")):
        with gzip.open(path) as stream:
            sets[path.name.split(".")[0]] = json.load(stream)
    head = ["set", *(f"given: {kind}" for kind in KINDS), "first is right", "CPU ms p50 / p95"]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    together: dict[str, list[PromptResult]] = defaultdict(list)
    for name in arguments.chosen or sets:
        found = measure(sets, name)
        for kind, results in found.items():
            together[kind] += results
        print(row(name, found), flush=True)
    print(row("together", together))
    return 0


if __name__ == "__main__":
    sys.exit(main())
