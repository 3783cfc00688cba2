"""Loads the provider that is configured and lets it join a session.

If it cannot be loaded, the session goes on without it, and the log says why.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memoranda.errors import ProviderError
from memoranda.providers.discovery import discover
from memoranda.providers.external import ExternalMemory
from memoranda.providers.loading import load
from memoranda.providers.manager import MemoryManager
from memoranda.providers.settings import ProviderSettings
from memoranda.providers.setup import read_settings
from memoranda.safety.fence import sanitize_context

_log = logging.getLogger(__name__)


def join(
    home: Path, name: str, settings: ProviderSettings, session_id: str, reserved: Sequence[str] = (), **facts: Any
) -> ExternalMemory:
    """External memory for a session, by the name of its provider; without a name, or if it fails, none."""
    if not name:
        return ExternalMemory()
    found = discover(home).get(name)
    if found is None:
        _log.warning("There is no memory provider %s; 'memoranda provider list' shows those there are.", name)
        return ExternalMemory()
    try:
        provider = load(found, home, read_settings(home, name))
    except ProviderError as error:
        _log.warning("%s The session goes on with the built-in memory.", error)
        return ExternalMemory()
    manager = MemoryManager(home, settings, clean=sanitize_context, reserved=reserved)
    if not manager.add_provider(provider):
        return ExternalMemory()
    manager.initialize(session_id, **facts)
    return ExternalMemory(manager, most=settings.recall_chars)
