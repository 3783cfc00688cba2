"""`Memory.status`: how full and old memory is, what awaits a decision, and what was saved this week."""

import time
from collections import Counter
from pathlib import Path
from typing import Any

from memoranda.api.curate import curate
from memoranda.api.services import HomeServices
from memoranda.errors import StorageError
from memoranda.memory.curated import change_history
from memoranda.memory.curated.operations import summarise_edits
from memoranda.memory.curated.settings import Target, file_name
from memoranda.memory.curated.store import MemoryStore
from memoranda.search.request import show_time
from memoranda.support.origin import utc_time
from memoranda.support.tool import JsonObject

_DAY = 86_400.0
_WEEK = 7 * _DAY
_MAX_SAVED = 5
_MAX_SESSIONS = 10_000


def memory_status(
    services: HomeServices, store: MemoryStore, user: str | None, *, directory: Path | None = None
) -> JsonObject:
    """What one opens in the morning; the curator looks for files that are gone in `directory`, if there is one."""
    proposed, files = 0, [_file(store, target) for target in store.storage.targets()]
    # The curator refuses a file that it cannot read, which must not hide the others.
    if services.config.curate.mode != "off" and all("error" not in file for file in files):
        proposed = len(curate(services, store, user, apply=False, directory=directory, model=False)["changes"])
    return {
        "memory": files,
        "notes": len(store.notes.all()) if store.notes and services.has_record else 0,
        "waiting": {"proposals": len(store.proposals.all()), "curator": proposed},
        "week": _saved_this_week(store) | _conversations(services, user),
    }


def _file(store: MemoryStore, target: Target) -> dict[str, Any]:
    """How full and how old one file is. Where the file is stays out of it: a service does not say that."""
    try:
        view, facts = store.view(target), store.facts(target)
    except StorageError:
        return {"target": target, "file": file_name(target), "error": "cannot be read: 'memoranda doctor' says why"}
    oldest = min((each.checked_at for each in facts), default=None)
    return {
        "target": target,
        "file": file_name(target),
        "used": view.used,
        "limit": view.limit,
        "entries": len(facts),
        "expired": sum(each.expired for each in facts),
        "oldest_days": None if oldest is None else max(0, int((time.time() - oldest) / _DAY)),
    }


def _saved_this_week(store: MemoryStore) -> dict[str, Any]:
    """How many changes of entries a week had, what they did, and the latest entries of it that are still there."""
    since = utc_time(time.time() - _WEEK)
    recent = [change for change in change_history.log(store) if change.at >= since and change.edits]
    sides = ((edit.before, edit.after) for change in recent for edit in change.edits)
    summary = summarise_edits(sides, sum(len(change.to_notes) for change in recent))
    written = [
        (change.target, edit.after) for change in reversed(recent) for edit in change.edits if edit.after is not None
    ]
    present = {(target, text) for target in store.storage.targets() for text in _texts(store, target)}
    texts = [store.visible_text(*each) for each in dict.fromkeys(written) if each in present]
    return {"saved": len(recent), "summary": summary, "latest": texts[:_MAX_SAVED]}


def _texts(store: MemoryStore, target: Target) -> list[str]:
    """The entries of a target; none if it cannot be read."""
    try:
        return [entry.text for entry in store.view(target).entries]
    except StorageError:
        return []


def _conversations(services: HomeServices, user: str | None) -> dict[str, Any]:
    """The conversations of a week by agent, and when the last one was active."""
    if not services.has_record:
        return {"conversations": 0, "agents": {}, "last_active": None}
    rows = services.sessions_for(user).list_sessions_rich(
        limit=_MAX_SESSIONS, since=time.time() - _WEEK, exclude_sources=services.config.recall.hidden_sources
    )
    last = max((row["last_active"] for row in rows), default=None)
    agents = dict(Counter(row["source"] for row in rows).most_common())
    return {"conversations": len(rows), "agents": agents, "last_active": show_time(last)}
