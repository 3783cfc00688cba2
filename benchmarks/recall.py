"""Measures session recall on questions with known evidence: each question as it is written, ten sessions, no model.

Each store of a set becomes a throw-away home with the real session store and its index. Two sets of our own come with
this file: questions about engineering sessions, and prompts that a standing instruction concerns. Plain FTS5
answers the same questions. `--dates` also says when a question was asked, where the data says so.
`--compare` reads the figures of an earlier run (`--json`) and prints the gains, each with its interval.
"""

import argparse
import gzip
import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.engineering import load_sets
from benchmarks.recall_peers import open_peers
from memoranda.home.session_db import SessionDB
from memoranda.search.legs.leg import Rescorer
from memoranda.search.meaning.embedders import make_embedder
from memoranda.search.meaning.meaning_rescorer import MeaningRescorer
from memoranda.search.tool import SessionSearchTool

LIMIT = 10
DEPTHS = (1, 3, 5, 10)
# Session recall@5 to reach, by set.
TARGETS = {"locomo": 0.86, "lme_pool": 0.73, "beam100k": 0.55, "cmrc_zh": 0.98, "jsquad_ja": 0.955}

_RESAMPLES = 1_000
_SHARE = 0.95

Ask = Callable[[str, float | None], list[str]]
"""From a question, and the time when it was asked if that is known, to session ids."""


@dataclass
class Figures:
    """The figures of one set."""

    name: str
    scores: list[dict[str, float]] = field(default_factory=list)
    answered: list[bool] = field(default_factory=list)
    """For each question without an answer, whether anything was returned."""
    cpu: list[float] = field(default_factory=list)
    peers: dict[str, list[float]] = field(default_factory=dict)
    """The recall@5 of each question by other programs."""

    @property
    def target(self) -> float | None:
        return TARGETS.get(self.name)

    def mean(self, key: str) -> float:
        return mean(score[key] for score in self.scores) if self.scores else 0.0

    def as_data(self) -> dict[str, Any]:
        return {
            "set": self.name,
            "questions": len(self.scores),
            **{key: round(self.mean(key), 4) for key in (self.scores[0] if self.scores else {})},
            "no_answer": len(self.answered),
            "no_answer_answered": round(mean(self.answered), 4) if self.answered else None,
            "cpu_ms_p50": round(1000 * _percentile(self.cpu, 0.50), 2),
            "cpu_ms_p95": round(1000 * _percentile(self.cpu, 0.95), 2),
            "interval": [round(bound, 4) for bound in interval([score["recall@5"] for score in self.scores])],
            "peers": {name: round(mean(values), 4) for name, values in self.peers.items()},
            "by_question": [round(score["recall@5"], 4) for score in self.scores],
            "target": self.target,
            "reached": None if self.target is None else self.mean("recall@5") >= self.target,
        }


def score(question: dict[str, Any], ranked: list[str]) -> dict[str, float]:
    """Return how much of the evidence is in the first sessions of an answer."""
    gold = set(question["gold_sessions"])
    result = {f"recall@{depth}": len(gold.intersection(ranked[:depth])) / len(gold) for depth in DEPTHS}
    result["all@5"] = float(gold.issubset(ranked[:5]))
    result["mrr"] = next((1 / rank for rank, session in enumerate(ranked, 1) if session in gold), 0.0)
    return result


def interval(values: list[float]) -> tuple[float, float]:
    """Where the mean lies with 95 % if other questions of the same kind had been asked (bootstrap)."""
    if not values:
        return 0.0, 0.0
    generator = random.Random(1)
    means = sorted(mean(generator.choices(values, k=len(values))) for _ in range(_RESAMPLES))
    outside = int((1 - _SHARE) / 2 * _RESAMPLES)
    return means[outside], means[-1 - outside]


@contextmanager
def open_home(data: dict[str, Any], store: dict[str, Any], semantic: str = "") -> Iterator[Ask]:
    """Open a home with the sessions of one store; yields a function from a question to session ids."""
    with TemporaryDirectory(prefix="memoranda-recall-") as home, SessionDB(Path(home, "state.db")) as sessions:
        names = fill_store(sessions, data["name"], store)
        sessions.index.catch_up()
        if semantic:
            rescorers = load_rescorers(semantic)
            sessions.rescore_with(lambda: rescorers)

        def ask(question: str, asked: float | None = None) -> list[str]:
            tool = SessionSearchTool(lambda: sessions, clock=(lambda: asked) if asked is not None else time.time)
            answer = tool.call({"query": question, "limit": LIMIT})
            return [names[result["session_id"]] for result in answer["results"]]

        yield ask


class OpenSet(NamedTuple):
    """A set with the homes of its stores, which stay open for all combinations."""

    name: str
    questions: list[tuple[dict[str, Any], Ask]]


def open_sets(sets: Iterable[dict[str, Any]], stack: ExitStack) -> Iterator[OpenSet]:
    for data in sets:
        homes = {store["id"]: stack.enter_context(open_home(data, store)) for store in data["stores"]}
        yield OpenSet(data["name"], [(question, homes[question["store"]]) for question in data["queries"]])


