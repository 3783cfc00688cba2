"""Today: the latest conversations of each agent, what was remembered, what awaits approval, and what it cost."""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from memoranda.memory.curated.store import MemoryStore
from memoranda.models.spending.budget import Total
from memoranda.service.viewer.conversation_links import find_recorded
from memoranda.service.viewer.conversation_rows import ConversationRow
from memoranda.service.viewer.curated.history import read_history
from memoranda.service.viewer.page import Page, PageRequest, View
from memoranda.service.viewer.text_diff import DiffPart

_MAX_CONVERSATIONS = 40
_MAX_PER_AGENT = 5
_MAX_CHANGES = 6
_MAX_EDITS = 2
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class AgentView:
    """One agent and its latest conversations."""

    name: str
    conversations: tuple[ConversationRow, ...]


@dataclass(frozen=True, slots=True)
class RememberedView:
    """One change of curated memory, with the first entries that it changed."""

    at: float | None
    file: str
    actor: str
    session: str
    undone: bool
    edits: tuple[tuple[DiffPart, ...], ...]


@dataclass(frozen=True, slots=True)
class TodayView:
    """What the page shows."""

    agents: tuple[AgentView, ...]
    active_today: int
    changes: tuple[RememberedView, ...]
    pending: int
    cost_today: Total
    cost_week: Total


def show(request: PageRequest) -> View:
    """The page."""
    memory = request.memory
    midnight = datetime.now().replace(hour=0, minute=0, second=0, microsecond=0)
    week_ago = (midnight - timedelta(days=6)).timestamp()
    rows = _latest(request)
    ledger = memory.services.ledger
    data = TodayView(
        agents=_by_agent(rows),
        active_today=_count_since(request, midnight.timestamp()),
        changes=_remembered(memory.curated),
        pending=len(memory.curated.proposals.all()),
        cost_today=ledger.total(since=midnight.timestamp(), user=memory.user),
        cost_week=ledger.total(since=week_ago, user=memory.user),
    )
    return View("today.html", "Today", data, recorded=find_recorded(request, (each.session for each in data.changes)))


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


def _by_agent(rows: list[ConversationRow]) -> tuple[AgentView, ...]:
    agents: dict[str, list[ConversationRow]] = {}
    for row in rows:
        agents.setdefault(row.agent, []).append(row)
    return tuple(AgentView(name, tuple(found[:_MAX_PER_AGENT])) for name, found in agents.items())


def _remembered(store: MemoryStore) -> tuple[RememberedView, ...]:
    rows = [row for row in read_history(store).changes if row.edits]
    return tuple(
        RememberedView(
            _timestamp(row.change.at),
            row.file,
            row.change.actor,
            row.change.session,
            row.undone,
            row.edits[:_MAX_EDITS],
        )
        for row in rows[:_MAX_CHANGES]
    )


def _timestamp(at: str) -> float | None:
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return None


PAGE = Page("today", "/", show, label="Today")
