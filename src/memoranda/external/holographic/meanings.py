"""Compares facts with a prompt by meaning, if the application gave the provider a sentence encoder.

The vector of a fact is stored beside it and deleted with it. Recall embeds a limited number of facts that have none,
the newest first, so the first turns after an import compare only some of them; words find the others as before.
"""

import logging
import struct
from collections.abc import Mapping, Sequence
from operator import mul

from memoranda.errors import MemorandaError
from memoranda.external.holographic.algebra import fast_arithmetic
from memoranda.external.holographic.fact_store import FactStore
from memoranda.external.text_embedder import TextEmbedder
from memoranda.storage.sqlite.database import Connection

_log = logging.getLogger(__name__)

_MAX_FACTS = 5000
_MAX_EMBEDDED = 64
# Every encoder finds some likeness in any two texts. It is estimated from all facts; a few count as much as these.
_ASSUMED_BACKGROUND = 0.08
_ASSUMED_FACTS = 10


class FactMeanings:
    """The vectors of the facts of one store."""

    def __init__(self, store: FactStore, embedder: TextEmbedder) -> None:
        self._store = store
        self._embedder = embedder
        self._failed = False

    def compare(self, text: str) -> Mapping[int, float]:
        """How alike a text and each fact are, above what any two texts have in common. Empty if the encoder fails."""
        if self._failed:
            return {}
        try:
            self._embed_missing()
            [query] = self._embedder.embed([text])
            with self._store.database.reading() as connection:
                rows = self._read(connection)
        except MemorandaError as error:
            # The session continues with words only, instead of trying in every turn.
            self._failed = True
            _log.warning("Facts are recalled by their words only: %s", error)
            return {}
        return _likeness(query, rows)

    def _embed_missing(self) -> None:
        with self._store.database.reading() as connection:
            missing = connection.execute(
                "SELECT fact_id, content FROM facts WHERE fact_id NOT IN (SELECT fact_id FROM meanings WHERE model = ?)"
                " ORDER BY fact_id DESC LIMIT ?",
                (self._embedder.name, _MAX_EMBEDDED),
            ).fetchall()
        if not missing:
            return
        vectors = self._embedder.embed([content for _, content in missing])
        with self._store.database.writing() as connection:
            for (fact_id, content), vector in zip(missing, vectors, strict=True):
                # Not if the fact was removed or changed in the meantime.
                connection.execute(
                    "INSERT OR REPLACE INTO meanings (fact_id, model, vector)"
                    " SELECT fact_id, ?, ? FROM facts WHERE fact_id = ? AND content = ?",
                    (self._embedder.name, vector, fact_id, content),
                )

    def _read(self, connection: Connection) -> list[tuple[int, bytes]]:
        return connection.execute(
            "SELECT fact_id, vector FROM meanings WHERE model = ? ORDER BY fact_id DESC LIMIT ?",
            (self._embedder.name, _MAX_FACTS),
        ).fetchall()


def _likeness(query: bytes, rows: Sequence[tuple[int, bytes]]) -> dict[int, float]:
    products = _products(query, [vector for _, vector in rows])
    background = (sum(products) + _ASSUMED_FACTS * _ASSUMED_BACKGROUND) / (len(rows) + _ASSUMED_FACTS)
    return {fact_id: product - background for (fact_id, _), product in zip(rows, products, strict=True)}


def _products(query: bytes, vectors: Sequence[bytes]) -> list[float]:
    numpy = fast_arithmetic()
    if numpy is None or not vectors:
        numbers = _floats(query)
        return [sum(map(mul, numbers, _floats(vector))) for vector in vectors]
    matrix = numpy.frombuffer(b"".join(vectors), "<f4").reshape(len(vectors), -1)
    found: list[float] = (matrix @ numpy.frombuffer(query, "<f4")).tolist()
    return found


def _floats(vector: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(vector) // 4}f", vector)
