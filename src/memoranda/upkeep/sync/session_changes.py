"""Finds what changed in the sessions and items of this home since the last run, and writes it as records.

A session travels as two rows: its label, which a person sets (title and archive mark), and all other columns. The later
row wins as a whole; messages are united.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from memoranda.memory.record.items import encode_namespace, identify
from memoranda.memory.record.message_rows import strip_references
from memoranda.memory.record.transfer.items import ITEM
from memoranda.memory.record.transfer.row_versions import MessageVersion, Row, SyncedSession
from memoranda.memory.record.transfer.synced_rows import NEW_FLAGS
from memoranda.support.text_matcher import MARK
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync.stamps import digest_of

SESSION, LABEL = "session", "label"
LABEL_FIELDS = ("title", "archived")
_NO_LABEL = {"title": None, "archived": 0}
_TOGETHER = 100

Record = dict[str, Any]
Fields = dict[str, Any]
State = tuple[Fields, list[str] | None, list[int | None]]
"""The fields of a message, the key and gid of the message that it copies, and its flags."""


class Since(NamedTuple):
    """What a bundle has already: everything up to a run and a message; `others` are as in `Run.sends`."""

    run: int
    message: int
    others: frozenset[str] | None


def split_fields(fields: Fields) -> dict[str, Fields]:
    """Return the fields of a session as its rows."""
    label = {name: fields[name] for name in LABEL_FIELDS}
    rest = {name: value for name, value in fields.items() if name not in LABEL_FIELDS}
    return {SESSION: rest, LABEL: label}


def collect_sessions(run: Run) -> None:
    """Give a stamp to every session and message that is different, and note what is new or was deleted."""
    rows, versions = run.db.synced_rows, run.versions
    last_message = run.db.last_message_id()
    current = rows.fingerprints()
    if gone := [each for each in run.sessions.values() if each.session_id and each.session_id not in current]:
        run.must_rewrite()
        drop_sessions(run, gone, {each.key: run.changed_row(run.row(SESSION, each.key), "") for each in gone})
    touched, change = rows.changed_since(versions.position(), int(run.tables.value("changes", "0")))
    known = {each.session_id: each.fingerprint for each in run.sessions.values()}
    changed = [name for name, fingerprint in current.items() if name in touched or known.get(name) != fingerprint]
    for start in range(0, len(changed), _TOGETHER):
        chosen = changed[start : start + _TOGETHER]
        with versions.one_view():
            found = [_collect_session(run, name, current[name]) for name in chosen]
        new = {name: row for _, named in found for name, row in named.items()}
        versions.put_sessions([session for session, _ in found if session], new)
        run.progress(f"{start + len(chosen):,} of {len(changed):,} changed sessions read")
    for session_id in versions.unsettled():
        states = dict(read_states(run, session_id))
        messages = [each for each in versions.messages(session_id) if each.is_changed]
        if any(not each.is_here or is_marked(states[each.number][0]) for each in messages):
            run.must_rewrite()
    versions.settle(run.clock.change(), run.number, last_message)
    run.tables.set_value("changes", str(change))


def drop_sessions(run: Run, sessions: list[SyncedSession], rows: dict[str, Row]) -> None:
    """Note that sessions were deleted, with the stamps of that by their keys."""
    new: dict[str, Row] = {}
    for session in sessions:
        run.unlinked.add(session.parent)
        run.keys.pop(session.session_id, None)
        run.add_session(SyncedSession(session.key, ""))
        new |= run.set_row(SESSION, session.key, rows[session.key])
    run.versions.drop_sessions(sessions, new)


def _collect_session(run: Run, session_id: str, fingerprint: str) -> tuple[SyncedSession | None, dict[str, Row]]:
    """Return what is known of a session that may have changed, and its new rows."""
    found = run.db.synced_rows.read_session(session_id)
    if found is None:
        # It has just been deleted; the next run notices that.
        return None, {}
    head, fields = found
    session = _named(run, session_id, head["started_at"])
    new: dict[str, Row] = {}
    for kind, state in split_fields(fields).items():
        before, digest = run.row(kind, session.key), digest_of(state)
        if before is None and state == _NO_LABEL:
            # It gives way to any other.
            continue
        if before is None and run.number == 1:
            new |= run.set_row(kind, session.key, run.first_row(digest))
        elif before is None or before.digest != digest:
            if MARK in str(state):
                run.must_rewrite()
            new |= run.set_row(kind, session.key, run.changed_row(before, digest))
    parent = head["parent_session_id"]
    if parent is not None and not session.parent and (above := run.db.synced_rows.read_session(parent)) is not None:
        # As it was related when it began; deletions change that only here.
        key = _named(run, parent, above[0]["started_at"]).key
        session = session._replace(parent=key, relation=head["relation"] or "")
    session = session._replace(fingerprint=fingerprint)
    run.add_session(session)
    return session, new


def _named(run: Run, session_id: str, started_at: float) -> SyncedSession:
    """Return a session of this home with its key: its first message in an import, or else when it started.

    Both are the same on machines that have imported the same transcript.
    """
    if session_id in run.keys:
        return run.sessions[run.keys[session_id]]
    first = run.db.synced_rows.first_external_id(session_id)
    return SyncedSession(f"{session_id}@{started_at!r}" if first is None else f"{session_id}@x:{first}", session_id)


def read_states(run: Run, session_id: str, first_id: int = 0) -> Iterator[tuple[int, State]]:
    """Yield the messages of a session here, with the originals of copies named so that all machines know them."""
    for number, fields, original, flags in run.db.synced_rows.read_messages(session_id, first_id):
        copied = None if original is None else run.versions.find_gid(original)
        key = None if copied is None else run.keys.get(copied[0])
        yield number, (fields, [key, copied[1]] if copied is not None and key else None, flags)


def own_gid(run: Run, number: int, fields: Fields) -> str:
    """Return the name of a message that this machine has recorded."""
    external = fields.get("external_id")
    return f"{run.machine}:{number}" if external is None else f"x:{external}"


def is_marked(fields: Fields) -> bool:
    """Return whether a text was removed from a message."""
    return bool(fields.get("redacted")) or MARK in str(fields)


def message_digest(state: State) -> str:
    """Return a digest of a message that is the same on all machines."""
    fields, copied, flags = state
    content = strip_references(fields.get("content"), is_summary=bool(fields.get("is_summary")))
    return digest_of([{**fields, "content": content}, copied and copied[1], flags])


def session_records(run: Run, since: Since) -> Iterator[Record]:
    """Yield the records of the sessions and messages that a bundle does not have yet."""
    unsent = dict.fromkeys(run.versions.unsent(since.message, since.run, lambda stamp: run.sends(stamp, since.others)))
    waiting: dict[str, None] = {}
    for session in list(run.sessions.values()):
        rows = {
            kind: row
            for kind in (SESSION, LABEL)
            if (row := run.row(kind, session.key)) and row.run > since.run and run.sends(row.stamp, since.others)
        }
        if session.session_id and rows:
            waiting[session.session_id] = None
        elif SESSION in rows and not rows[SESSION].digest:
            yield {"t": "deleted", "key": session.key, "v": rows[SESSION].stamp, "base": rows[SESSION].base}
    for session_id in waiting | unsent:
        with run.versions.one_view():
            messages = list(_message_records(run, session_id, since)) if session_id in unsent else []
            # The head comes before the messages, even if another machine has published it first.
            records = [*_session_record(run, session_id, since, always=bool(messages)), *messages]
        yield from records


def _session_record(run: Run, session_id: str, since: Since, *, always: bool) -> Iterator[Record]:
    found, key = run.db.synced_rows.read_session(session_id), run.keys.get(session_id)
    if found is None or key is None:
        return
    head, fields = found
    rows = {}
    for kind, state in split_fields(fields).items():
        row = run.row(kind, key)
        if row is not None and row.run > since.run and run.sends(row.stamp, since.others):
            rows[kind] = [row.stamp, row.base, state]
    if rows or always:
        session = run.sessions[key]
        names = {name: head[name] for name in ("id", "source", "started_at")}
        related = {"parent": session.parent or None, "relation": session.relation or None}
        yield {"t": "session", "key": key, "head": names | related, "rows": rows}


def _message_records(run: Run, session_id: str, since: Since) -> Iterator[Record]:
    key = run.keys.get(session_id)
    if key is None:
        return
    stored = run.versions.messages(session_id)
    named, last = {each.number for each in stored}, run.versions.position()
    wanted = [each for each in stored if each.run > since.run and run.sends(each.stamp, since.others)]
    first = min((each.number for each in wanted if each.is_here), default=since.message + 1)
    states = dict(read_states(run, session_id, min(first, since.message + 1)))
    wanted += [
        MessageVersion(own_gid(run, number, state[0]), number)
        for number, state in states.items()
        if since.message < number <= last and number not in named
    ]
    # In the order in which they were said, in which the other machine stores them.
    for each in sorted(wanted, key=lambda each: each.number):
        record: Record = {"t": "message", "key": key, "gid": each.gid}
        if each.stamp:
            record["v"] = each.stamp
        if not each.is_here:
            record["gone"] = True
        elif each.number in states:
            record["n"] = each.number
            _add_state(record, states[each.number])
        else:
            # It has just been deleted; the next run notices that.
            continue
        yield record


def _add_state(record: Record, state: State) -> None:
    """Add a state to a record, without what nearly all messages have in common."""
    fields, copied, flags = state
    record["m"] = fields
    if copied is not None:
        record["copy"] = copied
    if flags != NEW_FLAGS:
        record["flags"] = flags


def read_state(record: Record) -> State | None:
    """Return the state of a message in a record; None if the message was deleted."""
    return None if record.get("gone") else (record["m"], record.get("copy"), record.get("flags", NEW_FLAGS))


def collect_items(run: Run) -> None:
    """Note the items that were written, forgotten or removed since the last run."""
    if run.db.synced_items.has_forgotten():
        run.must_rewrite()
    run.db.synced_items.note_changes(run.number)


def item_records(run: Run, since: Since) -> Iterator[Record]:
    """Yield the records of the items that a bundle does not have yet."""

    def is_sent_here(machine: str) -> bool:
        return not machine or (since.others is not None and machine not in since.others)

    changed, removed = run.db.synced_items.unsent(since.run, is_sent_here)
    has_forgotten = run.versions.value("rewrite") == str(run.number)
    for item_id, written_at in removed.items():
        yield {"t": "item", "id": item_id, "gone": True, "at": written_at, "forgotten": has_forgotten}
    for exported in run.db.item_transfer.export_items(changed):
        item = exported[ITEM]
        item_id = identify(item["user_id"], encode_namespace(tuple(item["namespace"])), item["key"])
        yield {"t": "item", "id": item_id, "item": item}
