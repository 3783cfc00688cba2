"""Curated memory: which entries changed, merging those of another machine, and conflicts for a person to resolve.

An entry keeps its identity when its text changes. Changes to different entries merge by themselves, each as a change of
the journal that can be undone. If two machines have changed the same entry differently, both keep their own text, and
the text of the other one waits in the table of conflicts.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from memoranda.memory.curated.forgotten_entries import forgotten_hashes
from memoranda.memory.curated.memory_file import handle
from memoranda.memory.curated.operations import EntryEdit, EntryPlan, MemoryReceipt, MemoryRefusal, apply_edit
from memoranda.memory.curated.passages import forget_passages
from memoranda.memory.curated.settings import Target, file_name
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.writer import WriteRequest
from memoranda.support.canonical_text import canonical, digest
from memoranda.support.origin import Origin
from memoranda.support.text_matcher import TextMatcher
from memoranda.upkeep.sync.forgotten_texts import note_removed_entry
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync_state import SyncTables, Thing
from memoranda.upkeep.sync_versions import Version, first_version

_KIND = "entry"
ENTRY_FACTS = "facts "


def entries_of(tables: SyncTables, target: str) -> dict[str, Thing]:
    """The entries of a target, by their ids that all machines share."""
    return _of_target(tables.things(_KIND), target)


def set_entry(tables: SyncTables, target: str, uid: str, entry: Thing) -> None:
    """Store the version of an entry."""
    tables.set_thing(_KIND, f"{target} {uid}", entry)


def _of_target(things: dict[str, Thing], target: str) -> dict[str, Thing]:
    named = ((*name.rpartition(" ")[::2], thing) for name, thing in things.items())
    return {uid: thing for other, uid, thing in named if other == target}


def order_of(tables: SyncTables, target: str) -> list[str]:
    """The ids of the entries of a target in the order that the machines have agreed on."""
    return list(json.loads(tables.value(f"order:{target}", "[]")))


def set_order(tables: SyncTables, target: str, order: Sequence[str]) -> None:
    """Store the order that the machines have agreed on."""
    tables.set_value(f"order:{target}", json.dumps(list(order)))


Record = dict[str, Any]
# The first attempt may be refused once, because another program has changed the file.
_ATTEMPTS = 2


def entry_digest(text: str) -> str:
    return digest(canonical(text))


def targets_of(run: Run) -> tuple[Target, ...]:
    """Every target that this machine has, or had when it was last synchronised."""
    known = sorted({name.rpartition(" ")[0] for name in run.tables.things(_KIND)})
    return tuple(dict.fromkeys((*run.memory.storage.targets(), *known)))


def collect_entries(run: Run) -> None:
    """Give a version to every entry that was added, changed or removed since the last run."""
    store, tables = run.memory, run.tables
    last = store.journal.last()
    for target in targets_of(run):
        texts = {entry_digest(text): text for text in current_entries(store, target)}
        known = entries_of(tables, target)
        live = {entry.version.digest for entry in known.values() if entry.version.digest}
        gone = {
            entry.version.digest: uid for uid, entry in known.items() if entry.version.digest in live - texts.keys()
        }
        origins = _origins(store, target, int(tables.value("journal", "0")))
        forgotten = forgotten_hashes(store.storage.forgotten)
        for name, text in texts.items():
            if name in live:
                continue
            uid = gone.pop(entry_digest(origins[text]), None) if text in origins else None
            uid = uid or _new_uid(run, known, name)
            before = known.get(uid)
            entry = Thing(first_version(name), run.number) if before is None else run.next_thing(before, name)
            set_entry(tables, target, uid, entry)
        for name, uid in gone.items():
            was_forgotten = name in forgotten
            run.must_rewrite |= was_forgotten
            set_entry(tables, target, uid, run.next_thing(known[uid], "", forgotten=was_forgotten))
    tables.set_value("journal", str(last.number if last else 0))


def entry_records(run: Run, after: int, bundles: frozenset[str]) -> Iterator[Record]:
    sources = run.memory.journal.sources()
    for target in targets_of(run):
        texts = {entry_digest(text): text for text in current_entries(run.memory, target)}
        changed = run.tables.changed(_KIND, after, bundles)
        for uid, entry in _of_target(changed, target).items():
            version = entry.version
            record = {"t": "entry", "target": target, "uid": uid, "v": version.name, "was": sorted(version.replaced)}
            if not version.digest:
                yield record | {"text": None, "forgotten": entry.forgotten}
            elif version.digest in texts:
                text = texts[version.digest]
                yield record | {"text": text, "sources": sources.get(handle(text), ())}


def merge_entries(run: Run, records: Iterable[Record]) -> None:
    """Apply the entries of one bundle; what contradicts a change of this home becomes a conflict."""
    for record in records:
        if record["t"] == "entry":
            run.clock.see(record["v"])
            _merge_entry(run, record)


def apply_text(
    run: Run, target: Target, old: str | None, new: str | None, origin: Origin, done: str
) -> MemoryReceipt | MemoryRefusal:
    """Replace, add or remove an entry as one change of the journal; what is known about it goes with it."""

    def plan(current: Sequence[str]) -> EntryPlan:
        entries = list(current)
        position = entries.index(old) if old in entries else None
        edits = []
        if old == new:
            return EntryPlan(tuple(entries), ())
        if position is not None and new not in entries:
            edits = [EntryEdit(position, old, new)]
        elif position is not None:
            edits = [EntryEdit(position, old, None)]
        elif new is not None and new not in entries:
            edits = [EntryEdit(len(entries), None, new)]
        for edit in edits:
            apply_edit(entries, edit)
        return EntryPlan(tuple(entries), tuple(edits))

    known = {} if new is None else json.loads(run.tables.value(facts_key(target, new), "{}"))
    until, facts = ({new: known.pop("until")}, {new: known}) if new is not None and known else ({}, {})
    request = WriteRequest(target, "batch", origin, plan, done, until=until, facts=facts)
    for _ in range(_ATTEMPTS):
        outcome = run.memory.commit(request)
        if isinstance(outcome, MemoryReceipt) or outcome.reason != "drift":
            break
    return outcome


def facts_key(target: Target, text: str) -> str:
    """The name of the value with the facts of an entry."""
    return f"{ENTRY_FACTS}{target} {entry_digest(text)}"


def current_entries(store: MemoryStore, target: Target) -> list[str]:
    return list(dict.fromkeys(entry.text for entry in store.view(target).entries))


def _merge_entry(run: Run, record: Record) -> None:
    target: Target = record["target"]
    uid, forgotten = record["uid"], bool(record.get("forgotten"))
    text = None if record["text"] is None else canonical(record["text"])
    theirs = Version(record["v"], "" if text is None else entry_digest(text), frozenset(record["was"]))
    known = entries_of(run.tables, target).get(uid)
    if known is not None and known.version.follows(theirs):
        return
    if known is not None and not theirs.follows(known.version):
        ours = known.version
        if ours.digest == theirs.digest:
            merged = Thing(ours.merged(theirs, ours.digest), run.number, "", known.forgotten or forgotten)
            set_entry(run.tables, target, uid, merged)
            run.tables.drop_conflict(target, uid)
        else:
            run.tables.add_conflict(target, uid, text, theirs, run.sender)
        return
    texts = {entry_digest(each): each for each in current_entries(run.memory, target)}
    old = texts.get(known.version.digest) if known is not None else None
    sources = tuple(record.get("sources", ()))
    origin = Origin(f"sync:{run.sender or run.bundle[:12]}", explicit=True, sources=sources)
    if text is None and old is not None and forgotten:
        note_removed_entry(run, old)
        forget_passages(run.memory, TextMatcher([old]))
        run.must_rewrite = True
    else:
        outcome = apply_text(run, target, old, text, origin, f"Merged into {file_name(target)}.")
        if isinstance(outcome, MemoryRefusal):
            # It is full, or the text looks like an attack: a person decides.
            run.report.refused.append(f"{file_name(target)}: {outcome.message}")
            run.tables.add_conflict(target, uid, text, theirs, run.sender)
            return
        run.report.count(run.report.received, "entries", len(outcome.edits))
    set_entry(run.tables, target, uid, Thing(theirs, run.number, run.bundle, forgotten))
    run.tables.drop_conflict(target, uid)


def _origins(store: MemoryStore, target: Target, after: int) -> dict[str, str]:
    """The text that each entry had at the last run, by its text now, as the journal tells it."""
    origins: dict[str, str] = {}
    for change in store.journal.changes():
        if change.number <= after or change.target != target or change.action == "found":
            continue
        for edit in change.edits:
            if edit.before is not None and edit.after is not None:
                origins[edit.after] = origins.pop(edit.before, edit.before)
            elif edit.before is not None:
                origins.pop(edit.before, None)
    return origins


def _new_uid(run: Run, known: dict[str, Thing], name: str) -> str:
    """The id of a new entry: by its text, so that the same entry on two machines is one."""
    uid = name[:32]
    if uid in known and known[uid].version.digest:
        # The entry that began with this text has another one now.
        return f"{uid[:16]}{run.clock.name()}"
    return uid
