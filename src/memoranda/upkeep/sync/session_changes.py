"""Finds what changed in the sessions of this home since the last run, and writes it as records.

Of the counters of a session that several machines use, each machine's own part is known, and the total is their sum.
`base` is what a session had when it was first seen. Of its own part, each machine sends the latest value, so that
receiving it twice adds nothing. Sessions that were imported have no parts: their counters come from the transcript, and
the later value wins.
"""

import json
from collections.abc import Iterator
from typing import Any

from memoranda.memory.record.message_rows import strip_references
from memoranda.memory.record.session_list import COSTS, COUNTERS
from memoranda.support.text_matcher import MARK
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync.session_order import encode_place, note_removed
from memoranda.upkeep.sync.versions import Version, digest_of, first_version

COUNTED = frozenset((*COUNTERS, *COSTS))
FIELD = "counters"
"""The name under which their version is stored, beside those of fields."""
_DIGITS = 9

Values = dict[str, Any]
Parts = dict[str, Any]
"""`base`: values; `by`: for each machine a number that rises with each change, and its values."""


def read_parts(run: Run, session_id: str) -> Parts | None:
    """The parts of a session; None if it has none."""
    stored, added = run.tables.counters_of(session_id), run.db.synced_rows.read_counts(session_id)
    return stored if added is None else added if stored is None else _merge(stored, added)


def collect_counters(run: Run, session_id: str, fields: Values, known: dict[str, list[Any]]) -> bool:
    """Note what was counted here since the last run; whether it changed. `known` has the versions of all fields."""
    counted = {name: fields[name] for name in COUNTED if fields.get(name) is not None}
    parts = read_parts(run, session_id)
    if parts is None:
        if known or run.db.synced_rows.external_ids(session_id):
            return False
        parts = {"base": counted, "by": {}}
    else:
        number, before = parts["by"].get(run.machine, (0, {}))
        others = _total({**parts, "by": {name: part for name, part in parts["by"].items() if name != run.machine}})
        own = {name: _rounded(value - others.get(name, 0)) for name, value in counted.items()}
        own = {name: value for name, value in own.items() if value}
        if own == before:
            if known.get(FIELD, [""] * 2)[1] != digest_of(parts):
                _note_version(run, session_id, parts, known, "")
            return False
        parts["by"][run.machine] = [number + 1, own]
    _note_version(run, session_id, parts, known, "")
    return True


def merge_counters(run: Run, session_id: str, theirs: Parts, known: dict[str, list[Any]]) -> None:
    """Add what other machines have counted."""
    ours = read_parts(run, session_id)
    merged = theirs if ours is None else _merge(ours, theirs)
    if merged == ours:
        if known.get(FIELD, [""] * 2)[1] != digest_of(merged):
            # A run that was killed has added them.
            _note_version(run, session_id, merged, known, run.bundle if merged == theirs else "")
        return
    before = {} if ours is None else _total(ours)
    if ours is None:
        found = run.db.synced_rows.read_session(session_id)
        before = {} if found is None else {name: found[1][name] or 0 for name in COUNTED}
    total = _total(merged)
    changes = {name: _rounded(value - before.get(name, 0)) for name, value in total.items()}
    run.db.synced_rows.add_counts(session_id, merged, {name: value for name, value in changes.items() if value})
    _note_version(run, session_id, merged, known, run.bundle if merged == theirs else "")


def _note_version(run: Run, session_id: str, parts: Parts, known: dict[str, list[Any]], bundle: str) -> None:
    known[FIELD] = ["", digest_of(parts), run.number, bundle]
    run.tables.set_fields(session_id, known, run.number)
    run.tables.set_counters(session_id, parts)


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
    """Give a version to every session and message that is new or different, and note what was deleted."""
    rows, tables = run.db.synced_rows, run.tables
    known, current = tables.fingerprints(), rows.fingerprints()
    for session_id in known.keys() - current.keys():
        _note_deleted(run, session_id)
    after = [int(tables.value(name, "0")) for name in ("messages", "changes")]
    touched, message, change = rows.changed_since(*after)
    changed = [name for name, fingerprint in current.items() if name in touched or known.get(name) != fingerprint]
    for count, session_id in enumerate(changed, start=1):
        _collect_session(run, session_id)
        tables.set_fingerprint(session_id, current[session_id])
        run.progress(f"{count:,} of {len(changed):,} changed sessions read")
    tables.set_value("messages", str(message))
    tables.set_value("changes", str(change))


def session_key(run: Run, session_id: str, started_at: float) -> str:
    """The key of a session of this home that has none yet: its id and its start, which imports agree on."""
    key = f"{session_id}@{started_at!r}"
    # A person has restored a deleted session; it is a new one for the other machines.
    return key if run.tables.session_of(key) is None else f"{key}~{run.clock.name()}"


def message_digest(state: State) -> str:
    """A digest of a message that is the same on all machines."""
    fields, copied, flags = state
    content = strip_references(fields.get("content"), is_summary=bool(fields.get("is_summary")))
    return digest_of([{**fields, "content": content}, copied and copied[1], flags])


def session_records(run: Run, after: int, bundles: frozenset[str]) -> Iterator[dict[str, Any]]:
    """The records of what changed after a run, without what other machines' bundles contain already."""
    tables = run.tables
    for key, session_id in tables.changed("session_keys", "key, session_id", after, bundles):
        if not session_id:
            yield {"t": "deleted", "key": key}
    messages: dict[str, list[tuple[Any, ...]]] = {}
    for session_id, *rest in tables.changed("synced_messages", "session_id, gid, message_id", after, bundles):
        messages.setdefault(session_id, []).append(tuple(rest))
    changed = [row[0] for row in tables.changed("synced_sessions", "session_id", after, frozenset())]
    for session_id in dict.fromkeys([*changed, *messages]):
        # The head comes before the messages, even if another machine has published it first.
        yield from _session_record(run, session_id, after, bundles, always=session_id in messages)
        if session_id in messages:
            yield from _message_records(run, session_id, messages[session_id])


