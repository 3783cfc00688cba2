"""Today: the latest conversations of each agent, what was remembered, what awaits approval, and what it cost."""

import time
from datetime import datetime, timedelta
from typing import Any

from memoranda.memory.curated.store import MemoryStore
from memoranda.service.viewer.conversation_lists import ConversationRow, find_recorded
from memoranda.service.viewer.page import Page, PageRequest, View
from memoranda.service.viewer.pages.memory_history import read_history

_MAX_CONVERSATIONS = 40
_MAX_PER_AGENT = 5
_MAX_CHANGES = 6
_MAX_EDITS = 2
_DAY = 86_400.0


def show(request: PageRequest) -> View:
    """The page."""
    memory = request.memory
    midnight = datetime.now().replace(hour=0, minute=0, second=0, microsecond=0)
    week_ago = (midnight - timedelta(days=6)).timestamp()
    rows = _latest(request)
    ledger = memory.services.ledger
    changes = _remembered(memory.curated)
    data = {
        "agents": _by_agent(rows),
        "active_today": _count_since(request, midnight.timestamp()),
        "changes": changes,
        "pending": len(memory.curated.proposals.all()),
        "cost_today": ledger.total(since=midnight.timestamp(), user=memory.user),
        "cost_week": ledger.total(since=week_ago, user=memory.user),
    }
    recorded = find_recorded(request, (change["session"] for change in changes))
    return View("today.html", "Today", data, recorded=recorded)


def _latest(request: PageRequest) -> list[ConversationRow]:
    if not request.has_record:
        return []
    memory = request.memory
    found = memory.sessions.list_sessions_rich(
        limit=_MAX_CONVERSATIONS,
        exclude_sources=memory.config.recall.hidden_sources,
        order_by_last_active=True,
    )
    return list(map(ConversationRow.of, found))


def _count_since(request: PageRequest, since: float) -> int:
    if not request.has_record:
        return 0
    memory = request.memory
    # Another machine's clock may be ahead.
    until = time.time() + _DAY
    return len(memory.sessions.listing.last_activity(since, until, memory.config.recall.hidden_sources))


def _by_agent(rows: list[ConversationRow]) -> list[dict[str, Any]]:
    """The agents and the latest conversations of each."""
    agents: dict[str, list[ConversationRow]] = {}
    for row in rows:
        agents.setdefault(row.agent, []).append(row)
    return [{"name": name, "conversations": found[:_MAX_PER_AGENT]} for name, found in agents.items()]


def _remembered(store: MemoryStore) -> list[dict[str, Any]]:
    """The latest changes of curated memory, with the first entries that each changed."""
    rows = [row for row in read_history(store).changes if row.edits]
    return [
        {
            "at": _timestamp(row.change.at),
            "file": row.file,
            "actor": row.change.actor,
            "session": row.change.session,
            "undone": row.undone,
            "edits": row.edits[:_MAX_EDITS],
        }
        for row in rows[:_MAX_CHANGES]
    ]


def _timestamp(at: str) -> float | None:
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return None


PAGE = Page("today", "/", show, label="Today")
