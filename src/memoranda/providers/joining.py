"""Loads the provider that is configured and lets it join a session.

If it cannot be loaded, the session goes on without it, and the log says why.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memoranda.errors import ProviderError
from memoranda.providers.calling import Pending
from memoranda.providers.discovery import discover
from memoranda.providers.external import ExternalMemory
from memoranda.providers.loading import load
from memoranda.providers.manager import MemoryManager
from memoranda.providers.provider import MemoryProvider
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
    # Somebody else's code is read and imported here, which may take any time; nobody waits for it without end.
    answer = Pending(lambda: _find(home, name), f"memoranda-load-{name}").wait(settings.start_seconds)
    if answer is None or not answer.ok:
        reason = answer.error if answer else f"it was not loaded within {settings.start_seconds:g} s"
        _log.warning("The memory provider %s is left out: %s. The session goes on without it.", name, reason)
        return ExternalMemory()
    manager = MemoryManager(home, settings, clean=sanitize_context, reserved=reserved)
    if not manager.add_provider(answer.value):
        return ExternalMemory()
    manager.initialize(session_id, **facts)
    return ExternalMemory(manager, name, most=settings.recall_chars)


def _find(home: Path, name: str) -> MemoryProvider:
    found = discover(home).get(name)
    if found is None:
        raise ProviderError(f"there is no memory provider {name}; 'memoranda provider list' shows those there are")
    return load(found, home, read_settings(home, name))
