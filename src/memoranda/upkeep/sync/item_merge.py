"""Items: which of this home changed since the last run, and merging those of another machine.

The history of an item has the versions of all machines, so the later write wins. An item that was removed as a whole,
because its name was forgotten, is removed on the other machines, unless it was written since.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from memoranda.errors import SessionError
from memoranda.memory.record.items import encode_namespace, identify
from memoranda.memory.record.transfer.items import ITEM
from memoranda.support.text_matcher import MARK
from memoranda.upkeep.sync.forgotten_texts import note_removed_texts
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync_state import Thing
from memoranda.upkeep.sync_versions import Version, digest_of

Record = dict[str, Any]
_KIND = "item"


def collect_items(run: Run) -> None:
    """Note the items that were written, forgotten or removed since the last run."""
    tables = run.tables
    position = ",".join(map(str, run.db.synced_items.item_position()))
    if tables.value("items", "0,0") == position:
        return
    known = _known(run)
    states = run.db.synced_items.item_states()
    for item_id, item in _exported(run):
        digest = _digest(item)
        before = known.get(item_id)
        if before is None or before[0] != digest:
            run.must_rewrite |= before is not None and MARK in str(item)
            _set(run, item_id, digest, states.get(item_id, 0.0), "")
    for item_id, (digest, written_at) in known.items():
        if digest and item_id not in states:
            _set(run, item_id, "", written_at, "")
    tables.set_value("items", position)


def item_records(run: Run, after: int, bundles: frozenset[str]) -> Iterator[Record]:
    """The records of items that changed after a run."""
    changed = {name: _parts(each) for name, each in run.tables.changed(_KIND, after, bundles).items()}
    for item_id, (digest, written_at) in changed.items():
        if not digest:
            yield {"t": "item", "id": item_id, "gone": True, "at": written_at, "forgotten": run.must_rewrite}
    if any(digest for digest, _ in changed.values()):
        for item_id, item in _exported(run):
            if item_id in changed and changed[item_id][0]:
                yield {"t": "item", "id": item_id, "item": item}


def merge_items(run: Run, records: Iterable[Record]) -> None:
    """Apply the items of one bundle."""
    merged: set[str] = set()
    for record in records:
        if record["t"] != "item":
            continue
        item_id = record["id"]
        if record.get("gone"):
            if run.db.synced_items.remove_item(item_id, record["at"]):
                if record.get("forgotten", True):
                    # Not because it has expired.
                    run.has_forgotten = run.must_rewrite = True
                run.report.count(run.report.received, "removed items")
            _set(run, item_id, "", record["at"], run.bundle)
            continue
        known = _known(run).get(item_id)
        if known is not None and not known[0] and record["item"]["versions"][-1]["updated_at"] <= known[1]:
            # It was removed as a whole after this was written.
            continue
        note_removed_texts(run, run.db.synced_items.marked_values(item_id, record["item"]))
        try:
            changed, forgotten = run.db.synced_items.merge_item(record["item"])
        except SessionError as error:
            run.report.refused.append(f"item {record['item']['key'][:60]!r}: {error}")
            continue
        run.report.count(run.report.received, "items", int(changed))
        if forgotten:
            run.has_forgotten = run.must_rewrite = True
        merged.add(item_id)
    if merged:
        states = run.db.synced_items.item_states()
        digests = {
            record["id"]: _digest(record["item"])
            for record in records
            if record.get("id") in merged and "item" in record
        }
        for item_id, item in _exported(run):
            if item_id in merged:
                digest = _digest(item)
                is_theirs = digest == digests.get(item_id)
                _set(run, item_id, digest, states.get(item_id, 0.0), run.bundle if is_theirs else "")


def _exported(run: Run) -> Iterator[tuple[str, Record]]:
    for exported in run.db.item_transfer.iter_export():
        item = exported[ITEM]
        yield identify(item["user_id"], encode_namespace(tuple(item["namespace"])), item["key"]), item


def _digest(item: Record) -> str:
    """What machines must agree on: all versions, but for their numbers."""
    return digest_of([[each.get("value"), each["event"], each["updated_at"]] for each in item["versions"]])


def _known(run: Run) -> dict[str, tuple[str, float]]:
    return {name: _parts(each) for name, each in run.tables.things(_KIND).items()}


def _parts(thing: Thing) -> tuple[str, float]:
    """The digest of an item, and when it was last written, which is its version."""
    return thing.version.digest, float(thing.version.name)


def _set(run: Run, item_id: str, digest: str, written_at: float, bundle: str) -> None:
    run.tables.set_thing(_KIND, item_id, Thing(Version(repr(written_at), digest), run.number, bundle))
