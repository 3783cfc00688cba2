"""Plain full-text search over the sessions of a store, to compare with: FTS5 with a stemmer.

It searches for any of the words of a question and ranks a session by its best message. Text in scripts without spaces
is indexed as pairs of characters, because FTS5 does not segment it.
"""

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from typing import Any

Ask = Callable[[str], list[str]]
_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+")
_MAX_MESSAGES = 400
_LIMIT = 10


def open_peers(store: dict[str, Any]) -> dict[str, Ask]:
    """The programs that can run here, each as a function from a question to session ids, best first."""
    return {"FTS5 porter": _open_fts5(store)}


def _words(text: str) -> list[str]:
    pairs = ["".join(pair) for run in _UNSPACED.findall(text) for pair in pairwise(run)]
    return _WORD.findall(_UNSPACED.sub(" ", text).lower()) + pairs


def _open_fts5(store: dict[str, Any]) -> Ask:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE m USING fts5 (session UNINDEXED, text, tokenize = 'porter unicode61')")
    connection.executemany("INSERT INTO m VALUES (?, ?)", _messages(store))

    def ask(question: str) -> list[str]:
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(_words(question)))
        with closing(connection.cursor()) as cursor:
            rows = cursor.execute(
                "SELECT session FROM m WHERE m MATCH ? ORDER BY rank LIMIT ?", (match or '""', _MAX_MESSAGES)
            )
            return list(dict.fromkeys(row[0] for row in rows))[:_LIMIT]

    return ask


def _messages(store: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (session["id"], " ".join(_words(message["text"])))
        for session in store["sessions"]
        for message in session["messages"]
    ]
