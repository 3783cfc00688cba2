"""Sets up search by meaning for one home: its embedders, their HTTP client, and their rows in the ledger."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from memoranda import config
from memoranda.errors import MemorandaError
from memoranda.index.follower import Follower
from memoranda.sessions.feed import Feed
from memoranda.sessions.record import open_record
from memoranda.sessions.scope import Scope
from memoranda.support.home import Home

if TYPE_CHECKING:
    from memoranda.providers.remote import RemoteClient
    from memoranda.recall.rescorer import Rescorer
    from memoranda.recall.semantic.embedder import Embedder
    from memoranda.recall.semantic.vector_index import VectorIndex
    from memoranda.recall.settings import RecallSettings
    from memoranda.session_db import SessionDB
    from memoranda.spending.ledger import Ledger

_log = logging.getLogger(__name__)

_MAX_ANSWER_BYTES = 50_000_000


@contextmanager
def open_semantic_search(home: Home, loaded: "config.Config") -> "Iterator[SemanticSearch]":
    """Search by meaning for a caller that does not open the whole home."""
    from memoranda.spending.ledger import Ledger

    ledger = Ledger(home.root, loaded.budget)
    semantic = SemanticSearch(loaded.recall, lambda: config.credentials(home), lambda: ledger)
    with ExitStack() as stack:
        stack.callback(ledger.close)
        if loaded.recall.semantic_index:
            engine = open_record(home.state_db)
            stack.callback(engine.close)
            semantic.read_record(home.state_db, Feed(engine, Scope.everyone(), None))
        stack.callback(semantic.close)
        yield semantic


class SemanticSearch:
    """Loads what the settings name when a search first needs it; a failure costs only the meaning."""

    def __init__(
        self,
        settings: "RecallSettings",
        credentials: Callable[[], Mapping[str, str]],
        ledger: "Callable[[], Ledger]",
    ) -> None:
        self._settings = settings
        self._credentials = credentials
        self._ledger = ledger
        self._rescorers: tuple[Rescorer, ...] | None = None
        self._load: Callable[[], Sequence[Embedder]] | None = None
        self._clients: list[RemoteClient] = []
        self._indexes: dict[str, VectorIndex] = {}
        self._record: tuple[Path, Feed] | None = None

    def attach(self, db: "SessionDB") -> None:
        """Rank the results of a store by meaning, and keep its vectors up to date if the settings ask for that."""
        db.rescore_with(self.rescorers)
        self.read_record(db.path, Feed(db.engine, Scope.everyone(), None))
        for number in range(len(self._settings.semantic_model) if self._settings.semantic_index else 0):
            db.follow_with(Follower(partial(self.index_of, number)), partial(self._forget_deleted, number))

    def read_record(self, db_path: Path, feed: Feed) -> None:
        """Where the index of vectors is, and what it follows: all users. Without this call, none is used."""
        self._record = (db_path, feed)

    def rescorers(self) -> "Sequence[Rescorer]":
        """The rescorers of a search."""
        if self._rescorers is None:
            from memoranda.recall.semantic.meaning_rescorer import MeaningRescorer

            seconds = self._settings.semantic_seconds
            self._rescorers = (MeaningRescorer(self.embedders, seconds=seconds, open_index=self._index_for),)
        return self._rescorers

    def embedders(self) -> "Sequence[Embedder]":
        """The embedders that the settings name; raises EmbedderError."""
        if self._load is None:
            from memoranda.recall.semantic.embedders import embedder_loader

            self._load = embedder_loader(self._settings.semantic_model, self._make_endpoint)
        return self._load()

    def index_of(self, number: int) -> "VectorIndex":
        """The index of vectors of one embedder, by its number in the settings; raises EmbedderError."""
        return self.indexes()[number]

    def indexes(self) -> "list[VectorIndex]":
        """The indexes of vectors of all embedders, without those of others; raises EmbedderError."""
        from memoranda.support.vector_paths import remove_vectors

        assert self._record is not None
        opened = [self._open_index(embedder) for embedder in self.embedders()]
        remove_vectors(self._record[0], keep=[index.path for index in opened])
        return opened

    def close(self) -> None:
        for index in self._indexes.values():
            index.close()
        for client in self._clients:
            client.close()

    def _forget_deleted(self, number: int) -> None:
        """Remove the vectors of deleted messages; if that fails, remove all vectors, which can be rebuilt."""
        from memoranda.support.vector_paths import remove_vectors

        try:
            self.index_of(number).forget_deleted()
        except MemorandaError as error:
            _log.warning("All vectors were deleted with those of the deleted messages: %s", error)
            assert self._record is not None
            remove_vectors(self._record[0])

    def _index_for(self, embedder: "Embedder") -> "VectorIndex | None":
        return self._open_index(embedder) if self._settings.semantic_index and self._record else None

    def _open_index(self, embedder: "Embedder") -> "VectorIndex":
        from memoranda.recall.semantic.vector_index import VectorIndex
        from memoranda.support.vector_paths import vectors_path

        assert self._record is not None
        path, feed = self._record
        if embedder.name not in self._indexes:
            self._indexes[embedder.name] = VectorIndex(vectors_path(path, embedder.name), feed, lambda: embedder)
        return self._indexes[embedder.name]

    def _make_endpoint(self, model: str) -> "Embedder":
        from memoranda.providers.remote import RemoteClient
        from memoranda.recall.semantic.embedder import EmbedderError
        from memoranda.recall.semantic.endpoint_embedder import EndpointEmbedder

        settings = self._settings
        if not settings.semantic_url:
            raise EmbedderError(f"search.semantic_url is not set: the address of the service that runs {model}.")
        key = self._credentials().get(settings.semantic_api_key_env, "").strip()
        try:
            client = RemoteClient(
                "search.semantic_url",
                settings.semantic_url,
                headers={"Authorization": f"Bearer {key}"} if key else {},
                timeout=settings.semantic_seconds,
                max_bytes=_MAX_ANSWER_BYTES,
            )
        except MemorandaError as error:
            raise EmbedderError(str(error)) from error
        self._clients.append(client)
        host = urlsplit(settings.semantic_url).hostname or ""
        return EndpointEmbedder(model, client.post, self._ledger().embedding_meter(host, model), host)
