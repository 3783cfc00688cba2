"""The worker for tantivy, by its Python binding: an index of the messages, without their text.

With `--our-tokens` it gets text that Memoranda's tokenizer has split, Chinese pairs included; otherwise it
uses its own English tokenizer. It commits every 5,000 messages; Memoranda is durable after every session.
"""

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.curated import ROOT
from benchmarks.growth.conversation import Conversation
from benchmarks.growth.fts5 import STOP_WORDS
from benchmarks.growth.tasks import serve

_WORD = re.compile(r"\w+")
_HEAP = 60_000_000


class TantivyStore:
    """One index, open for reading; the writer is opened by the first append."""

    def __init__(self, library: Any, home: Path, tokenizer: Any) -> None:
        self._library, self._tokenizer = library, tokenizer
        self._stop_words = import_module("memoranda.search.index.tokenizer").STOP_WORDS if tokenizer else STOP_WORDS
        builder = library.SchemaBuilder()
        builder.add_text_field("session", stored=True, tokenizer_name="raw")
        builder.add_text_field("text", stored=False, tokenizer_name="split" if tokenizer else "en_stem")
        home.mkdir(parents=True, exist_ok=True)
        self._index = library.Index(builder.build(), path=str(home))
        if tokenizer:
            analyzer = library.TextAnalyzerBuilder(library.Tokenizer.whitespace()).build()
            self._index.register_tokenizer("split", analyzer)
        self._writer: Any = None
        self._searcher = self._index.searcher()

    def contains(self, conversation: Conversation) -> bool:
        """Nothing is left of an interrupted part: a part is one commit."""
        return False

    def create(self, conversation: Conversation) -> None:
        """Nothing: the index has no sessions."""

    def append_all(self, conversation: Conversation) -> None:
        if self._writer is None:
            self._writer = self._index.writer(_HEAP, 1)
        for message in conversation.messages:
            document = self._library.Document()
            document.add_text("session", conversation.id)
            document.add_text("text", self._prepare(message.content))
            self._writer.add_document(document)

    def end(self, conversation: Conversation) -> None:
        """Nothing: sessions do not end here."""

    def settle(self) -> None:
        self._writer.commit()
        self._index.reload()
        self._searcher = self._index.searcher()

    def search(self, text: str) -> list[str]:
        """Return the sessions of the thirty best messages, each once."""
        hits = self._searcher.search(self._query(text), 30).hits
        sessions = [self._searcher.doc(address)["session"][0] for _, address in hits]
        return list(dict.fromkeys(sessions))[:3]

    def close(self) -> None:
        if self._writer is not None:
            self._writer.wait_merging_threads()

    def _prepare(self, text: str) -> str:
        return " ".join(self._tokenizer.index_tokens(text)[:2]) if self._tokenizer else text

    def _query(self, text: str) -> Any:
        library, phrase = self._library, text.startswith('"')
        if not self._tokenizer:
            words = [word for word in _WORD.findall(text.casefold()) if word not in STOP_WORDS]
            return self._index.parse_query(f'"{" ".join(words)}"' if phrase else " ".join(words), ["text"])
        schema = self._index.schema
        typed = self._tokenizer.query_words(text)
        groups = [group for group in typed if phrase or not self._stop_words.issuperset(group)]
        if phrase:
            return library.Query.phrase_query(schema, "text", [token for group in groups for token in group])
        queries = [_any_of(library, schema, group) for group in groups]
        return library.Query.boolean_query([(library.Occur.Should, query) for query in queries])


def _any_of(library: Any, schema: Any, group: tuple[str, ...]) -> Any:
    """Several tokens of one typed word are a phrase."""
    if len(group) > 1:
        return library.Query.phrase_query(schema, "text", list(group))
    return library.Query.term_query(schema, "text", group[0])


class Tantivy:
    """The library of this environment; our tokenizer is read from this checkout."""

    def __init__(self, our_tokens: bool) -> None:
        # Not installed where our code is checked, so imported by name.
        self._library = import_module("tantivy")
        self._tokenizer = None
        if our_tokens:
            sys.path.insert(0, str(ROOT / "src"))
            self._tokenizer = import_module("memoranda.search.index.tokenizer")

    def open(self, home: Path) -> TantivyStore:
        return TantivyStore(self._library, home, self._tokenizer)

    def index_files(self, home: Path) -> list[Path]:
        return [path for path in home.rglob("*") if path.is_file()]


if __name__ == "__main__":
    serve(Tantivy(our_tokens="--our-tokens" in sys.argv))