def _collect_session(run: Run, session_id: str) -> None:
    found = run.db.synced_rows.read_session(session_id)
    if found is None:
        # It has just been deleted; the next run notices that.
        return
    head, fields = found
    tables = run.tables
    _give_key(run, session_id, head["started_at"])
    known = tables.fields_of(session_id)
    changed = not known
    collect_counters(run, session_id, fields, known)
    for name, value in fields.items():
        if name in COUNTED and FIELD in known:
            continue
        digest = digest_of(value)
        if name not in known:
            # An empty field gives way to any value.
            known[name] = [first_version(digest).name if value is not None else "", digest, run.number, ""]
        elif known[name][1] != digest:
            known[name] = [run.clock.name(), digest, run.number, ""]
            changed = True
            run.must_rewrite |= isinstance(value, str) and MARK in value
    if changed:
        tables.set_fields(session_id, known, run.number)
    _note_parent(run, session_id, head)
    _collect_messages(run, session_id)


def _collect_messages(run: Run, session_id: str) -> None:
    tables = run.tables
    known = tables.messages_of(session_id)
    by_id: dict[int, list[tuple[str, Version]]] = {}
    for gid, (number, version) in known.items():
        if version.digest:
            # Two machines that lost their state may have given the same message two names.
            by_id.setdefault(number, []).append((gid, version))
    seen = set()
    before = ""
    for number, state in read_states(run, session_id):
        digest = message_digest(state)
        place = encode_place(before, state[0]["timestamp"])
        if number in by_id:
            seen.add(number)
            before = min(gid for gid, _ in by_id[number])
            for gid, version in by_id[number]:
                if version.digest != digest:
                    run.must_rewrite |= is_marked(state[0])
                    later = run.clock.next_version(version, digest)
                    tables.set_message(session_id, gid, number, later, run.number, "")
            continue
        external = state[0].get("external_id")
        gid = f"x:{external}" if external else f"{run.machine}:{number}"
        earlier = known.get(gid)
        version = first_version(digest) if earlier is None else run.clock.next_version(earlier[1], digest)
        tables.set_message(session_id, gid, number, version, run.number, "", place)
        before = gid
    for number in by_id.keys() - seen:
        run.must_rewrite = True
        for gid, version in by_id[number]:
            tables.set_message(session_id, gid, number, run.clock.next_version(version, ""), run.number, "")


def read_states(run: Run, session_id: str) -> Iterator[tuple[int, State]]:
    """The messages of a session here, with the originals of copies named so that all machines know them."""
    for number, fields, original, flags in run.db.synced_rows.read_messages(session_id):
        copied = None if original is None else run.tables.gid_of(original)
        named = None if copied is None else [run.tables.keys_of(copied[0])[0], copied[1]]
        yield number, (fields, named, flags)


def is_marked(fields: dict[str, Any]) -> bool:
    """Whether a text was removed from a message."""
    return bool(fields.get("redacted")) or MARK in str(fields)


def _give_key(run: Run, session_id: str, started_at: float) -> str:
    """The first key of a session of this home, which gets one if it has none."""
    keys = run.tables.keys_of(session_id)
    if keys:
        return keys[0]
    key = session_key(run, session_id, started_at)
    run.tables.set_key(key, session_id, run.number, "")
    return key


def _note_parent(run: Run, session_id: str, head: dict[str, Any]) -> None:
    """Note how a session of this home was related to its parent when it began; deletions change that only here."""
    parent = head["parent_session_id"]
    if parent is not None and not run.tables.parent_of(session_id)[0]:
        found = run.db.synced_rows.read_session(parent)
        if found is not None:
            key = _give_key(run, parent, found[0]["started_at"])
            run.tables.set_parent(session_id, key, head["relation"] or "")


def _note_deleted(run: Run, session_id: str) -> None:
    note_removed(run, session_id)
    for key in run.tables.keys_of(session_id):
        run.tables.set_key(key, "", run.number, "")
    run.tables.drop_session(session_id)
    run.must_rewrite = True


def _session_record(
    run: Run, session_id: str, after: int, bundles: frozenset[str], *, always: bool
) -> Iterator[dict[str, Any]]:
    found = run.db.synced_rows.read_session(session_id)
    keys = run.tables.keys_of(session_id)
    if found is None or not keys:
        return
    head, fields = found
    parent, relation = run.tables.parent_of(session_id)
    head = {name: head[name] for name in ("id", "source", "started_at")} | {"relation": relation or None}
    known = run.tables.fields_of(session_id)
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
            "head": head | {"parent": parent or None},
            "fields": {name: [known[name][0], fields[name]] for name in sent if name != FIELD},
        } | ({"counters": read_parts(run, session_id)} if FIELD in sent else {})


def _message_records(run: Run, session_id: str, listed: list[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    keys = run.tables.keys_of(session_id)
    if not keys:
        return
    known = {gid: (version, place) for gid, _, version, _, place in run.tables.places_of(session_id)}
    states = dict(read_states(run, session_id))
    for gid, number in listed:
        version, place = known[gid]
        record = {"t": "message", "key": keys[0], "gid": gid, "v": version.name, "was": sorted(version.replaced)}
        record["place"] = json.loads(place)
        if not version.digest:
            yield record | {"gone": True}
        elif number in states:
            fields, copied, flags = states[number]
            yield record | {"n": number, "m": fields, "copy": copied, "flags": flags}
