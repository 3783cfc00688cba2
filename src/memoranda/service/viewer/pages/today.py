"""Today: one stream by time of what was said, saved, recalled and imported, and of what awaits approval.

Each kind of event is read only as far back as the page shows it. The actions of other pages are at hand: approve,
reject, undo and edit. This and other pages follow what agents do while they are open (`static/live.js`).
"""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from memoranda.errors import StorageError
from memoranda.importers.state.log import LoggedImport
from memoranda.importers.undo import ImportHistory
from memoranda.memory.curated.facts import seconds_of
from memoranda.memory.curated.memory_file import handle
from memoranda.memory.curated.settings import Target
from memoranda.memory.curated.store import MemoryStore
from memoranda.search.recall_log import hook_calls_path, recalls_path
from memoranda.service.viewer.conversation_lists import ConversationRow, chip_group, find_links, find_recorded
from memoranda.service.viewer.page import Download, Page, PageRequest, View, page_url
from memoranda.service.viewer.pages.approvals import describe_proposals
from memoranda.service.viewer.pages.memory_history import read_latest
from memoranda.service.viewer.pages.recall_log import read_given, redactor_of
from memoranda.support.canonical_text import digest
from memoranda.support.lazy_dataclass import dataclass

PATH = "/"
PAGE_SIZE = 30
_MAX_EDITS = 3
_MAX_NOTES = 2_000
_MAX_PROPOSALS = 5
_DAY = 86_400.0
_KINDS = (
    ("conversation", "conversations"),
    ("saved", "saved"),
    ("awaits", "awaiting approval"),
    ("recalled", "recalled"),
    ("imported", "imported"),
)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened: its kind, which the template knows, a name for its element, and what it shows."""

    kind: str
    name: str
    at: float
    data: Any

    @property
    def order(self) -> int:
        """Milliseconds, as addresses have them."""
        return int(self.at * 1000)


def show(request: PageRequest) -> View:
    """The page; `before` is the time in milliseconds at which it begins, and `kind` chooses one kind."""
    memory, kind, before = request.memory, request.query.get("kind", ""), _read_before(request)
    readers = {name: read for name, read in _READERS.items() if kind in ("", name)}
    found = sorted(
        (event for read in readers.values() for event in read(request, before) if event.at < before),
        key=lambda event: (-event.order, event.name),
    )
    shown = _cut(found)
    ledger = memory.services.ledger
    midnight = datetime.now().replace(hour=0, minute=0, second=0, microsecond=0)
    week_ago = (midnight - timedelta(days=6)).timestamp()
    asked = {"kind": kind} if kind else {}
    data = {
        "days": _by_day(shown),
        "kinds": chip_group("Show", "kind", _KINDS, path=PATH, query=asked),
        "kind": kind,
        "is_first": "before" not in request.query,
        "earlier_url": page_url(PATH, **asked, before=shown[-1].order) if len(found) > len(shown) else "",
        "can_write": request.may("curate"),
        "can_undo_imports": request.may("admin"),
        "active_today": _count_since(request, midnight.timestamp()),
        "pending": len(memory.curated.proposals.all()),
        "cost_today": ledger.total(since=midnight.timestamp(), user=memory.user),
        "cost_week": ledger.total(since=week_ago, user=memory.user),
        "links": find_links(request, (name for event in shown for name in _named(event))),
    }
    recorded = find_recorded(request, (event.data["session"] for event in shown if event.kind in ("saved", "awaits")))
    return View("today.html", "Today", data, recorded=recorded)


def _read_before(request: PageRequest) -> float:
    # Another machine's clock may be ahead.
    latest = int((time.time() + _DAY) * 1000)
    return request.number("before", latest, largest=10**15) / 1000


def _cut(found: list[Event]) -> list[Event]:
    """The events of one page; those of the same millisecond as its last one are not divided."""
    if len(found) <= PAGE_SIZE:
        return found
    last = found[PAGE_SIZE - 1].order
    return [event for event in found if event.order >= last]


def _by_day(events: list[Event]) -> list[dict[str, Any]]:
    days = groupby(events, lambda event: datetime.fromtimestamp(event.at).date())
    return [{"timestamp": group[0].at, "events": group} for group in (list(events) for _, events in days)]


def _named(event: Event) -> Iterator[tuple[str, int]]:
    """The conversations and messages to which an event links."""
    if event.kind == "recalled":
        yield event.data.session_id, 0
        for given in event.data.given:
            yield given["session_id"], given["message_id"]


def _count_since(request: PageRequest, since: float) -> int:
    if not request.has_record:
        return 0
    memory = request.memory
    return len(memory.sessions.listing.last_activity(since, time.time() + _DAY, memory.config.recall.hidden_sources))


def _conversations(request: PageRequest, before: float) -> Iterator[Event]:
    if not request.has_record:
        return
    memory = request.memory
    for row in memory.sessions.list_sessions_rich(
        limit=PAGE_SIZE + 1,
        exclude_sources=memory.config.recall.hidden_sources,
        order_by_last_active=True,
        until=before,
    ):
        conversation = ConversationRow.of(row)
        if conversation.last_active is not None:
            yield Event("conversation", conversation.id, conversation.last_active, conversation)


def _saved(request: PageRequest, before: float) -> Iterator[Event]:
    """Changes of curated memory, notes, and skills."""
    store = request.memory.curated
    current = _entry_ids(store)
    for at, row in read_latest(store, before, PAGE_SIZE + 1):
        change = row.change
        ids = (current.get((change.target, edit.after or "")) for edit in change.edits)
        yield Event(
            "saved",
            f"change-{change.number}",
            at,
            {
                "row": row,
                "edits": row.edits[:_MAX_EDITS],
                "session": change.session,
                # The page that edits the entry, if it is one and still there.
                "entry": next((each for each in ids if each), "") if len(change.edits) == 1 else "",
            },
        )
    if store.notes is not None and request.has_record:
        # The first page needs only the latest.
        for note in store.notes.all(limit=PAGE_SIZE + 1 if before > time.time() else _MAX_NOTES):
            shown = {"note": note, "text": store.visible_text(note.owner, note.text), "id": digest(note.text)}
            yield Event("note", handle(note.text), seconds_of(note.at) or 0.0, shown)
    for skill in request.memory.services.skills_for(request.user).catalogue().skills:
        yield Event("skill", f"skill-{skill.name}", skill.file.stat().st_mtime, skill)


def _entry_ids(store: MemoryStore) -> dict[tuple[Target, str], str]:
    """The entries that there are now, by target and text."""
    found: dict[tuple[Target, str], str] = {}
    for target in store.storage.targets():
        try:
            found |= {(target, entry.text): digest(entry.text) for entry in store.view(target).entries}
        except StorageError:
            # The page Memory says that the file cannot be read.
            continue
    return found


def _awaits(request: PageRequest, before: float) -> Iterator[Event]:
    store = request.memory.curated
    waiting = [proposal for proposal in store.proposals.all() if (seconds_of(proposal.at) or 0.0) < before]
    # A review may propose dozens at once, which must not hide everything else; the figure above has all of them.
    limit = PAGE_SIZE + 1 if request.query.get("kind") == "awaits" else _MAX_PROPOSALS
    for row in describe_proposals(store, waiting[-limit:]):
        proposal = row["proposal"]
        at = seconds_of(proposal.at) or 0.0
        yield Event("awaits", f"proposal-{proposal.id}", at, {"row": row, "session": proposal.session})


def _recalled(request: PageRequest, before: float) -> Iterator[Event]:
    given = read_given(request.memory.home.root, request.user, redactor_of(request), before, PAGE_SIZE + 1)
    for recalled in given:
        yield Event("recalled", f"recall-{recalled.call_id}", recalled.at, recalled)


def _imported(request: PageRequest, before: float) -> Iterator[Event]:
    if not request.has_record:
        return
    with closing(ImportHistory(request.memory.home.root, request.memory.sessions)) as history:
        imports = [each for each in history.imports() if each.began < before and not _is_empty(each)]
    for each in imports[: PAGE_SIZE + 1]:
        yield Event("imported", f"import-{each.id}", each.began, each)


def _is_empty(logged: LoggedImport) -> bool:
    return not (logged.sessions or logged.proposals or logged.items or logged.states)


_READERS: dict[str, Callable[[PageRequest, float], Iterator[Event]]] = {
    "conversation": _conversations,
    "saved": _saved,
    "awaits": _awaits,
    "recalled": _recalled,
    "imported": _imported,
}
PAGE = Page("today", PATH, show, label="Today")


def show_version(request: PageRequest) -> Download:
    """A text that is another one after the user's conversations, memory, notes, proposals or recalls have changed.

    Open pages ask for it every second, so it reads one row of each and no file as a whole.
    """
    memory, store = request.memory, request.memory.curated
    last = store.journal.last()
    seen: list[object] = [last and last.number, store.proposals.texts.names()]
    for path in (hook_calls_path(memory.home.root), recalls_path(memory.home.root, request.user)):
        with suppress(OSError):
            seen.append(path.stat().st_mtime_ns)
    if request.has_record:
        latest = memory.sessions.list_sessions_rich(limit=1, include_children=True, order_by_last_active=True)
        seen += [(row["id"], row["last_active"], row["message_count"], row["ended_at"]) for row in latest]
        seen += [(each.item.key, each.item.updated_at) for each in memory.items.search((), None, limit=1)]
    return Download("version.txt", "text/plain", iter([digest(repr(seen)).encode()]))


VERSION = Page("version", "/version", show_version, download=True)
