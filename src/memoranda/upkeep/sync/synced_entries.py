"""What `sync.db` knows about the entries of curated memory: their versions, and their order."""

import json
from collections.abc import Sequence

from memoranda.upkeep.sync.state import SyncTables, version_names
from memoranda.upkeep.sync.versions import Version


def entries_of(tables: SyncTables, target: str) -> dict[str, tuple[Version, bool]]:
    """The entries of a target: version and whether it was forgotten, by uid."""
    rows = tables.connection.execute(
        "SELECT uid, version, digest, replaced, forgotten FROM synced_entries WHERE target = ?", (target,)
    )
    return {row[0]: (Version(row[1], row[2], frozenset(json.loads(row[3]))), bool(row[4])) for row in rows}


def set_entry(
    tables: SyncTables, target: str, uid: str, version: Version, forgotten: bool, run: int, bundle: str
) -> None:
    """Store the version of an entry."""
    tables.connection.execute(
        "INSERT INTO synced_entries (target, uid, forgotten, version, digest, replaced, run, bundle)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (target, uid) DO UPDATE SET forgotten = excluded.forgotten,"
        " version = excluded.version, digest = excluded.digest, replaced = excluded.replaced, run = excluded.run,"
        " bundle = excluded.bundle",
        (target, uid, int(forgotten), version.name, version.digest, version_names(version.replaced), run, bundle),
    )


def order_of(tables: SyncTables, target: str) -> list[str]:
    """The ids of the entries of a target in the order that the machines have agreed on."""
    return list(json.loads(tables.value(f"order:{target}", "[]")))


def set_order(tables: SyncTables, target: str, order: Sequence[str]) -> None:
    """Store the order that the machines have agreed on."""
    tables.set_value(f"order:{target}", json.dumps(list(order)))
