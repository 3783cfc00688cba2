"""Finds what changed in the sessions and items of this home since the last run, and writes it as records.

Of the counters of a session that several machines use, each machine's own part is known, and the total is their sum.
`base` is what a session had when it was first seen. Of its own part, each machine sends the latest value, so that
receiving it twice adds nothing. Sessions that were imported have no parts: their counters come from the transcript, and
the later value wins.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from memoranda.memory.record.items import encode_namespace, identify
from memoranda.memory.record.message_rows import strip_references
from memoranda.memory.record.session_list import COSTS, COUNTERS
from memoranda.memory.record.transfer.items import ITEM
from memoranda.memory.record.transfer.row_versions import MessageVersion, SessionVersion
from memoranda.memory.record.transfer.synced_rows import NEW_FLAGS
from memoranda.support.text_matcher import MARK
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync_versions import digest_of, first_version

COUNTED = frozenset((*COUNTERS, *COSTS))
FIELD = "counters"
"""The name under which their version is stored, beside those of fields."""
_DIGITS = 9
_TOGETHER = 100

Values = dict[str, Any]
Parts = dict[str, Any]
"""`base`: values; `by`: for each machine a number that rises with each change, and its values."""


def _collect_counters(run: Run, session_id: str, fields: Values, version: SessionVersion) -> None:
    """Note what was counted here since the last run."""
    counted = {name: fields[name] for name in COUNTED if fields.get(name) is not None}
    parts = version.counters
    if parts is None:
        if version.fields or run.db.synced_rows.external_ids(session_id):
            return
        parts = {"base": counted, "by": {}}
    else:
        number, before = parts["by"].get(run.machine, (0, {}))
        others = _total({**parts, "by": {name: part for name, part in parts["by"].items() if name != run.machine}})
        own = {name: _rounded(value - others.get(name, 0)) for name, value in counted.items()}
        own = {name: value for name, value in own.items() if value}
        if own == before:
            return
        parts["by"][run.machine] = [number + 1, own]
    _note_counters(run, version, parts, "")


def merge_counters(run: Run, session_id: str, theirs: Parts, version: SessionVersion) -> Values:
    """Note what other machines have counted; returns what is to be added to the counters of the session."""
    ours = version.counters
    merged = theirs if ours is None else _merge(ours, theirs)
    if merged == ours:
        return {}
    if ours is None:
        found = run.db.synced_rows.read_session(session_id)
        before = {} if found is None else {name: found[1][name] or 0 for name in COUNTED}
    else:
        before = _total(ours)
    _note_counters(run, version, merged, run.bundle if merged == theirs else "")
    changes = {name: _rounded(value - before.get(name, 0)) for name, value in _total(merged).items()}
    return {name: value for name, value in changes.items() if value}


def _note_counters(run: Run, version: SessionVersion, parts: Parts, bundle: str) -> None:
    version.fields[FIELD] = ["", digest_of(parts), run.number, bundle]
    version.counters = parts


def _merge(ours: Parts, theirs: Parts) -> Parts:
    base = {
        name: max(part[name] for part in (ours["base"], theirs["base"]) if name in part)
        for name in {*ours["base"], *theirs["base"]}
    }
    by = dict(ours["by"])
    for machine, part in theirs["by"].items():
        by[machine] = max(by.get(machine, part), part, key=lambda each: (each[0], json.dumps(each[1], sort_keys=True)))
    return {"base": base, "by": by}


def _total(parts: Parts) -> Values:
    total: Values = {}
    for values in (parts["base"], *(part[1] for part in parts["by"].values())):
        for name, value in values.items():
            total[name] = _rounded(total.get(name, 0) + value)
    return total


def _rounded(value: float) -> float:
    return round(value, _DIGITS) if isinstance(value, float) else value


State = tuple[dict[str, Any], list[str] | None, list[int | None]]
"""The fields of a message, the key and gid of the message that it copies, and its flags."""


def collect_sessions(run: Run) -> None:
    """Give a version to every session and message that is different, and note what is new or was deleted."""
    rows, versions = run.db.synced_rows, run.versions
    last_message = run.db.last_message_id()
    known, current = versions.fingerprints(), rows.fingerprints()
    if gone := known.keys() - current.keys():
        run.must_rewrite = True
        note_removed(run, gone)
        versions.drop_sessions(gone, run.number, "")
    touched, change = rows.changed_since(versions.position(), int(run.tables.value("changes", "0")))
    changed = [name for name, fingerprint in current.items() if name in touched or known.get(name) != fingerprint]
    for start in range(0, len(changed), _TOGETHER):
        chosen = changed[start : start + _TOGETHER]
        with versions.one_view():
            found, keys = _collect_fields(run, {session_id: current[session_id] for session_id in chosen})
        versions.put_sessions(found, keys, run.number)
        run.progress(f"{start + len(chosen):,} of {len(changed):,} changed sessions read")
    for session_id in versions.unsettled_sessions():
        versions.put(session_id, list(_settle_messages(run, session_id)))
    versions.end_reading(run.number, last_message)
    run.tables.set_value("changes", str(change))


def message_digest(state: State) -> str:
    """A digest of a message that is the same on all machines."""
    fields, copied, flags = state
    content = strip_references(fields.get("content"), is_summary=bool(fields.get("is_summary")))
    return digest_of([{**fields, "content": content}, copied and copied[1], flags])


def session_records(run: Run, after: int, bundles: frozenset[str]) -> Iterator[dict[str, Any]]:
    """The records of what changed after a run, without what other machines' bundles contain already."""
    versions = run.versions
    for key in versions.deleted_keys(after, bundles):
        yield {"t": "deleted", "key": key}
    sent, unsent = versions.unsent(after, bundles)
    with_messages, numbers = set(unsent), range(sent + 1, versions.position() + 1)
    for session_id in dict.fromkeys([*versions.changed_sessions(after), *unsent]):
        with versions.one_view():
            # The head comes before the messages, even if another machine has published it first.
            records = [*_session_record(run, session_id, after, bundles, always=session_id in with_messages)]
            if session_id in with_messages:
                records += _message_records(run, session_id, numbers, after, bundles)
        yield from records


