"""Merges sessions, messages and items of another machine into this home.

Every rule gives the same result on all machines, in whatever order bundles arrive: of two changes the later one wins, a
deletion wins over everything, and the messages of a session are united. A text from which something was removed wins
over one without; where two machines have removed different texts from a message, the whole text is removed.

The history of an item has the versions of all machines, so the later write wins. An item that was removed as a whole,
because its name was forgotten, is removed here, too, unless it was written since.

The links between sessions follow from which sessions exist and from how each was related to its parent when it began.
If several sessions continue one, the oldest is its continuation, and the others are branches. A parent may arrive after
its child.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from memoranda.errors import SessionError
from memoranda.memory.record.transfer.row_versions import MessageVersion, Row, SyncedSession
from memoranda.support.text_matcher import MARK
from memoranda.upkeep.forgetting.sessions import delete_sessions
from memoranda.upkeep.sync.forgotten_texts import hides, note_removed_texts
from memoranda.upkeep.sync.kind import merge_state
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync.session_changes import (
    LABEL,
    SESSION,
    Fields,
    Record,
    State,
    drop_sessions,
    is_marked,
    message_digest,
    own_gid,
    read_state,
    read_states,
    split_fields,
)
from memoranda.upkeep.sync.stamps import digest_of, first_stamp

_TOGETHER = 200
_CONTINUES = "compression"
_KEPT_BESIDE_MARK = ("role", "timestamp", "external_id", "tool_call_id", "tool_name", "is_summary")


def merge_sessions(run: Run, records: Sequence[Record]) -> None:
    """Apply the sessions, deletions and messages of one part of a bundle."""
    messages: dict[str, list[Record]] = {}
    for record in records:
        if record["t"] == "message":
            messages.setdefault(record["key"], []).append(record)
    _delete(run, [record for record in records if record["t"] == "deleted"])
    heads = [record for record in records if record["t"] == "session"]
    labels: dict[str, tuple[Fields, Row]] = {}
    for record in sorted(heads, key=lambda record: (record["head"]["started_at"], record["key"])):
        _merge_head(run, record, labels)
    _set_labels(run, labels)
    numbers = {record["n"]: record["gid"] for group in messages.values() for record in group if "n" in record}
    for key, group in messages.items():
        session = run.sessions.get(key)
        if session is not None and session.session_id:
            _merge_messages(run, session.session_id, group, numbers)


def merge_items(run: Run, records: Iterable[Record]) -> None:
    """Apply the items of one part of a bundle."""
    items = run.db.synced_items
    for record in records:
        if record["t"] != "item":
            continue
        if record.get("gone"):
            if record.get("forgotten", True):
                # Not because it has expired.
                run.must_rewrite()
            if items.remove_item(record["id"], record["at"], run.number, run.sender):
                run.has_forgotten |= record.get("forgotten", True)
                run.report.count(run.report.received, "removed items")
            continue
        marked = items.marked_values(record["id"], record["item"])
        if marked:
            run.must_rewrite()
        note_removed_texts(run, marked)
        try:
            changed, forgotten = items.merge_item(record["item"], run.number, run.sender)
        except SessionError as error:
            run.report.refused.append(f"item {record['item']['key'][:60]!r}: {error}")
            continue
        run.report.count(run.report.received, "items", int(changed))
        run.has_forgotten |= forgotten


def _delete(run: Run, records: list[Record]) -> None:
    """Delete sessions; the keys say so only then, so that a run that is killed does it again."""
    gone: dict[str, SyncedSession] = {}
    rows: dict[str, Row] = {}
    for record in records:
        key, theirs = record["key"], Row(record["v"], record["base"], "", run.number)
        run.clock.see(theirs.stamp)
        ours = run.row(SESSION, key)
        if ours is None or theirs.stamp > ours.stamp:
            gone[key], rows[key] = run.sessions.get(key, SyncedSession(key, "")), theirs
    present = [each.session_id for each in gone.values() if each.session_id]
    if present:
        run.must_rewrite()
        existing = [name for name in present if run.db.synced_rows.read_session(name) is not None]
        if existing:
            run.report.notes += delete_sessions(run.db, run.root, existing).problems
        run.report.count(run.report.received, "deleted sessions", len(present))
    if gone:
        drop_sessions(run, list(gone.values()), rows)


def _merge_head(run: Run, record: Record, labels: dict[str, tuple[Fields, Row]]) -> None:
    key, head = record["key"], record["head"]
    session = run.sessions.get(key)
    rows = {
        kind: Row(stamp, base, digest_of(fields), run.number) for kind, (stamp, base, fields) in record["rows"].items()
    }
    for row in rows.values():
        run.clock.see(row.stamp)
    if session is None or not session.session_id:
        deleted = run.row(SESSION, key)
        if deleted is not None and not (SESSION in rows and rows[SESSION].stamp > deleted.stamp):
            # A deletion wins over what was added without knowledge of it.
            return
        session = _place(run, key, head, is_new=deleted is None)
        if session is None:
            return
    name = session.session_id
    found = run.db.synced_rows.read_session(name)
    here = split_fields(found[1]) if found else {}
    for kind, theirs in rows.items():
        state = record["rows"][kind][2]
        wins, row = merge_state(run, kind, name, (run.row(kind, key), here.get(kind)), (theirs, state))
        if wins and MARK in str(state):
            run.must_rewrite()
        if wins and kind == LABEL:
            labels[name] = state, row
        else:
            run.db.synced_rows.set_fields(name, state if wins else {}, run.set_row(kind, key, row))
    if head["parent"] and not session.parent:
        session = session._replace(parent=head["parent"], relation=head["relation"] or "")
        run.add_session(session)
        run.versions.put_sessions([session], {})
    run.unlinked.add(key)


def _place(run: Run, key: str, head: Record, *, is_new: bool) -> SyncedSession | None:
    """Add a session of another machine; None if it was deleted here before this home knew its key."""
    rows = run.db.synced_rows
    wanted: str = head["id"]
    is_taken = rows.is_taken(wanted)
    if is_new and not is_taken and run.db.deleted_sessions([wanted]):
        run.report.notes.append(f"{wanted} was deleted here earlier and is not restored; the other machine keeps it.")
        return None
    session = SyncedSession(key, wanted)
    if is_taken:
        # Another conversation has the same id, and the two must not be mixed.
        session = SyncedSession(key, f"{wanted}~{hashlib.sha256(key.encode()).hexdigest()[:8]}")
        run.report.notes.append(
            f"{wanted} is another conversation here; the received one is called {session.session_id}."
        )
    if not is_taken or rows.read_session(session.session_id) is None:
        rows.add_session(head, session)
        run.report.count(run.report.received, "sessions")
    run.add_session(session)
    return session


def _set_labels(run: Run, labels: dict[str, tuple[Fields, Row]]) -> None:
    """Set titles and archive marks: first where the title is free, or becomes free by that."""
    rows = run.db.synced_rows
    while labels:
        name = next((name for name, (fields, _) in labels.items() if not _holder(run, fields["title"], name)), None)
        if name is None:
            name = next(iter(labels))
            _settle_title(run, name, labels)
            continue
        fields, row = labels.pop(name)
        rows.set_fields(name, fields, run.set_row(LABEL, run.keys[name], row))


def _settle_title(run: Run, name: str, labels: dict[str, tuple[Fields, Row]]) -> None:
    """Let the older of two conversations keep the title that both have; the other one gets a longer one."""
    rows = run.db.synced_rows
    fields, row = labels[name]
    other = _holder(run, fields["title"], name)
    starts = rows.starts_of([name, other])
    younger = max(name, other, key=lambda each: (starts.get(each, 0.0), run.keys.get(each, each)))
    key = run.keys[younger]
    longer = f"{fields['title'][:80]} ({hashlib.sha256(key.encode()).hexdigest()[:4]})"
    found = rows.read_session(younger)
    state = fields if younger == name else split_fields(found[1])[LABEL] if found else {}
    changed = state | {"title": longer}
    before = row if younger == name else run.row(LABEL, key)
    renamed = run.changed_row(before, digest_of(changed))
    if younger == name:
        labels[name] = changed, renamed
    else:
        rows.set_fields(younger, changed, run.set_row(LABEL, key, renamed))


def _holder(run: Run, title: str | None, name: str) -> str:
    """Return another session with a title."""
    found = run.db.synced_rows.title_holder(title, name) if title else None
    return found[0] if found else ""


def _merge_messages(run: Run, session_id: str, records: list[Record], numbers: dict[int, str]) -> None:
    here: dict[int, State] = dict(read_states(run, session_id))
    ours = _OurMessages(run, session_id, here)
    written: list[tuple[MessageVersion, State]] = []
    gone: list[MessageVersion] = []
    kept: list[MessageVersion] = []
    for record in records:
        gid, state, stamp = record["gid"], read_state(record), record.get("v") or first_stamp(run.sender)
        run.clock.see(stamp)
        known = ours.find(gid, state) if ours else None
        received = MessageVersion(gid, 0, stamp, run.number, is_here=False)
        if known is None:
            if state is None:
                gone.append(received)
            else:
                written.append((received, state))
            continue
        if known.number not in here:
            # It was deleted here.
            kept += [] if known.gid == gid else [received]
            continue
        chosen: State | None = None
        if state is not None:
            chosen, stamp = _choose(run, (known.stamp, here[known.number]), (stamp, state))
        named = [known._replace(gid=name, stamp=stamp, run=run.number) for name in dict.fromkeys((gid, known.gid))]
        if state is None:
            gone += named
        elif chosen is not None:
            run.has_forgotten |= is_marked(chosen[0])
            written.append((named[0], chosen))
            kept += named[1:]
        elif len(named) > 1 or stamp != known.stamp:
            kept += named
    if gone or run.has_forgotten:
        run.must_rewrite()
    note_removed_texts(run, [(here[each.number][0], state[0]) for each, state in written if each.is_here])
    _write(run, session_id, written, _translator(run, session_id, numbers))
    if gone:
        run.has_forgotten = True
        run.db.synced_rows.remove_messages(session_id, gone)
    if kept:
        run.versions.put(session_id, kept)


class _OurMessages:
    """The messages of a session here, found also under another name: imported twice, or copied with the home."""

    def __init__(self, run: Run, session_id: str, here: dict[int, State]) -> None:
        stored = run.versions.messages(session_id)
        named = {each.number for each in stored}
        mine = first_stamp(run.machine)
        plain = [MessageVersion(own_gid(run, at, here[at][0]), at, mine) for at in here if at not in named]
        self._by_gid = {each.gid: each for each in (*plain, *stored)}
        self._here = here
        self._candidates: dict[tuple[Any, Any], list[MessageVersion]] = {}
        for each in self._by_gid.values():
            if each.number in here:
                fields = here[each.number][0]
                self._candidates.setdefault((fields.get("role"), fields.get("timestamp")), []).append(each)

    def __bool__(self) -> bool:
        return bool(self._by_gid)

    def find(self, gid: str, state: State | None) -> MessageVersion | None:
        """Return our message of that name, or with the same content; None if there is none."""
        if gid in self._by_gid or state is None:
            return self._by_gid.get(gid)
        for each in self._candidates.get((state[0].get("role"), state[0].get("timestamp")), ()):
            own = self._here[each.number]
            if is_marked(own[0]) or is_marked(state[0]) or message_digest(own) == message_digest(state):
                return each
        return None


def _choose(run: Run, ours: tuple[str, State], theirs: tuple[str, State]) -> tuple[State | None, str]:
    """Return the state that replaces ours (None: ours stays), and the stamp of what stays."""
    (our_stamp, here), (their_stamp, state) = ours, theirs
    later, is_later = max(our_stamp, their_stamp), their_stamp > our_stamp
    if message_digest(here) == message_digest(state):
        return None, later
    wins = is_later
    marked_here, marked_there = is_marked(here[0]), is_marked(state[0])
    if marked_here != marked_there:
        wins = marked_there
    elif marked_here and here[0].get("content") != state[0].get("content"):
        contents = here[0].get("content"), state[0].get("content")
        if hides(*contents) or hides(*contents[::-1]):
            wins = hides(*contents)
        else:
            fields = {name: state[0][name] for name in _KEPT_BESIDE_MARK if name in state[0]} | {"content": MARK}
            return (fields, state[1], max((here[2], state[2]), key=str)), run.clock.change(later)
    stamp = later if wins == is_later else run.clock.change(later)
    return (state if wins else None), stamp


def _write(
    run: Run, session_id: str, written: list[tuple[MessageVersion, State]], new_id: Callable[[int], int | None]
) -> None:
    new = [each for each in written if not each[0].is_here]
    ordered = [*new, *(each for each in written if each[0].is_here)]
    for start in range(0, len(ordered), _TOGETHER):
        states = [
            (version, fields, _original(run, copied), flags)
            for version, (fields, copied, flags) in ordered[start : start + _TOGETHER]
        ]
        run.db.synced_rows.put_messages(session_id, states, new_id)
    run.report.count(run.report.received, "messages", len(new))
    run.report.count(run.report.received, "changed messages", len(written) - len(new))


def _original(run: Run, copied: list[str] | None) -> int | None:
    owner = run.sessions.get(copied[0]) if copied is not None else None
    return run.versions.find_message(copied[1], owner.session_id) if copied and owner and owner.session_id else None


def _translator(run: Run, session_id: str, numbers: dict[int, str]) -> Callable[[int], int | None]:
    """Return what turns the number of a message on the other machine into that of the same message here."""
    find = run.versions.find_message

    def new_id(number: int) -> int | None:
        gid = numbers.get(number, f"{run.sender}:{number}")
        return find(gid, session_id) or find(gid)

    return new_id


def link_sessions(run: Run) -> None:
    """Link the sessions that have arrived, or whose relatives were deleted."""
    rows = run.db.synced_rows
    keys = {above for key in run.unlinked if (session := run.sessions.get(key)) for above in (key, session.parent)}
    run.unlinked.clear()
    if not keys:
        return
    related: dict[str, list[SyncedSession]] = {}
    for session in run.sessions.values():
        if session.session_id and session.parent in keys:
            related.setdefault(session.parent, []).append(session)
    for key, children in sorted(related.items()):
        above = run.sessions.get(key)
        if above is None or not above.session_id:
            continue
        starts = rows.starts_of([above.session_id, *(child.session_id for child in children)])
        present = [child for child in children if child.session_id in starts]
        if above.session_id not in starts or not present:
            continue
        present.sort(key=lambda child: (starts[child.session_id], child.key))
        first = next((child.session_id for child in present if child.relation == _CONTINUES), None)
        relations = {
            child.session_id: "branch" if child.relation == _CONTINUES and child.session_id != first else child.relation
            for child in present
        }
        rows.link_children(above.session_id, first, relations)
