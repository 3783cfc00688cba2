"""Attaches the configured provider to a session: finds, loads and starts it in the background.

The session waits a short time for it, because its prompt block becomes part of the frozen prompt. If the provider
cannot be loaded, the session continues without it and the log says why; turns are marked in the record all the same,
and are delivered once the provider works again.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from memoranda.curated.write_result import MemoryReceipt, Origin
from memoranda.errors import ProviderError, StorageError
from memoranda.providers.discovery import discover
from memoranda.providers.external_memory import ExternalMemory, guarded, memory_changes
from memoranda.providers.guarded_call import CallResult
from memoranda.providers.jobs import NewJob
from memoranda.providers.loader import load
from memoranda.providers.manager import MemoryManager
from memoranda.providers.outbox import Outbox
from memoranda.providers.provider import MemoryProvider
from memoranda.providers.recorded_turns import RecordedTurns
from memoranda.providers.settings import ProviderSettings
from memoranda.providers.setup import fields_of, read_settings
from memoranda.providers.start_timeout import remember_start, start_timeout
from memoranda.safety.fence import sanitize_context
from memoranda.safety.redaction import Redactor
from memoranda.support.env_lease import EnvConflictError, EnvLease

_log = logging.getLogger(__name__)

# A write outside any session is not part of a reply, so it can wait longer for the file.
_WRITE_LOCK_TIMEOUT = 2.0

LeaseSecrets = Callable[[Collection[str]], EnvLease]


@guarded(ExternalMemory())
def attach_provider(
    home: Path,
    name: str,
    settings: ProviderSettings,
    session_id: str,
    turns: RecordedTurns,
    *,
    lease_secrets: LeaseSecrets,
    secrets: Callable[[], Collection[str]],
    toolsets: Collection[str] | None,
    **facts: Any,
) -> ExternalMemory:
    """Return the external memory of a session, by the name of its provider.

    `lease_secrets` puts the variables that the provider's schema names into the environment until the session ends;
    `secrets` are the credentials that neither the log nor the status may show.
    """
    started_at = time.monotonic()
    wait = start_timeout(home, name, settings.begin_seconds)
    manager = MemoryManager(home, settings, name=name, clean=sanitize_context, redactor=Redactor(secrets()))
    external = ExternalMemory(manager, name, max_chars=settings.recall_chars, turns=turns, toolsets=toolsets)

    def find() -> tuple[MemoryProvider, Mapping[str, Any]]:
        provider = _find_provider(home, name)
        lease = _lease_for(provider, lease_secrets)
        external.on_close(lease.release)
        provider.receive_secrets(lease.values)
        return provider, {"secrets": lease.values}

    def note_start(result: CallResult) -> None:
        late = time.monotonic() - started_at > settings.begin_seconds
        manager.was_late(late)
        remember_start(home, name, late=late)

    attaching = manager.begin(find, session_id, turns, started=note_start, **facts)
    if attaching.wait(wait - (time.monotonic() - started_at)) is None:
        _log.warning(
            "The memory provider %s was not ready within %g s; the session begins without its prompt block.",
            name,
            wait,
        )
        manager.was_late(True)
        remember_start(home, name, late=True)
    return external


@guarded(None)
def queue_writes(
    home: Path,
    name: str,
    settings: ProviderSettings,
    receipt: MemoryReceipt,
    origin: Origin,
    redact: Callable[[str], str],
    user: str,
) -> None:
    """Queue a curated write that happened outside any session; it is delivered when the provider is next started."""
    changes = memory_changes(receipt, origin, redact)
    jobs = [NewJob("memory_write", "", args, {"metadata": metadata}, key) for args, metadata, key in changes]
    outbox = Outbox(home, settings, wait=_WRITE_LOCK_TIMEOUT)
    try:
        outbox.load_spooled(name, user)
        for job in jobs:
            outbox.put(name, job.kind, job.session_id, job.args, job.facts, scope=user, key=job.key)
        outbox.release()
    except StorageError as error:
        _log.warning("A memory write for %s is spooled, because the outbox cannot be written: %s", name, error)
        # A job that did get into the outbox is recognised there by its key.
        for job in jobs:
            outbox.spool(name, user, job, leased=False)
    finally:
        outbox.close()


def _find_provider(home: Path, name: str) -> MemoryProvider:
    found = discover(home).get(name)
    if found is None:
        raise ProviderError(f"There is no memory provider {name}. 'memoranda provider list' shows all of them.")
    return load(found, home, read_settings(home, name))


def _lease_for(provider: MemoryProvider, lease_secrets: LeaseSecrets) -> EnvLease:
    try:
        return lease_secrets([field.env_var for field in fields_of(provider) if field.env_var])
    except EnvConflictError as error:
        raise ProviderError(
            f"{error}. A provider reads it from the environment of the process, which both homes share: "
            "end the sessions of the other home first, or use one process per home."
        ) from error