def collect_items(run: Run) -> None:
    """Note the items that were written, forgotten or removed since the last run."""
    run.must_rewrite |= run.db.synced_items.has_forgotten()
    run.db.synced_items.note_changes(run.number)


def item_records(run: Run, after: int, bundles: frozenset[str]) -> Iterator[dict[str, Any]]:
    changed, removed = run.db.synced_items.unsent(after, bundles)
    for item_id, written_at in removed.items():
        yield {"t": "item", "id": item_id, "gone": True, "at": written_at, "forgotten": run.must_rewrite}
    for exported in run.db.item_transfer.export_items(changed):
        item = exported[ITEM]
        item_id = identify(item["user_id"], encode_namespace(tuple(item["namespace"])), item["key"])
        yield {"t": "item", "id": item_id, "item": item}


def _collect_fields(run: Run, fingerprints: dict[str, str]) -> tuple[dict[str, SessionVersion], dict[str, str]]:
    """The new versions of sessions that have these fingerprints now, and keys for those that have none."""
    changed: dict[str, SessionVersion] = {}
    keys: dict[str, str] = {}
    for session_id, fingerprint in fingerprints.items():
        found = run.db.synced_rows.read_session(session_id)
        if found is None:
            # It has just been deleted; the next run notices that.
            continue
        head, fields = found
        _give_key(run, session_id, head["started_at"], keys)
        version = changed[session_id] = run.versions.session(session_id)
        version.fingerprint = fingerprint
        _collect_counters(run, session_id, fields, version)
        known = version.fields
        for name, value in fields.items():
            if name in COUNTED and FIELD in known:
                continue
            if name not in known:
                # An empty field gives way to any value.
                digest = digest_of(value) if value is not None else _NOTHING
                known[name] = [first_version(digest).name if value is not None else "", digest, run.number, ""]
            elif known[name][1] != (digest := digest_of(value)):
                known[name] = [run.clock.name(), digest, run.number, ""]
                run.must_rewrite |= isinstance(value, str) and MARK in value
        _note_parent(run, version, head, keys)
    return changed, keys


def _settle_messages(run: Run, session_id: str) -> Iterator[MessageVersion]:
    """The messages that changed, each with a new version, and those that were added to what others have changed."""
    versions, position = run.versions.messages(session_id), run.versions.position()
    stored = {each.gid: each for each in versions if each.is_stored}
    here = dict(read_states(run, session_id)) if any(each.is_changed and each.is_here for each in versions) else {}
    for each in versions:
        later = each._replace(run=run.number, bundle="", is_changed=False)
        if each.is_changed:
            run.must_rewrite |= not each.is_here or is_marked(here[each.number][0])
            yield later._replace(version=run.clock.name(), replaced=_replaced(each))
        elif not each.is_stored and each.number > position:
            if taken := stored.get(each.gid):
                # It was imported again, with another text or after it was deleted.
                yield later._replace(version=run.clock.name(), replaced=_replaced(taken))
                if taken.is_here:
                    yield taken._replace(gid=f"{run.machine}:{taken.number}", run=run.number, bundle="", version="")
            else:
                yield later


