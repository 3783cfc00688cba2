"""Refuses settings that cannot be used together with a record on a server."""

from memoranda.errors import ConfigError
from memoranda.home import config

# Every other provider has its memory at a service, or on the server.
_LOCAL_PROVIDER = "byterover"


def refuse_what_needs_files(settings: config.Config) -> None:
    """Raise ConfigError for what works only beside a record in files."""
    if not settings.store.url:
        if settings.recall.user_index_mb:
            raise ConfigError("search.index is user, which needs a record on a server: set store.url, or unset it.")
        return
    if _LOCAL_PROVIDER in settings.providers:
        raise ConfigError(
            f"memory.provider is {_LOCAL_PROVIDER}, and the record is on a server. Its memory is a directory of one "
            "machine, and each node would have a part of it. Unset memory.provider or store.url."
        )
    if settings.recall.semantic and settings.recall.semantic_index and settings.recall.user_index_mb:
        raise ConfigError(
            "search.semantic_index is set, and search.index is user. An index of vectors has the messages of all "
            "users, which one node then does not index. Unset search.semantic_index: "
            "search.semantic reranks without it."
        )
