"""Merges sessions, messages and items of another machine into this home.

Every rule gives the same result on all machines, in whatever order bundles arrive: of two changes to a field the later
one wins; of two changes to a message the one that knows the other; a deletion wins over everything. Where two machines
have removed different texts from a message without knowing of each other, the whole text is removed.

The history of an item has the versions of all machines, so the later write wins. An item that was removed as a whole,
because its name was forgotten, is removed here, too, unless it was written since.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any

from memoranda.errors import SessionError
from memoranda.memory.record.transfer.row_versions import MessageVersion, SessionVersion
from memoranda.support.text_matcher import MARK
from memoranda.upkeep.forgetting.sessions import delete_sessions
from memoranda.upkeep.sync.forgotten_texts import note_removed_texts
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync.session_changes import (
    COUNTED,
    FIELD,
    State,
    is_marked,
    merge_counters,
    message_digest,
    note_removed,
    read_state,
    read_states,
)
from memoranda.upkeep.sync_versions import Version, digest_of, first_version, is_first

Record = dict[str, Any]
_TOGETHER = 200
_KEPT_BESIDE_MARK = ("role", "timestamp", "external_id", "tool_call_id", "tool_name", "is_summary")


def merge_sessions(run: Run, records: Iterable[Record]) -> None:
    """Apply the sessions, deletions and messages of one bundle."""
    listed = list(records)
    heads = [record for record in listed if record["t"] == "session"]
    messages: dict[str, list[Record]] = {}
    for record in listed:
        if record["t"] == "message":
            messages.setdefault(record["key"], []).append(record)
    _delete(run, [record["key"] for record in listed if record["t"] == "deleted"])
    for record in sorted(heads, key=lambda record: (record["head"]["started_at"], record["keys"][0])):
        external = {message["gid"][2:] for message in messages.get(record["keys"][0], ()) if message["gid"][:2] == "x:"}
        _merge_head(run, record, external)
    _merge_titles(run, heads)
    numbers = {record["n"]: record["gid"] for record in listed if record["t"] == "message" and "n" in record}
    for key, group in messages.items():
        session_id = run.versions.session_of(key)
        if session_id:
            _merge_messages(run, session_id, group, numbers)


def merge_items(run: Run, records: Iterable[Record]) -> None:
    """Apply the items of one bundle."""
    items = run.db.synced_items
    for record in records:
        if record["t"] != "item":
            continue
        if record.get("gone"):
            if items.remove_item(record["id"], record["at"], run.number, run.bundle):
                if record.get("forgotten", True):
                    # Not because it has expired.
                    run.has_forgotten = run.must_rewrite = True
                run.report.count(run.report.received, "removed items")
            continue
        note_removed_texts(run, items.marked_values(record["id"], record["item"]))
        try:
            changed, forgotten = items.merge_item(record["item"], run.number, run.bundle)
        except SessionError as error:
            run.report.refused.append(f"item {record['item']['key'][:60]!r}: {error}")
            continue
        run.report.count(run.report.received, "items", int(changed))
        if forgotten:
            run.has_forgotten = run.must_rewrite = True


def _delete(run: Run, keys: list[str]) -> None:
    """Delete the sessions with these keys; the keys say so only then, so that a run that is killed does it again."""
    versions = run.versions
    known = {key: versions.session_of(key) for key in keys}
    present = list(dict.fromkeys(session_id for session_id in known.values() if session_id))
    if present:
        run.must_rewrite = True
        note_removed(run, present)
        existing = [session_id for session_id in present if run.db.synced_rows.read_session(session_id) is not None]
        if existing:
            run.report.notes += delete_sessions(run.db, run.root, existing).problems
        versions.drop_sessions(present, run.number, run.bundle)
        run.report.count(run.report.received, "deleted sessions", len(present))
    if unknown := [key for key in keys if known[key] is None]:
        versions.put_keys(unknown, "", run.number, run.bundle)


def _merge_head(run: Run, record: Record, external: set[str]) -> None:
    keys, head = record["keys"], record["head"]
    versions = run.versions
    known = [versions.session_of(key) for key in keys]
    if "" in known:
        # It was deleted, here or on a third machine.
        _delete(run, keys)
        return
    session_id = next((name for name in known if name), None)
    if session_id is None:
        session_id = _place(run, keys, head, external)
        if session_id is None:
            return
    elif new := [key for key, name in zip(keys, known, strict=True) if name is None]:
        versions.put_keys(new, session_id, run.number, run.bundle)
    version = versions.session(session_id)
    fields = _merge_fields(run, version, record["fields"])
    amounts = merge_counters(run, session_id, record["counters"], version) if "counters" in record else {}
    if head["parent"] and not version.parent:
        version.parent, version.relation = head["parent"], head["relation"] or ""
    run.db.synced_rows.set_fields(session_id, fields, amounts, version, run.number)
    run.unlinked.add(session_id)


def _place(run: Run, keys: list[str], head: Record, external: set[str]) -> str | None:
    """The session here for a session of another machine: the same one, or a new one; None if it was deleted here."""
    rows = run.db.synced_rows
    wanted: str = head["id"]
    is_taken = rows.is_taken(wanted)
    if is_taken and rows.read_session(wanted) is not None and external & rows.external_ids(wanted):
        # Both machines have imported it, at different times.
        run.versions.put_keys(keys, wanted, run.number, run.bundle)
        return wanted
    if not is_taken and run.db.deleted_sessions([wanted]):
        # It was deleted here before the first synchronisation: it does not come back, and the other one keeps it.
        run.report.notes.append(f"{wanted} was deleted here earlier and is not restored; the other machine keeps it.")
        return None
    session_id = wanted
    if is_taken:
        # Another conversation has the same id, and the two must not be mixed.
        session_id = f"{wanted}~{hashlib.sha256(keys[0].encode()).hexdigest()[:8]}"
        run.report.notes.append(f"{wanted} is another conversation here; the received one is called {session_id}.")
        if rows.read_session(session_id) is not None:
            run.versions.put_keys(keys, session_id, run.number, run.bundle)
            return session_id
    rows.add_session(session_id, head, keys, run.number, run.bundle)
    run.report.count(run.report.received, "sessions")
    return session_id


def _merge_fields(run: Run, version: SessionVersion, theirs: dict[str, list[Any]]) -> dict[str, Any]:
    """The values that win over ours."""
    known = version.fields
    new: dict[str, Any] = {}
    for name, (their_version, value) in theirs.items():
        if name in COUNTED and FIELD in known:
            # What each machine has counted is added up instead.
            continue
        run.clock.see(their_version)
        digest = digest_of(value)
        ours = known.get(name, ["", "", 0, ""])
        if (their_version, digest) > (ours[0], ours[1]) or not ours[1]:
            if digest != ours[1]:
                new[name] = value
            known[name] = [their_version, digest, run.number, run.bundle]
    run.must_rewrite |= any(MARK in str(value) for value in new.values())
    return new


def _merge_titles(run: Run, heads: list[Record]) -> None:
    """Set the titles that won: first those that became free, then the others."""
    wanted = []
    for record in heads:
        session_id = run.versions.session_of(record["keys"][0])
        if session_id and "title" in record["fields"]:
            version, title = record["fields"]["title"]
            known = run.versions.session(session_id).fields["title"]
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
    version = run.versions.session(loser)
    renamed = digest_of(run.db.get_session_title(loser))
    name = version.fields.get("title", [""])[0]
    version.fields["title"] = [f"{name}+", renamed, run.number, ""]
    run.versions.put_sessions({loser: version}, {}, run.number)


def _name(run: Run, session_id: str) -> str:
    keys = run.versions.keys_of(session_id)
    return keys[0] if keys else session_id


def _numbered(run: Run, session_id: str, title: str) -> str:
    return f"{title[:80]} ({hashlib.sha256(_name(run, session_id).encode()).hexdigest()[:4]})"


def _merge_messages(run: Run, session_id: str, records: list[Record], numbers: dict[int, str]) -> None:
    versions = run.versions.messages(session_id)
    here: dict[int, State] = dict(read_states(run, session_id)) if versions else {}
    ours = _OurMessages(versions, here)
    written: list[tuple[MessageVersion, State]] = []
    gone: list[MessageVersion] = []
    kept: list[MessageVersion] = []
    for record in records:
        received, state = _read_message(run, record)
        known = ours.find(received.gid, state) if versions else None
        if known is None:
            if state is None:
                gone.append(received)
            else:
                written.append((received, state))
            continue
        own = _version_of(known, here.get(known.number))
        theirs = _version_of(received, state)
        is_ours, chosen, result = _choose(own, here.get(known.number), theirs, state)
        # A state that results from both must be sent, too.
        bundle = run.bundle if result.name == theirs.name else ""
        named = [
            each._replace(version=_stored_name(result), replaced=result.replaced, run=run.number, bundle=bundle)
            for each in ours.with_name(known, received)
        ]
        if is_ours:
            if result != own or named[0].gid not in ours.by_gid or named[0].place != known.place:
                kept += named
        elif chosen is None:
            gone += named
        else:
            run.has_forgotten |= is_marked(chosen[0])
            written.append((named[0], chosen))
            kept += named[1:]
    note_removed_texts(run, [(here[each.number][0], state[0]) for each, state in written if each.is_here])
    _write(run, session_id, written, _translator(run, session_id, numbers))
    if versions or not _are_in_order(written):
        run.unordered.add(session_id)
    if gone:
        run.must_rewrite = run.has_forgotten = True
        run.db.synced_rows.remove_messages(session_id, gone)
    if kept:
        run.versions.put(session_id, kept)
    run.must_rewrite |= run.has_forgotten


def _are_in_order(written: list[tuple[MessageVersion, State]]) -> bool:
    """Whether each message was added after the one before it, as in a session that one machine has recorded."""
    before = ""
    for version, _ in written:
        if version.place[0] != before:
            return False
        before = version.gid
    return True


def _read_message(run: Run, record: Record) -> tuple[MessageVersion, State | None]:
    name: str = record.get("v", "")
    if name:
        run.clock.see(name)
    place = record["after"], record["at"] if "at" in record else record["m"]["timestamp"]
    version = MessageVersion(
        record["gid"], 0, place, name, frozenset(record.get("was", ())), run.number, run.bundle, is_here=False
    )
    return version, read_state(record)


def _version_of(version: MessageVersion, state: State | None) -> Version:
    """The version of a message in a state; one that was never changed is named by its content."""
    digest = "" if state is None else message_digest(state)
    return Version(version.version or first_version(digest).name, digest, version.replaced)


def _stored_name(version: Version) -> str:
    return "" if is_first(version) else version.name


class _OurMessages:
    """The messages of a session here, found also under another name: imported twice, or copied with the home."""

    def __init__(self, versions: list[MessageVersion], here: dict[int, State]) -> None:
        self.by_gid = {each.gid: each for each in versions}
        self._here = here
        self._candidates: dict[tuple[Any, Any], list[MessageVersion]] = {}
        for each in versions:
            if each.number in here:
                fields = here[each.number][0]
                self._candidates.setdefault((fields.get("role"), fields.get("timestamp")), []).append(each)

    def find(self, gid: str, state: State | None) -> MessageVersion | None:
        if gid in self.by_gid or state is None:
            return self.by_gid.get(gid)
        for each in self._candidates.get((state[0].get("role"), state[0].get("timestamp")), ()):
            own = self._here[each.number]
            if is_marked(own[0]) or is_marked(state[0]) or message_digest(own) == message_digest(state):
                return each
        return None

    def with_name(self, known: MessageVersion, received: MessageVersion) -> list[MessageVersion]:
        """A known message under the name that was received, and under its own if that is another one."""
        place = min(known.place, received.place, key=json.dumps) if known.gid == received.gid else received.place
        renamed = known._replace(gid=received.gid, place=place, is_here=known.number in self._here)
        return [renamed] if known.gid == received.gid else [renamed, known]


def _choose(
    ours: Version, here: State | None, theirs: Version, state: State | None
) -> tuple[bool, State | None, Version]:
    """Whether our state of a message stays, or else the state that replaces it (None: none), and its version."""
    marked_here = here is not None and is_marked(here[0])
    marked_there = state is not None and is_marked(state[0])
    # What was changed follows what was only recorded, but never returns a text that was removed there.
    if ours.follows(theirs) or (is_first(theirs) and not is_first(ours) and marked_here >= marked_there):
        return True, None, ours
    if theirs.follows(ours) or (is_first(ours) and not is_first(theirs) and marked_there >= marked_here):
        return False, state, theirs
    if ours.digest == theirs.digest:
        return True, None, ours.merged(theirs, ours.digest)
    if state is None or here is None:
        # One of them was deleted.
        return here is None, None, ours.merged(theirs, "")
    if marked_here and marked_there and here[0].get("content") != state[0].get("content"):
        fields = {name: state[0][name] for name in _KEPT_BESIDE_MARK if name in state[0]} | {"content": MARK}
        blank: State = (fields, state[1], max((here[2], state[2]), key=str))
        return False, blank, ours.merged(theirs, message_digest(blank))
    if marked_there if marked_here != marked_there else theirs.name > ours.name:
        return False, state, ours.merged(theirs, theirs.digest)
    return True, None, ours.merged(theirs, ours.digest)


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
    owner = None if copied is None else run.versions.session_of(copied[0])
    return run.versions.find_message(copied[1], owner) if copied is not None and owner else None


def _translator(run: Run, session_id: str, numbers: dict[int, str]) -> Callable[[int], int | None]:
    """Turns the number of a message on the other machine into that of the same message here."""
    machine, find = run.bundle.partition("/")[0], run.versions.find_message

    def new_id(number: int) -> int | None:
        gid = numbers.get(number, f"{machine}:{number}")
        return find(gid, session_id) or find(gid)

    return new_id