def _replaced(version: MessageVersion) -> frozenset[str]:
    return version.replaced | {version.version} - {""}


def read_states(run: Run, session_id: str, first_id: int = 0) -> Iterator[tuple[int, State]]:
    """The messages of a session here, with the originals of copies named so that all machines know them."""
    for number, fields, original, flags in run.db.synced_rows.read_messages(session_id, first_id):
        copied = None if original is None else run.versions.find_gid(original)
        keys = [] if copied is None else run.versions.keys_of(copied[0])
        yield number, (fields, [keys[0], copied[1]] if copied is not None and keys else None, flags)


def is_marked(fields: dict[str, Any]) -> bool:
    """Whether a text was removed from a message."""
    return bool(fields.get("redacted")) or MARK in str(fields)


def note_removed(run: Run, session_ids: Iterable[str]) -> None:
    """Note that the relatives of sessions must be linked again, because they are deleted."""
    for session_id in session_ids:
        parent = run.versions.session(session_id).parent
        if parent:
            run.unlinked.add(run.versions.session_of(parent) or "")


def _give_key(run: Run, session_id: str, started_at: float, new: dict[str, str]) -> str:
    """The first key of a session of this home; one without gets its id and start, which imports agree on."""
    versions = run.versions
    if keys := versions.keys_of(session_id):
        return keys[0]
    if session_id not in new:
        key = f"{session_id}@{started_at!r}"
        # If a person has restored a deleted session, it is a new one for the other machines.
        new[session_id] = key if versions.session_of(key) is None else f"{key}~{run.clock.name()}"
    return new[session_id]


def _note_parent(run: Run, version: SessionVersion, head: dict[str, Any], keys: dict[str, str]) -> None:
    """Note how a session of this home was related to its parent when it began; deletions change that only here."""
    parent = head["parent_session_id"]
    if parent is not None and not version.parent:
        found = run.db.synced_rows.read_session(parent)
        if found is not None:
            version.parent = _give_key(run, parent, found[0]["started_at"], keys)
            version.relation = head["relation"] or ""


def _session_record(
    run: Run, session_id: str, after: int, bundles: frozenset[str], *, always: bool
) -> Iterator[dict[str, Any]]:
    found = run.db.synced_rows.read_session(session_id)
    keys = run.versions.keys_of(session_id)
    if found is None or not keys:
        return
    head, fields = found
    version = run.versions.session(session_id)
    known = version.fields
    head = {name: head[name] for name in ("id", "source", "started_at")} | {"relation": version.relation or None}
    sent = [
        name
        for name in (*fields, FIELD)
        if name in known
        and known[name][2] > after
        and known[name][3] not in bundles
        and not (name in COUNTED and FIELD in known)
    ]
    if sent or always:
        yield {
            "t": "session",
            "keys": keys,
            "head": head | {"parent": version.parent or None},
            "fields": {name: [known[name][0], fields[name]] for name in sent if name != FIELD},
        } | ({"counters": version.counters} if FIELD in sent else {})


def _message_records(
    run: Run, session_id: str, unsent: range, after: int, bundles: frozenset[str]
) -> Iterator[dict[str, Any]]:
    keys = run.versions.keys_of(session_id)
    wanted = [
        each
        for each in run.versions.messages(session_id)
        if (each.run > after and each.bundle not in bundles if each.is_stored else each.number in unsent)
    ]
    if not keys or not wanted:
        return
    first = min((each.number for each in wanted if each.is_here), default=unsent.stop)
    states = dict(read_states(run, session_id, first))
    for each in wanted:
        before, at = each.place
        record: dict[str, Any] = {"t": "message", "key": keys[0], "gid": each.gid, "after": before}
        if each.version:
            record |= {"v": each.version, "was": sorted(each.replaced)}
        if not each.is_here:
            yield record | {"at": at, "gone": True}
        elif each.number in states:
            yield record | {"n": each.number} | _state_record(states[each.number], at)


def _state_record(state: State, at: float) -> dict[str, Any]:
    """A state as a record, without what nearly all messages have in common."""
    fields, copied, flags = state
    record: dict[str, Any] = {"m": fields}
    if at != fields.get("timestamp"):
        record["at"] = at
    if copied is not None:
        record["copy"] = copied
    if flags != NEW_FLAGS:
        record["flags"] = flags
    return record


def read_state(record: dict[str, Any]) -> State | None:
    """The state of a message in a record; None if the message was deleted."""
    return None if record.get("gone") else (record["m"], record.get("copy"), record.get("flags", NEW_FLAGS))


_NOTHING = digest_of(None)
