"""Sets up search by meaning for one home: its embedders, their HTTP client, and their rows in the ledger."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from memoranda import config
from memoranda.support.home import Home

if TYPE_CHECKING:
    from memoranda.providers.remote import RemoteClient
    from memoranda.recall.rescorer import Rescorer
    from memoranda.recall.semantic.embedder import Embedder
    from memoranda.recall.settings import RecallSettings
    from memoranda.spending.ledger import Ledger

_MAX_ANSWER_BYTES = 50_000_000


@contextmanager
def open_semantic_search(home: Home, loaded: "config.Config") -> "Iterator[SemanticSearch]":
    """Search by meaning for a caller that does not open the whole home."""
    from memoranda.spending.ledger import Ledger

    ledger = Ledger(home.root, loaded.budget)
    semantic = SemanticSearch(loaded.recall, lambda: config.credentials(home), lambda: ledger)
    try:
        yield semantic
    finally:
        semantic.close()
        ledger.close()


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
        self._clients: list[RemoteClient] = []

    def rescorers(self) -> "Sequence[Rescorer]":
        """The rescorers of a search."""
        if self._rescorers is None:
            from memoranda.recall.semantic.meaning_rescorer import MeaningRescorer

            self._rescorers = (MeaningRescorer(self._embedders(), seconds=self._settings.semantic_seconds),)
        return self._rescorers

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def _embedders(self) -> "Callable[[], Sequence[Embedder]]":
        from memoranda.recall.semantic.embedders import embedder_loader

        return embedder_loader(self._settings.semantic_model, self._make_endpoint)

    def _make_endpoint(self, model: str) -> "Embedder":
        from memoranda.errors import MemorandaError
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