def fill_store(sessions: SessionDB, set_name: str, store: dict[str, Any]) -> dict[str, str]:
    """Record every message in its session; returns a map from our session ids to those of the data."""
    has_speakers = set_name.startswith("locomo")
    names = {}
    for session_number, session in enumerate(store["sessions"]):
        start = datetime.fromisoformat(session["ts"]).timestamp()
        session_id = sessions.create_session(f"s{session_number}", "cli", started_at=start)
        names[session_id] = session["id"]
        sessions.append_messages(
            session_id,
            [
                {
                    "role": message["role"],
                    "content": f"{message['speaker']}: {message['text']}" if has_speakers else message["text"],
                    "timestamp": start + number,
                }
                for number, message in enumerate(session["messages"])
            ],
        )
    return names


def load_rescorers(semantic: str) -> list[Rescorer]:
    """The embedders that `search.semantic_model` would name, without a deadline."""
    embedders = [make_embedder(model) for model in semantic.split(",")]
    return [MeaningRescorer(lambda: embedders, seconds=3_600.0)]


def measure(data: dict[str, Any], semantic: str = "", *, dates: bool = False, peers: bool = False) -> Figures:
    """Ask every question of a set; with `dates` as if on the day when it was asked."""
    figures = Figures(data["name"])
    for store in data["stores"]:
        others = open_peers(store) if peers else {}
        with open_home(data, store, semantic) as ask:
            for question in data["queries"]:
                if question["store"] == store["id"]:
                    asked = datetime.fromisoformat(question["date"]).timestamp() if dates and question["date"] else None
                    start = time.process_time()
                    ranked = ask(question["q"], asked)
                    figures.cpu.append(time.process_time() - start)
                    figures.scores.append(score(question, ranked))
                    for name, ask_other in others.items():
                        found = score(question, ask_other(question["q"]))["recall@5"]
                        figures.peers.setdefault(name, []).append(found)
            figures.answered += [bool(ask(q["q"], None)) for q in data["no_answer"] if q["store"] == store["id"]]
    return figures


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def table(rows: list[dict[str, Any]]) -> str:
    """Format the figures as Markdown."""
    peers = list(dict.fromkeys(name for row in rows for name in row["peers"]))
    head = ["set", "questions", *(f"recall@{depth}" for depth in DEPTHS), "all@5", "mrr"]
    names = [*head, "95 % of recall@5", *peers, "no answer: answered", "CPU ms p50 / p95", "target", "reached"]
    lines = [" | ".join(names), " | ".join("---" for _ in names)]
    for row in rows:
        share = row["no_answer_answered"]
        cells = [row["set"], str(row["questions"])]
        cells += [f"{row.get(key, 0.0):.3f}" for key in head[2:]]
        cells.append(f"{row['interval'][0]:.3f} to {row['interval'][1]:.3f}")
        cells += [f"{row['peers'][name]:.3f}" if name in row["peers"] else "–" for name in peers]
        cells.append("–" if share is None else f"{share:.2f} of {row['no_answer']}")
        cells.append(f"{row['cpu_ms_p50']:.1f} / {row['cpu_ms_p95']:.1f}")
        cells += ["–", "–"] if row["target"] is None else [f"{row['target']:.3f}", "yes" if row["reached"] else "no"]
        lines.append(" | ".join(cells))
    return "\n".join(f"| {line} |" for line in lines)


def compare(rows: list[dict[str, Any]], earlier: list[dict[str, Any]]) -> str:
    """The gain of each set over an earlier run, in points of recall@5, with its interval over the questions."""
    known = {row["set"]: row["by_question"] for row in earlier}
    lines = []
    for row in rows:
        before = known.get(row["set"])
        if before is not None and len(before) == row["questions"]:
            gains = [100 * (new - old) for new, old in zip(row["by_question"], before, strict=True)]
            low, high = interval(gains)
            better, worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
            lines.append(
                f"{row['set']}: {mean(gains):+.2f} points [{low:+.2f}, {high:+.2f}], {better} better, {worse} worse"
            )
    return "\n".join(lines)


def read_sets(directory: Path | None, names: list[str] | None) -> Iterator[dict[str, Any]]:
    """The sets in a directory, then our own; only those with these names, if there are any."""
    for path in sorted(directory.glob("*.json.gz")) if directory else ():
        if not names or path.name.split(".")[0] in names:
            with gzip.open(path) as stream:
                yield json.load(stream)
    yield from (data for data in load_sets() if not names or data["name"] in names)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory with *.json.gz sets; without it only our own sets")
    parser.add_argument("--set", action="append", dest="sets", help="only this set; can be given several times")
    parser.add_argument("--semantic", default="", help="rerank by meaning: wordllama, onnx:DIRECTORY, or both: A,B")
    parser.add_argument("--dates", action="store_true", help="ask each question on its own date, where that is known")
    parser.add_argument("--no-peers", action="store_true", help="without FTS5")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--compare", type=Path, help="an earlier file of --json")
    arguments = parser.parse_args()
    rows = []
    for data in read_sets(arguments.data, arguments.sets):
        figures = measure(data, arguments.semantic, dates=arguments.dates, peers=not arguments.no_peers)
        rows.append(figures.as_data())
        print(f"{figures.name}: recall@5 {figures.mean('recall@5'):.4f}", file=sys.stderr, flush=True)
    print(table(rows))
    if arguments.compare:
        print(compare(rows, json.loads(arguments.compare.read_text("utf-8"))))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0 if rows and all(row["reached"] in (True, None) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
