"""Lets the provider that is configured join a session: found, loaded and started in the background.

The session waits for it a little, for the sake of its words in the prompt. If it cannot be loaded, the session goes on
without it, and the log says why; turns are marked in the record all the same, and it hears of them once it is mended.
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

# A write outside any session is not part of a reply, and can wait a little longer for the file.
_WAIT_FOR_WRITES = 2.0

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
    """External memory for a session, by the name of its provider.

    `lend` puts the variables that a provider names where it looks for them, until the session is over; `secrets` are
    the credentials that nothing in the log or the status may show.
    """
    began = time.monotonic()
    wait = start_timeout(home, name, settings.begin_seconds)
    manager = MemoryManager(home, settings, name=name, clean=sanitize_context, redactor=Redactor(secrets()))
    external = ExternalMemory(manager, name, most=settings.recall_chars, turns=turns, toolsets=toolsets)

    def find() -> tuple[MemoryProvider, Mapping[str, Any]]:
        provider = _find(home, name)
        loan = _borrow(lease_secrets, provider)
        external.on_close(loan.release)
        return provider, {"secrets": loan.values}

    def started(answer: CallResult) -> None:
        late = time.monotonic() - began > settings.begin_seconds
        manager.was_late(late)
        remember_start(home, name, late=late)

    beginning = manager.begin(find, session_id, turns, started=started, **facts)
    if beginning.wait(wait - (time.monotonic() - began)) is None:
        _log.warning(
            "The memory provider %s was not ready within %g s; the session begins without its words in the prompt.",
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
    shown: Callable[[str], str],
    user: str,
) -> None:
    """What was written outside any session waits in the outbox until the provider is next started."""
    changes = memory_changes(receipt, origin, shown)
    jobs = [NewJob("memory_write", "", args, {"metadata": metadata}, key) for args, metadata, key in changes]
    outbox = Outbox(home, settings, wait=_WAIT_FOR_WRITES)
    try:
        outbox.load_spooled(name, user)
        for job in jobs:
            outbox.put(name, job.kind, job.session_id, job.args, job.facts, scope=user, key=job.key)
        outbox.release()
    except StorageError as error:
        _log.warning("What was written is put aside for %s: %s", name, error)
        # What is in the outbox already is known there by its key.
        for job in jobs:
            outbox.spool(name, user, job, held=False)
    finally:
        outbox.close()


def _find(home: Path, name: str) -> MemoryProvider:
    found = discover(home).get(name)
    if found is None:
        raise ProviderError(f"there is no memory provider {name}; 'memoranda provider list' shows those there are")
    return load(found, home, read_settings(home, name))


def _borrow(lease_secrets: LeaseSecrets, provider: MemoryProvider) -> EnvLease:
    try:
        return lease_secrets([field.env_var for field in fields_of(provider) if field.env_var])
    except EnvConflictError as error:
        raise ProviderError(
            f"{error}. A provider looks for it in the environment of the process, which is the same for both homes: "
            "end the sessions of the other home first, or use a process for each"
        ) from error
