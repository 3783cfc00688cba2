"""Measures which messages answer: how `search_messages` ranks them, and what `session_search` and the hook show.

    python -m benchmarks.message_recall --data DIR
    python -m benchmarks.message_recall --data DIR --set locomo --limit 3

For each set and each kind of question: recall@10 and NDCG@10 of the evidence messages in the product's own order and in
that of plain FTS5 (porter stemmer, any of the words, BM25; pairs of characters for Chinese and Japanese), then how many
of the evidence messages an answer shows, and the tokens that it costs.
"""

import argparse
import gzip
import json
import re
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import log2
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.recall import fill_store
from memoranda.home.session_db import SessionDB
from memoranda.integrations.hooks.prompt_evidence import find_evidence
from memoranda.models.tokens import estimate_text
from memoranda.search.query import content_words
from memoranda.search.tool import SessionSearchTool

DEPTH = 10
LIMIT = 5
"""How many sessions an answer has, unless it is set."""
UNSPACED = ("cmrc_zh", "jsquad_ja")
# Evidence counts as shown if a line of the text has this share of its content words.
_SHARE_OF_WORDS = 0.6
_MIN_WORDS = 3
_WORD = re.compile(r"\w+")
_FIELDS = ("recall", "ndcg", "fts_recall", "fts_ndcg", "shown", "tokens", "hook", "hook_tokens")


@dataclass(frozen=True, slots=True)
class MessageScores:
    """The figures of one question; `shown` and `hook` are shares of its evidence messages."""

    kind: str
    evidence: int
    recall: float
    ndcg: float
    fts_recall: float
    fts_ndcg: float
    shown: float
    tokens: int
    hook: float
    hook_tokens: int


class PlainSearch:
    """SQLite's FTS5 with the porter stemmer: a message matches with any word of the question, BM25 orders them."""

    def __init__(self, messages: dict[str, str], *, unspaced: bool) -> None:
        self._unspaced = unspaced
        self._names = list(messages)
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute("CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = 'porter unicode61')")
        rows = enumerate(messages.values())
        self._connection.executemany(
            "INSERT INTO texts(rowid, text) VALUES (?, ?)", ((row, " ".join(self._words(text))) for row, text in rows)
        )

    def _words(self, text: str) -> list[str]:
        words = _WORD.findall(text)
        return ["".join(pair) for word in words for pair in pairwise(word)] if self._unspaced else words

    def find(self, question: str) -> list[str]:
        """The names of the best messages."""
        expression = " OR ".join(f'"{word}"' for word in dict.fromkeys(self._words(question)))
        rows = self._connection.execute(
            "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts), rowid LIMIT ?", (expression, DEPTH)
        )
        return [self._names[row] for (row,) in rows]


def rank_quality(ranked: list[str], gold: set[str]) -> tuple[float, float]:
    """Recall@10 and NDCG@10 of a ranking."""
    hits = [1.0 if name in gold else 0.0 for name in ranked[:DEPTH]]
    gain = sum(hit / log2(rank + 2) for rank, hit in enumerate(hits))
    ideal = sum(1 / log2(rank + 2) for rank in range(min(DEPTH, len(gold))))
    return sum(hits) / len(gold), gain / ideal


def contains_evidence(recalled: str, evidence: str) -> bool:
    """Return whether a text has a message word for word, or most of its content words in one line.

    A text of thousands of words has most words of a short message by chance.
    """
    if _normalize(evidence) in _normalize(recalled):
        return True
    words = content_words(evidence)
    return len(words) >= _MIN_WORDS and any(
        len(words & content_words(line)) >= _SHARE_OF_WORDS * len(words) for line in recalled.splitlines()
    )


def _normalize(text: str) -> str:
    return " ".join(text.split()).casefold()


def read_texts(value: Any) -> list[str]:
    """Every text in the results of an answer."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in read_texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in read_texts(each)]
    return [value] if isinstance(value, str) else []


def measure_store(data: dict[str, Any], store: dict[str, Any], limit: int) -> Iterator[MessageScores]:
    """Ask every question of one store."""
    texts = {message["id"]: message["text"] for session in store["sessions"] for message in session["messages"]}
    with TemporaryDirectory(prefix="memoranda-messages-") as home, SessionDB(Path(home, "state.db")) as sessions:
        names = fill_store(sessions, data["name"], store)
        sessions.index.catch_up()
        by_session = {session["id"]: session["messages"] for session in store["sessions"]}
        recorded = {
            row["id"]: (message["id"], row["content"])
            for ours, theirs in names.items()
            for row, message in zip(sessions.get_messages(ours), by_session[theirs], strict=True)
        }
        plain = PlainSearch(dict(recorded.values()), unspaced=data["name"] in UNSPACED)
        tool = SessionSearchTool(lambda: sessions)
        for question in data["queries"]:
            if question["store"] != store["id"] or not question["gold_msgs"]:
                continue
            text, gold = question["q"], set(question["gold_msgs"])
            found = [recorded[hit["id"]][0] for hit in sessions.search_messages(text, limit=DEPTH)]
            answer = tool.call({"query": text, "limit": limit})
            block = find_evidence(Path(home, "state.db"), None, text, "codex", "", frozenset()).text

            def share(recalled: str, evidence: set[str] = gold) -> float:
                return mean(contains_evidence(recalled, texts[name]) for name in evidence)

            yield MessageScores(
                question["type"],
                len(gold),
                *rank_quality(found, gold),
                *rank_quality(plain.find(text), gold),
                share("\n".join(read_texts(answer["results"]))),
                estimate_text(json.dumps(answer, ensure_ascii=False)),
                share(block) if block else 0.0,
                estimate_text(block),
            )


def table(groups: dict[str, list[MessageScores]]) -> str:
    """The figures as Markdown, one row for each group of questions."""
    head = ["questions", "", "recall@10", "NDCG@10", "FTS5 recall@10", "FTS5 NDCG@10", "shown", "tokens"]
    head += ["shown by the hook", "its tokens"]
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    for name, scores in groups.items():
        figures = [mean(getattr(score, field) for score in scores) for field in _FIELDS]
        pairs = zip(_FIELDS, figures, strict=True)
        cells = [f"{value:.0f}" if "tokens" in field else f"{value:.3f}" for field, value in pairs]
        lines.append(" | ".join([name, str(len(scores)), *cells]))
    return "\n".join(f"| {line} |" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory with *.json.gz sets")
    parser.add_argument("--set", action="append", dest="sets", help="only this set; can be given several times")
    parser.add_argument("--limit", type=int, default=LIMIT, help="how many sessions an answer has")
    arguments = parser.parse_args()
    groups: dict[str, list[MessageScores]] = defaultdict(list)
    for path in sorted(arguments.data.glob("*.json.gz")):
        name = path.name.split(".")[0]
        if arguments.sets and name not in arguments.sets:
            continue
        with gzip.open(path) as stream:
            data = json.load(stream)
        scores = [score for store in data["stores"] for score in measure_store(data, store, arguments.limit)]
        groups[name] = scores
        kinds = sorted({score.kind for score in scores})
        for kind in kinds if len(kinds) > 1 else ():
            groups[f"{name}: {kind}"] = [score for score in scores if score.kind == kind]
    print(table(groups))
    return 0


if __name__ == "__main__":
    sys.exit(main())
