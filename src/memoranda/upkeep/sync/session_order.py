"""The order of messages in a session, and the links between sessions, that two machines made at the same time.

Each message says after which one it was added, and when. From that all machines derive the same order: of several
messages that were added after the same one, the oldest comes first, with all that follows it. The record is ordered by
ids, so a machine whose own messages come later gives them new ids.

The links follow from which sessions exist and from how each was related to its parent when it began, so all machines
have the same. If several sessions continue one, the oldest is its continuation, and the others are branches. A parent
may arrive after its child.
"""

import json
from collections.abc import Mapping
from contextlib import closing

from memoranda.errors import SessionBusyError
from memoranda.external.outbox.schema import outbox_database, read_positions
from memoranda.memory.record.message_rows import DONE
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.transfer.row_versions import MessageVersion, Place
from memoranda.upkeep.sync.run import Run

_UNORDERED = "unordered"


def note_unordered(run: Run) -> None:
    """Make durable which sessions have received messages, until `order_sessions` has ordered them."""
    run.tables.set_value(_UNORDERED, json.dumps(sorted({*run.unordered, *json.loads(_read(run))})))


def order_sessions(run: Run) -> None:
    """Bring the messages of sessions that have received some into the common order; busy sessions wait for a run."""
    waiting = []
    for session_id in json.loads(_read(run)):
        if not _order_session(run, session_id):
            waiting.append(session_id)
    run.unordered.clear()
    run.tables.set_value(_UNORDERED, json.dumps(waiting))


def common_order(places: Mapping[str, Place]) -> list[str]:
    """The gids in the order that all machines derive from the places of the messages."""
    following: dict[str, list[tuple[float, str]]] = {}
    for gid, (before, at) in places.items():
        following.setdefault(before if before in places else "", []).append((at, gid))
    found: dict[str, None] = {}
    waiting = [gid for _, gid in sorted(following.get("", ()), reverse=True)]
    while waiting:
        gid = waiting.pop()
        if gid not in found:
            found[gid] = None
            waiting += [later for _, later in sorted(following.get(gid, ()), reverse=True)]
    # A bundle that names messages in a circle must not lose them.
    return [*found, *sorted(gid for gid in places if gid not in found)]


def _read(run: Run) -> str:
    return run.tables.value(_UNORDERED, "[]")


def _order_session(run: Run, session_id: str) -> bool:
    """Order one session; False if that has to wait."""
    placed = {each.gid: each for each in run.versions.messages(session_id)}
    present = [each.number for each in placed.values() if each.is_here]
    if len(set(present)) < len(present):
        # A message with two names: after a machine has lost its state, both orders stay.
        return True
    order = common_order({gid: each.place for gid, each in placed.items()})
    wanted = [placed[gid] for gid in order if placed[gid].is_here]
    first = next(
        (at for at, (one, other) in enumerate(zip(wanted, sorted(present), strict=True)) if one.number != other), None
    )
    return first is None or _move(run, session_id, wanted[first:])


def _move(run: Run, session_id: str, moved: list[MessageVersion]) -> bool:
    """Give messages new ids, unless a turn is being recorded or a provider has not received one yet."""
    numbers = {each.number for each in moved}
    rows = run.db.synced_rows.read_messages(session_id, min(numbers))
    completed = [number for number, fields, _, _ in rows if number in numbers and DONE in fields]
    if not _can_move(run, session_id, completed):
        return False
    try:
        lock = run.db.lock_turn(session_id, 0.0)
    except SessionBusyError:
        return False
    try:
        run.db.synced_rows.move_messages(
            session_id, [each if each.is_stored else each._replace(run=run.number) for each in moved]
        )
    finally:
        lock.release()
    return True


def _can_move(run: Run, session_id: str, completed: list[int]) -> bool:
    """Whether all providers have received what the session is to tell them, which names messages by their ids."""
    if any(
        row.session_id == session_id for row in run.db.scoped(Scope.everyone()).feed.notifications.select(None, None)
    ):
        return False
    outbox = outbox_database(run.root)
    if not completed or not outbox.exists():
        return True
    with closing(outbox), outbox.open().reading() as connection:
        waiting = connection.execute("SELECT 1 FROM jobs WHERE session_id = ? LIMIT 1", (session_id,)).fetchone()
        positions = read_positions(connection)
    return waiting is None and all(position.row >= max(completed) for _, _, position in positions)


_CONTINUES = "compression"


def link_sessions(run: Run) -> None:
    """Link the sessions that have arrived, or whose relatives were deleted."""
    rows, versions = run.db.synced_rows, run.versions
    parents: set[str] = set()
    for session_id in run.unlinked - {""}:
        parents.add(session_id)
        key = versions.session(session_id).parent
        parents.add(versions.session_of(key) or "" if key else "")
    run.unlinked.clear()
    for parent in sorted(parents - {""}):
        children = versions.children_of(versions.keys_of(parent))
        starts = rows.starts_of([parent, *children]) if children else {}
        if parent not in starts:
            continue
        present = [(starts[child], versions.keys_of(child)[:1], child) for child in children if child in starts]
        ordered = [child for _, _, child in sorted(present)]
        continuation = next((child for child in ordered if children[child] == _CONTINUES), None)
        relations = {
            child: "branch" if children[child] == _CONTINUES and child != continuation else children[child]
            for child in ordered
        }
        if relations:
            rows.link_children(parent, continuation, relations)
