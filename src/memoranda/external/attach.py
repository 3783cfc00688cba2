"""Attaches the configured providers to a session: finds, loads and starts them in the background, all at once.

The session waits a short time for them, because their prompt blocks become part of the frozen prompt. If a provider
cannot be loaded, the session continues without it and the log says why; turns are marked in the record all the same,
and are delivered once the provider works again.

A session waits only briefly for a provider that was late the last time. Whether it was late is remembered in this
process, and across processes in the provider's status file. A local provider is late only because the machine is busy,
so a session waits for it as long as its start may take, every time.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from memoranda.errors import ProviderError
from memoranda.external.external_memory import ExternalMemory, MemoryChange, guarded
from memoranda.external.guarded_call import CallResult
from memoranda.external.health import read_status
from memoranda.external.loading.discovery import find_by_name, is_local
from memoranda.external.loading.loader import load
from memoranda.external.loading.setup import fields_of, read_settings
from memoranda.external.manager import LOCK_TIMEOUT, MemoryManager
from memoranda.external.outbox.outbox import Outbox
from memoranda.external.outbox.record_feed import OpenRecord
from memoranda.external.outbox.recorded_turns import PRIMARY, TurnMarks
from memoranda.external.provider import MemoryProvider, TextEmbedder, server_facts
from memoranda.external.provider_group import ProviderGroup
from memoranda.external.settings import ProviderSettings
from memoranda.memory.record.store import SessionStore
from memoranda.safety.fence import sanitize_context
from memoranda.safety.redaction import Redactor
from memoranda.storage.files.env_lease import EnvConflictError, EnvLease
from memoranda.support.lazy_dataclass import dataclass

_log = logging.getLogger(__name__)

# Enough for a provider that works again, and hardly noticeable with one that does not.
_TIMEOUT_AFTER_LATE_START = 0.2
_lock = threading.Lock()
_late: dict[tuple[Path, str], bool] = {}

# A write outside any session is not part of a reply, so it can wait longer for the file.
_WRITE_LOCK_TIMEOUT = 2.0

LeaseSecrets = Callable[[Collection[str]], EnvLease]


@dataclass(frozen=True, slots=True)
class SessionStart:
    """What a session starts its providers with.

    `record` returns the session store, if there is one, and `open_record` creates it if there is none. `lease_secrets`
    puts the variables that a provider's schema names into the environment until the session ends; `secrets` are the
    credentials that neither the log nor the status may show. `embedder` compares texts by meaning, if the home has a
    local sentence encoder. `server_url` names the server that has the outbox, if it is not a file of the home.
    """

    session_id: str
    record: Callable[[], SessionStore | None]
    open_record: OpenRecord
    lease_secrets: LeaseSecrets
    secrets: Callable[[], Collection[str]]
    toolsets: Collection[str] | None
    facts: Mapping[str, Any]
    embedder: TextEmbedder | None = None
    server_url: str = ""


@guarded(ExternalMemory())
def attach_providers(
    home: Path, names: Sequence[str], settings: ProviderSettings, start: SessionStart
) -> ExternalMemory:
    """Return the external memory of a session, by the names of its providers."""
    redactor = Redactor(start.secrets())
    managers = [
        MemoryManager(
            home,
            settings,
            outbox=Outbox(home, settings, server_url=start.server_url, wait=LOCK_TIMEOUT, record=start.open_record),
            name=name,
            clean=sanitize_context,
            redactor=redactor,
        )
        for name in names
    ]
    context = str(start.facts.get("agent_context") or PRIMARY)
    turns = TurnMarks(start.record, names, context)
    external = ExternalMemory(
        ProviderGroup(managers), max_chars=settings.recall_chars, turns=turns, toolsets=start.toolsets
    )
    waits = [_begin(manager, start, external) for manager in managers]
    for wait in waits:
        wait()
    return external


def _begin(manager: MemoryManager, start: SessionStart, external: ExternalMemory) -> Callable[[], None]:
    """Start a provider in the background; returns a function that waits for it as long as a session may wait."""
    started_at = time.monotonic()
    home, name, limit = manager.home, manager.name, manager.settings.begin_seconds
    if is_local(name):
        timeout = limit = max(limit, manager.settings.start_seconds)
    else:
        timeout = _start_timeout(home, name, limit)

    def find() -> tuple[MemoryProvider, Mapping[str, Any]]:
        provider = _find_provider(home, name)
        lease = _lease_for(provider, start.lease_secrets)
        external.on_close(lease.release)
        provider.receive_secrets(lease.values)
        given = {} if start.embedder is None else {"embedder": start.embedder}
        return provider, {"secrets": lease.values, **given, **server_facts(provider, start.server_url)}

    def note_start(result: CallResult) -> None:
        note_lateness(time.monotonic() - started_at > limit)

    def note_lateness(late: bool) -> None:
        manager.was_late(late)
        _remember_start(home, name, late=late)

    attaching = manager.begin(find, start.session_id, started=note_start, **start.facts)

    def wait() -> None:
        if attaching.wait(timeout - (time.monotonic() - started_at)) is None:
            words = "The memory provider %s was not ready within %g s; the session begins without its prompt block."
            _log.warning(words, name, timeout)
            note_lateness(True)

    return wait


@guarded(None)
def queue_writes(
    home: Path,
    name: str,
    settings: ProviderSettings,
    changes: Sequence[MemoryChange],
    user: str,
    open_record: OpenRecord,
    server_url: str = "",
) -> None:
    """Record a curated write that happened outside any session; it is delivered when the provider is next started."""
    with closing(Outbox(home, settings, server_url=server_url, wait=_WRITE_LOCK_TIMEOUT, record=open_record)) as outbox:
        for args, metadata, key in changes:
            facts = {"metadata": metadata, "agent_context": PRIMARY}
            outbox.put(name, "memory_write", "", args, facts, scope=user, key=key, leased=False)


def _find_provider(home: Path, name: str) -> MemoryProvider:
    found = find_by_name(home, name)
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


def _start_timeout(home: Path, name: str, timeout: float) -> float:
    """Seconds to wait for a provider: `timeout`, or less if it was late the last time."""
    with _lock:
        late = _late.get((home, name))
    if late is None:
        try:
            late = read_status(home, name).late_start
        except ProviderError as error:
            _log.warning("%s", error)
            late = False
    return min(timeout, _TIMEOUT_AFTER_LATE_START) if late else timeout


def _remember_start(home: Path, name: str, *, late: bool) -> None:
    """Remember whether a provider was ready in time."""
    with _lock:
        _late[home, name] = late
