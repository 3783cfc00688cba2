"""Sets up what the searches of a home use besides words: embedders, rerankers, and suggestions of a model.

They are loaded when a search first needs them, their calls are rows of the ledger, and a failure costs only their part.

Providers get the local sentence encoder that search by meaning is configured with: only a model in a directory of this
machine (`onnx:DIRECTORY`). A service is not given, because a provider that keeps its facts on this machine would then
send them elsewhere; word vectors are not, because they hardly improve recall.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from memoranda.errors import MemorandaError
from memoranda.home import config
from memoranda.memory.record.feed import Feed
from memoranda.memory.record.record import open_record
from memoranda.memory.record.scope import Scope
from memoranda.search.index.follower import Follower
from memoranda.search.settings import RecallSettings
from memoranda.support.home import Home

if TYPE_CHECKING:
    from memoranda.external.remote import RemoteClient
    from memoranda.home.session_db import SessionDB
    from memoranda.models.model import ChatModel
    from memoranda.models.spending.ledger import Ledger
    from memoranda.search.legs.leg import Rescorer
    from memoranda.search.meaning.embedder import Embedder
    from memoranda.search.meaning.passage_rescorer import PassageScorer
    from memoranda.search.meaning.vector_index import VectorIndex

_log = logging.getLogger(__name__)

_MAX_ANSWER_BYTES = 50_000_000


@contextmanager
def open_search_extras(home: Home, loaded: "config.Config") -> "Iterator[SearchExtras]":
    """Search by meaning for the hook of a prompt, which opens no whole home and asks no chat model."""
    from memoranda.models.spending.ledger import Ledger

    ledger = Ledger(home.root, loaded.budget, server_url=config.server_url(home, loaded))
    only_meaning = replace(loaded, recall=replace(loaded.recall, rerank="", expand=False))
    semantic = SearchExtras(home, only_meaning, lambda: ledger)
    with ExitStack() as stack:
        stack.callback(ledger.close)
        if loaded.recall.semantic_index:
            engine = open_record(config.record_location(home, loaded))
            stack.callback(engine.close)
            semantic.read_record(Feed(engine, Scope.everyone(), None))
        stack.callback(semantic.close)
        yield semantic


class SearchExtras:
    """The extras that the settings of a home ask for."""

    def __init__(self, home: Home, loaded: config.Config, ledger: "Callable[[], Ledger]") -> None:
        self._home = home
        self._config = loaded
        self._settings = loaded.recall
        self._ledger = ledger
        self._rescorers: tuple[Rescorer, ...] | None = None
        self._load: Callable[[], Sequence[Embedder]] | None = None
        self._models: dict[str, ChatModel] = {}
        self._clients: list[RemoteClient] = []
        self._indexes: dict[str, VectorIndex] = {}
        self._base = config.vectors_base(home, loaded)
        self._feed: Feed | None = None

    def attach(self, db: "SessionDB", *, follow: bool = True) -> None:
        """Use them in the searches of a store, and keep its vectors up to date if the settings ask for that."""
        db.rescore_with(self.rescorers)
        self.read_record(Feed(db.engine, Scope.everyone(), None))
        follows = follow and self._settings.semantic and self._settings.semantic_index
        for number in range(len(self._settings.semantic_model) if follows else 0):
            db.follow_with(Follower(partial(self.index_of, number)), partial(self._forget_deleted, number))

    def read_record(self, feed: Feed) -> None:
        """What the index of vectors follows: all users. Without this call, none is used."""
        self._feed = feed

    def rescorers(self) -> "Sequence[Rescorer]":
        """The rescorers of a search, in their order: more candidates, their meaning, then the first of them again."""
        if self._rescorers is None:
            settings, made = self._settings, []
            if settings.expand:
                made.append(self._make_expansion())
            if settings.semantic:
                from memoranda.search.meaning.meaning_rescorer import MeaningRescorer

                seconds = settings.semantic_seconds
                made.append(MeaningRescorer(self.embedders, seconds=seconds, open_index=self._index_for))
            if settings.rerank:
                from memoranda.search.meaning.passage_rescorer import PassageRescorer

                made.append(PassageRescorer(self._load_passage_scorer, seconds=settings.rerank_seconds))
            self._rescorers = tuple(made)
        return self._rescorers

    def embedders(self) -> "Sequence[Embedder]":
        """The embedders that the settings name; raises EmbedderError."""
        if self._load is None:
            from memoranda.search.meaning.embedders import embedder_loader

            self._load = embedder_loader(self._settings.semantic_model, self._make_endpoint)
        return self._load()

    def index_of(self, number: int) -> "VectorIndex":
        """The index of vectors of one embedder, by its number in the settings; raises EmbedderError."""
        return self.indexes()[number]

    def indexes(self) -> "list[VectorIndex]":
        """The indexes of vectors of all embedders, without those of others; raises EmbedderError."""
        from memoranda.support.home import remove_vectors

        opened = [self._open_index(embedder) for embedder in self.embedders()]
        remove_vectors(self._base, keep=[index.path for index in opened])
        return opened

    def close(self) -> None:
        for index in self._indexes.values():
            index.close()
        for client in self._clients:
            client.close()

    def _forget_deleted(self, number: int) -> None:
        """Remove the vectors of deleted messages; if that fails, remove all vectors, which can be rebuilt."""
        from memoranda.support.home import remove_vectors

        try:
            self.index_of(number).forget_deleted()
        except MemorandaError as error:
            _log.warning("All vectors were deleted with those of the deleted messages: %s", error)
            remove_vectors(self._base)

    def _index_for(self, embedder: "Embedder") -> "VectorIndex | None":
        return self._open_index(embedder) if self._settings.semantic_index and self._feed else None

    def _open_index(self, embedder: "Embedder") -> "VectorIndex":
        from memoranda.search.meaning.vector_index import VectorIndex
        from memoranda.support.home import vectors_path

        assert self._feed is not None
        if embedder.name not in self._indexes:
            path = vectors_path(self._base, embedder.name)
            self._indexes[embedder.name] = VectorIndex(path, self._feed, lambda: embedder)
        return self._indexes[embedder.name]

    def _make_expansion(self) -> "Rescorer":
        from memoranda.search.meaning.query_expansion import ExpansionCache, ExpansionRescorer

        model_for = partial(self._chat_model, self._settings.expand_model)
        return ExpansionRescorer(model_for, ExpansionCache(self._home.root), seconds=self._settings.expand_seconds)

    def _load_passage_scorer(self) -> "PassageScorer":
        from memoranda.search.meaning.embedder import EmbedderError
        from memoranda.search.meaning.embedders import ONNX

        chosen = self._settings.rerank
        if chosen == "model":
            from memoranda.search.meaning.passage_rescorer import ChatScorer

            return ChatScorer(partial(self._chat_model, self._settings.rerank_model))
        if chosen.startswith(ONNX):
            from memoranda.search.meaning.onnx_models import load_cross_encoder

            return load_cross_encoder(Path(chosen.removeprefix(ONNX)))
        raise EmbedderError(f"search.rerank is {chosen!r}: use {ONNX}DIRECTORY or model.")

    def _chat_model(self, name: str, user: str) -> "ChatModel":
        """A chat model of the configured service, as background work that the ledger records for a user."""
        from memoranda.models.model_factory import model_for

        if name not in self._models:
            chosen = replace(self._config.model, name=name) if name else self._config.model
            self._models[name] = model_for(chosen, config.credentials(self._home))
        return self._ledger().metered(self._models[name], "search", user_id=user, background=True)

    def _make_endpoint(self, model: str) -> "Embedder":
        from memoranda.external.remote import RemoteClient
        from memoranda.search.meaning.embedder import EmbedderError
        from memoranda.search.meaning.embedders import EndpointEmbedder

        settings = self._settings
        if not settings.semantic_url:
            raise EmbedderError(f"search.semantic_url is not set: the address of the service that runs {model}.")
        key = config.credentials(self._home).get(settings.semantic_api_key_env, "").strip()
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


_LOCAL = "onnx:"


class LocalTextEmbedder:
    """A sentence encoder that is loaded when it is first used."""

    def __init__(self, model: str, seconds: float) -> None:
        self._model = model
        self._seconds = seconds

    @property
    def name(self) -> str:
        return self._embedder.name

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        vectors = self._embedder.embed(texts, timeout=self._seconds)
        return [vector.astype("<f4").tobytes() for vector in vectors]

    @cached_property
    def _embedder(self) -> "Embedder":
        from memoranda.search.meaning.embedders import make_embedder

        return make_embedder(self._model)


def configured_embedder(settings: RecallSettings) -> LocalTextEmbedder | None:
    """The first local sentence encoder of the settings, if search by meaning is on."""
    local = [model for model in settings.semantic_model if model.startswith(_LOCAL)]
    return LocalTextEmbedder(local[0], settings.semantic_seconds) if settings.semantic and local else None
