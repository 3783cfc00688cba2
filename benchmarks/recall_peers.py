"""Plain full-text search over the sessions of a store, to compare with: FTS5 with a stemmer, and Tantivy if installed.

Both search for any of the words of a question and rank a session by its best message. Text in scripts without spaces is
indexed as pairs of characters, as neither of them segments it.
"""

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import pairwise
from typing import Any

Ask = Callable[[str], list[str]]
_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+")
_MAX_MESSAGES = 400
_LIMIT = 10


def open_peers(store: dict[str, Any]) -> dict[str, Ask]:
    """The programs that can run here, each as a function from a question to session ids, best first."""
    found = {"FTS5 porter": _open_fts5(store)}
    with suppress(ModuleNotFoundError):
        found["Tantivy"] = _open_tantivy(store)
    return found


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


def _open_tantivy(store: dict[str, Any]) -> Ask:
    import tantivy  # noqa: PLC0415

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("session", stored=True, tokenizer_name="raw")
    builder.add_text_field("text", tokenizer_name="en_stem")
    index = tantivy.Index(builder.build())
    writer = index.writer()
    for session, text in _messages(store):
        writer.add_document(tantivy.Document(session=session, text=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def ask(question: str) -> list[str]:
        query = index.parse_query(" ".join(_words(question)) or "a", ["text"])
        hits = searcher.search(query, _MAX_MESSAGES).hits
        return list(dict.fromkeys(searcher.doc(address)["session"][0] for _, address in hits))[:_LIMIT]

    return ask


def _messages(store: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (session["id"], " ".join(_words(message["text"])))
        for session in store["sessions"]
        for message in session["messages"]
    ]
