"""Loads the provider that is configured and lets it join a session.

If it cannot be loaded, the session goes on without it, and the log says why.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from memoranda.errors import ProviderError
from memoranda.providers.calling import Pending
from memoranda.providers.discovery import discover
from memoranda.providers.external import ExternalMemory, guarded, memory_changes
from memoranda.providers.loading import load
from memoranda.providers.manager import MemoryManager
from memoranda.providers.outbox import Outbox
from memoranda.providers.provider import MemoryProvider
from memoranda.providers.settings import ProviderSettings
from memoranda.providers.setup import fields_of, read_settings
from memoranda.safety.fence import sanitize_context

_log = logging.getLogger(__name__)


@guarded(ExternalMemory())
def join(
    home: Path, name: str, settings: ProviderSettings, session_id: str,
    offer_secrets: Callable[[Collection[str]], None], **facts: Any,
) -> ExternalMemory:  # fmt: skip
    """External memory for a session, by the name of its provider; without a name, or if it fails, none.

    `offer_secrets` puts the variables that a provider names where it looks for them.
    """
    if not name:
        return ExternalMemory()
    # Somebody else's code is read and imported here, which may take any time; nobody waits for it without end.
    answer = Pending(lambda: _find(home, name, offer_secrets), f"memoranda-load-{name}").wait(settings.start_seconds)
    if answer is None or not answer.ok:
        reason = answer.error if answer else f"it was not loaded within {settings.start_seconds:g} s"
        _log.warning("The memory provider %s is left out: %s. The session goes on without it.", name, reason)
        return ExternalMemory()
    manager = MemoryManager(home, settings, clean=sanitize_context)
    if not manager.add_provider(answer.value):
        return ExternalMemory()
    manager.initialize(session_id, **facts)
    return ExternalMemory(manager, name, most=settings.recall_chars)


@guarded(None)
def queue_writes(home: Path, name: str, settings: ProviderSettings, result: Mapping[str, Any], user: str) -> None:
    """What was written outside any session waits in the outbox until the provider is next started."""
    outbox = Outbox(home, settings)
    try:
        for args, metadata, key in memory_changes(result, ""):
            outbox.put(name, "memory_write", "", args, {"metadata": metadata}, scope=user, key=key)
    finally:
        outbox.close()


def _find(home: Path, name: str, offer_secrets: Callable[[Collection[str]], None]) -> MemoryProvider:
    found = discover(home).get(name)
    if found is None:
        raise ProviderError(f"there is no memory provider {name}; 'memoranda provider list' shows those there are")
    provider = load(found, home, read_settings(home, name))
    offer_secrets([field.env_var for field in fields_of(provider) if field.env_var])
    return provider
