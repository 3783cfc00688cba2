"""Merges sessions and messages of another machine into this home.

Every rule gives the same result on all machines, in whatever order bundles arrive: of two changes to a field the later
one wins; of two changes to a message the one that knows the other; a deletion wins over everything. Where two machines
have removed different texts from a message without knowing of each other, the whole text is removed.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any

from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.text_matcher import MARK
from memoranda.upkeep.sync.forgotten_texts import note_removed_texts
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync.session_changes import COUNTED, FIELD, State, is_marked, merge_counters, message_digest
from memoranda.upkeep.sync.session_order import encode_place, note_removed
from memoranda.upkeep.sync.versions import Version, digest_of

Record = dict[str, Any]
_TOGETHER = 200
_KEPT_BESIDE_MARK = ("role", "timestamp", "external_id", "tool_call_id", "tool_name", "is_summary")


def merge_sessions(run: Run, records: Iterable[Record]) -> None:
    """Apply the sessions, deletions and messages of one bundle."""
    listed = list(records)
    heads = [record for record in listed if record["t"] == "session"]
    deleted = {record["key"] for record in listed if record["t"] == "deleted"}
    messages: dict[str, list[Record]] = {}
    for record in listed:
        if record["t"] == "message":
            messages.setdefault(record["key"], []).append(record)
    for key in deleted:
        _delete(run, key)
    for record in sorted(heads, key=lambda record: (record["head"]["started_at"], record["keys"][0])):
        external = {message["gid"][2:] for message in messages.get(record["keys"][0], ()) if message["gid"][:2] == "x:"}
        _merge_head(run, record, external)
    _merge_titles(run, heads)
    numbers = {record["n"]: record["gid"] for record in listed if record["t"] == "message" and "n" in record}
    for key, group in messages.items():
        session_id = run.tables.session_of(key)
        if session_id:
            _merge_messages(run, session_id, group, numbers)


def recover_pending(run: Run) -> None:
    """Recognise messages that a run added to the record before it was killed, so that they are not sent as new."""
    rows = run.tables.connection.execute("SELECT session_id, after, expected FROM pending_messages").fetchall()
    for session_id, after, expected in rows:
        wanted = json.loads(expected)
        found = [
            (number, [fields.get("role"), fields.get("timestamp")])
            for number, fields, _, _ in run.db.synced_rows.read_messages(session_id)
            if number > after
        ]
        start = next(
            (
                start
                for start in range(len(found) - len(wanted) + 1)
                if [each for _, each in found[start : start + len(wanted)]] == [row[:2] for row in wanted]
            ),
            None,
        )
        if start is not None:
            for (number, _), (_, _, gid, name, digest, replaced, bundle, place) in zip(
                found[start:], wanted, strict=False
            ):
                version = Version(name, digest, frozenset(replaced))
                run.tables.set_message(session_id, gid, number, version, run.number, bundle, place)
            run.unordered.add(session_id)
    run.tables.connection.execute("DELETE FROM pending_messages")


def _delete(run: Run, key: str) -> None:
    session_id = run.tables.session_of(key)
    if session_id:
        note_removed(run, session_id)
        for each in run.tables.keys_of(session_id):
            run.tables.set_key(each, "", run.number, run.bundle)
        run.tables.drop_session(session_id)
        if run.db.synced_rows.read_session(session_id) is not None:
            run.deleted.append(session_id)
        run.must_rewrite = True
        run.report.count(run.report.received, "deleted sessions")
    elif session_id is None:
        run.tables.set_key(key, "", run.number, run.bundle)


def _merge_head(run: Run, record: Record, external: set[str]) -> None:
    keys, head = record["keys"], record["head"]
    known = [run.tables.session_of(key) for key in keys]
    if "" in known:
        # It was deleted, here or on a third machine.
        _delete_all(run, keys)
        return
    session_id = next((name for name in known if name), None)
    if session_id is None:
        session_id = _place(run, keys[0], head, external)
        if session_id is None:
            return
    for key in keys:
        if run.tables.session_of(key) is None:
            run.tables.set_key(key, session_id, run.number, run.bundle)
    _merge_fields(run, session_id, record["fields"])
    if "counters" in record:
        merge_counters(run, session_id, record["counters"], run.tables.fields_of(session_id))
    if head["parent"] and not run.tables.parent_of(session_id)[0]:
        run.tables.set_parent(session_id, head["parent"], head["relation"] or "")
    run.unlinked.add(session_id)


def _delete_all(run: Run, keys: list[str]) -> None:
    for key in keys:
        _delete(run, key)


def _place(run: Run, key: str, head: Record, external: set[str]) -> str | None:
    """The session here for a session of another machine: the same one, or a new one; None if it was deleted here."""
    rows = run.db.synced_rows
    wanted: str = head["id"]
    if rows.read_session(wanted) is not None and external & rows.external_ids(wanted):
        # Both machines have imported it, at different times.
        return wanted
    if run.db.deleted_sessions([wanted]) and not rows.is_taken(wanted):
        # It was deleted here before the first synchronisation: it does not come back, and the other one keeps it.
        run.report.notes.append(f"{wanted} was deleted here earlier and is not restored; the other machine keeps it.")
        return None
    session_id = wanted
    if rows.is_taken(wanted):
        # Another conversation has the same id, and the two must not be mixed.
        session_id = f"{wanted}~{hashlib.sha256(key.encode()).hexdigest()[:8]}"
        run.report.notes.append(f"{wanted} is another conversation here; the received one is called {session_id}.")
        if rows.read_session(session_id) is not None:
            return session_id
    rows.add_session(session_id, head)
    run.report.count(run.report.received, "sessions")
    return session_id


def _merge_fields(run: Run, session_id: str, theirs: dict[str, list[Any]]) -> None:
    known = run.tables.fields_of(session_id)
    new: dict[str, Any] = {}
    for name, (version, value) in theirs.items():
        if name in COUNTED and FIELD in known:
            # What each machine has counted is added up instead.
            continue
        run.clock.see(version)
        digest = digest_of(value)
        ours = known.get(name, ["", "", 0, ""])
        if (version, digest) > (ours[0], ours[1]) or not ours[1]:
            if digest != ours[1]:
                new[name] = value
            known[name] = [version, digest, run.number, run.bundle]
    run.must_rewrite |= any(MARK in str(value) for value in new.values())
    if any(name != "title" for name in new):
        run.db.synced_rows.set_fields(session_id, new)
    run.tables.set_fields(session_id, known, run.number)


def _merge_titles(run: Run, heads: list[Record]) -> None:
    """Set the titles that won: first those that became free, then the others."""
    wanted = []
    for record in heads:
        session_id = run.tables.session_of(record["keys"][0])
        if session_id and "title" in record["fields"]:
            version, title = record["fields"]["title"]
            known = run.tables.fields_of(session_id)["title"]
            if known[:2] == [version, digest_of(title)]:
                wanted.append((session_id, title))
    for session_id, title in sorted(wanted, key=lambda pair: pair[1] is not None):
        current = run.db.get_session_title(session_id)
        if current != title:
            _set_title(run, session_id, title)


def _set_title(run: Run, session_id: str, title: str | None) -> None:
    rows = run.db.synced_rows
    holder = rows.title_holder(title, session_id) if title else None
    if holder is None:
        rows.set_title(session_id, title)
        return
    # Two conversations got the same title; the older one keeps it, on all machines.
    found = rows.read_session(session_id)
    started = found[0]["started_at"] if found else 0.0
    ours = min([(holder[1], _name(run, holder[0])), (started, _name(run, session_id))])[1]
    loser = session_id if ours == _name(run, holder[0]) else holder[0]
    rows.set_title(loser, _numbered(run, loser, title or ""))
    if loser != session_id:
        rows.set_title(session_id, title)
    known = run.tables.fields_of(loser)
    renamed = digest_of(run.db.get_session_title(loser))
    version = known.get("title", [""])[0]
    known["title"] = [f"{version}+", renamed, run.number, ""]
    run.tables.set_fields(loser, known, run.number)


def _name(run: Run, session_id: str) -> str:
    keys = run.tables.keys_of(session_id)
    return keys[0] if keys else session_id


def _numbered(run: Run, session_id: str, title: str) -> str:
    return f"{title[:80]} ({hashlib.sha256(_name(run, session_id).encode()).hexdigest()[:4]})"


def _merge_messages(run: Run, session_id: str, records: list[Record], numbers: dict[int, str]) -> None:
    known = run.tables.messages_of(session_id)
    here = {number: (fields, flags) for number, fields, _, flags in run.db.synced_rows.read_messages(session_id)}
    same = _SameMessages(known, here)
    written: list[_Write] = []
    gone: list[_Write] = []
    for record in records:
        state: State | None = None if record.get("gone") else (record["m"], record["copy"], record["flags"])
        version = Version(record["v"], "" if state is None else message_digest(state), frozenset(record["was"]))
        run.clock.see(version.name)
        place = encode_place(*record["place"])
        number, ours = known.get(record["gid"]) or same.find(state, version.digest)
        if ours is None:
            write = _Write(number, record["gid"], version, state, run.bundle, place)
            (gone if state is None else written).append(write)
            continue
        is_ours, chosen, result = _choose(ours, here.get(number or 0), version, state)
        # A state that results from both must be sent, too.
        bundle = run.bundle if result.name == version.name else ""
        if is_ours:
            run.tables.merge_place(session_id, record["gid"], place)
            if result != ours or record["gid"] not in known:
                run.tables.set_message(session_id, record["gid"], number or 0, result, run.number, bundle, place)
        elif chosen is None:
            gone.append(_Write(number, record["gid"], result, None, bundle, place))
        else:
            run.has_forgotten |= is_marked(chosen[0])
            written.append(_Write(number if number in here else None, record["gid"], result, chosen, bundle, place))
    note_removed_texts(
        run, [(here[each.number][0], each.state[0]) for each in written if each.number in here and each.state]
    )
    _write(run, session_id, written, _translator(run, numbers))
    run.unordered.add(session_id)
    if gone:
        run.db.synced_rows.remove_messages(session_id, [each.number for each in gone if each.number])
        run.has_forgotten = True
    for each in gone:
        run.tables.set_message(
            session_id, each.gid, each.number or 0, each.version, run.number, each.bundle, each.place
        )
    run.must_rewrite |= run.has_forgotten


@dataclass(frozen=True, slots=True)
class _Write:
    """A message to insert, to replace (with a number) or to delete (without a state)."""

    number: int | None
    gid: str
    version: Version
    state: State | None
    bundle: str
    place: str


class _SameMessages:
    """Recognises messages that this home has under another name: imported twice, or copied with the home."""

    def __init__(
        self,
        known: dict[str, tuple[int, Version]],
        here: dict[int, tuple[dict[str, Any], list[int | None]]],
    ) -> None:
        self._candidates: dict[tuple[Any, Any], list[tuple[int, Version, bool]]] = {}
        for number, version in known.values():
            if version.digest and number in here:
                fields = here[number][0]
                place = (fields.get("role"), fields.get("timestamp"))
                self._candidates.setdefault(place, []).append((number, version, is_marked(fields)))

    def find(self, state: State | None, digest: str) -> tuple[int | None, Version | None]:
        if state is not None:
            place = (state[0].get("role"), state[0].get("timestamp"))
            for number, version, marked in self._candidates.get(place, ()):
                if version.digest == digest or marked or is_marked(state[0]):
                    return number, version
        return None, None


def _choose(
    ours: Version, here: tuple[dict[str, Any], list[int | None]] | None, theirs: Version, state: State | None
) -> tuple[bool, State | None, Version]:
    """Whether our state of a message stays, or else the state that replaces it (None: none), and its version."""
    if ours.follows(theirs):
        return True, None, ours
    if theirs.follows(ours):
        return False, state, theirs
    if ours.digest == theirs.digest:
        return True, None, ours.merged(theirs, ours.digest)
    if state is None or here is None:
        # One of them was deleted.
        return here is None, None, ours.merged(theirs, "")
    marked_here, marked_there = is_marked(here[0]), is_marked(state[0])
    if marked_here and marked_there and here[0].get("content") != state[0].get("content"):
        fields = {name: state[0][name] for name in _KEPT_BESIDE_MARK if name in state[0]} | {"content": MARK}
        flags = max((here[1], state[2]), key=str)
        blank: State = (fields, state[1], flags)
        return False, blank, ours.merged(theirs, message_digest(blank))
    if marked_there if marked_here != marked_there else theirs.name > ours.name:
        return False, state, ours.merged(theirs, theirs.digest)
    return True, None, ours.merged(theirs, ours.digest)


def _write(run: Run, session_id: str, written: list[_Write], new_id: Callable[[int], int | None]) -> None:
    new = [each for each in written if each.number is None]
    ordered = [*new, *(each for each in written if each.number is not None)]
    for start in range(0, len(ordered), _TOGETHER):
        _write_some(run, session_id, ordered[start : start + _TOGETHER], new_id)
    run.report.count(run.report.received, "messages", len(new))
    run.report.count(run.report.received, "changed messages", len(written) - len(new))


def _write_some(run: Run, session_id: str, written: list[_Write], new_id: Callable[[int], int | None]) -> None:
    expected = []
    inside = {gid: number for gid, (number, _) in run.tables.messages_of(session_id).items()}
    states = []
    for each in written:
        assert each.state is not None
        fields, copied, flags = each.state
        states.append((each.number, fields, _original(run, session_id, copied, inside), flags))
        if each.number is None:
            version = each.version
            name = [each.gid, version.name, version.digest, sorted(version.replaced), each.bundle, each.place]
            expected.append([fields.get("role"), fields.get("timestamp"), *name])
    if expected:
        run.save_pending(session_id, run.db.last_message_id(), expected)
    ids = run.db.synced_rows.put_messages(session_id, states, new_id)
    for number, each in zip(ids, written, strict=True):
        run.tables.set_message(session_id, each.gid, number, each.version, run.number, each.bundle, each.place)
    run.tables.connection.execute("DELETE FROM pending_messages WHERE session_id = ?", (session_id,))


def _original(run: Run, session_id: str, copied: list[str] | None, inside: dict[str, int]) -> int | None:
    if copied is None:
        return None
    owner = run.tables.session_of(copied[0])
    if owner == session_id:
        return inside.get(copied[1])
    found = run.tables.messages_of(owner).get(copied[1]) if owner else None
    return found[0] if found is not None and found[1].digest else None


def _translator(run: Run, numbers: dict[int, str]) -> Callable[[int], int | None]:
    """Turns the number of a message on the other machine into that of the same message here."""
    machine = run.bundle.partition("/")[0]

    def new_id(number: int) -> int | None:
        gid = numbers.get(number, f"{machine}:{number}")
        found = run.tables.connection.execute(
            "SELECT message_id FROM synced_messages WHERE gid = ? AND digest <> '' LIMIT 1", (gid,)
        ).fetchone()
        return None if found is None else int(found[0])

    return new_id
