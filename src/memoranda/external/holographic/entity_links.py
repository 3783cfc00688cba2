"""The entities of the store: names and aliases, and the links between facts and entities.

Names are compared by key and only for equality. Two names become one entity if a text says so ("X aka Y"); the facts
of the merged entity are then encoded again.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from memoranda.external.holographic.encoding import Encoder
from memoranda.external.holographic.entities import Entity, key_of
from memoranda.storage.sqlite.database import Connection

_BATCH = 500
_T = TypeVar("_T")


class KnownEntity(NamedTuple):
    """An entity of the store; its vector is computed from `key`."""

    entity_id: int
    name: str
    key: str


def find_entity(connection: Connection, name: str) -> KnownEntity | None:
    """The entity with this name or alias."""
    row = connection.execute(
        "SELECT entities.entity_id, name, name_key FROM aliases JOIN entities USING (entity_id) WHERE alias_key = ?",
        (key_of(name),),
    ).fetchone()
    return KnownEntity(*row) if row else None


def known_keys(connection: Connection, names: list[str]) -> set[str]:
    """The keys of the names that are known."""
    found: set[str] = set()
    for batch in _batches([key_of(name) for name in names]):
        marks = ", ".join("?" * len(batch))
        found |= {
            row[0] for row in connection.execute(f"SELECT alias_key FROM aliases WHERE alias_key IN ({marks})", batch)
        }
    return found


def link(
    connection: Connection, encoder: Encoder, fact_id: int, entities: Iterable[Entity], now: float
) -> list[KnownEntity]:
    """Replaces the entities of a fact with these."""
    connection.execute("DELETE FROM fact_entities WHERE fact_id = ?", (fact_id,))
    for entity in entities:
        known = _resolve(connection, encoder, entity, now)
        if entity.alias_of:
            other = _resolve(connection, encoder, Entity(entity.alias_of), now)
            known = _merge(connection, other, known)
        connection.execute(
            "INSERT INTO fact_entities (fact_id, entity_id) VALUES (?, ?) ON CONFLICT DO NOTHING",
            (fact_id, known.entity_id),
        )
    return entities_of(connection, [fact_id]).get(fact_id, [])


def entities_of(connection: Connection, fact_ids: Sequence[int]) -> dict[int, list[KnownEntity]]:
    """The entities of each fact, in the order of their first mention."""
    found: dict[int, list[KnownEntity]] = {}
    for batch in _batches(list(fact_ids)):
        marks = ", ".join("?" * len(batch))
        rows = connection.execute(
            "SELECT fact_id, entity_id, name, name_key FROM fact_entities JOIN entities USING (entity_id)"
            f" WHERE fact_id IN ({marks}) ORDER BY entity_id",
            batch,
        )
        for fact_id, *known in rows:
            found.setdefault(fact_id, []).append(KnownEntity(*known))
    return found


def aliases_of(connection: Connection) -> dict[int, list[str]]:
    """Every name of every entity."""
    names: dict[int, list[str]] = {}
    for entity_id, alias in connection.execute("SELECT entity_id, alias FROM aliases"):
        names.setdefault(entity_id, []).append(alias)
    return names


def similar_names(
    connection: Connection, encoder: Encoder, name: str, min_coverage: float
) -> list[tuple[float, KnownEntity]]:
    """The entities with a name that contains or resembles this one, best first."""
    key = key_of(name)
    name_sketch = int.from_bytes(encoder.name_sketch(key), "little")
    found = []
    for entity_id, known_name, known_key, sketch in connection.execute(
        "SELECT entity_id, name, name_key, sketch FROM entities WHERE encoding = ?", (encoder.name,)
    ):
        coverage = encoder.name_coverage(key, name_sketch, known_key, int.from_bytes(sketch, "little"))
        if coverage >= min_coverage:
            found.append((min(1.0, coverage), KnownEntity(entity_id, known_name, known_key)))
    return sorted(found, key=lambda pair: (-pair[0], len(pair[1].key), pair[1].entity_id))


def drop_unused(connection: Connection) -> None:
    """Removes the entities that no fact is about."""
    unused = "SELECT entity_id FROM entities WHERE entity_id NOT IN (SELECT entity_id FROM fact_entities)"
    connection.execute(f"DELETE FROM aliases WHERE entity_id IN ({unused})")
    connection.execute("DELETE FROM entities WHERE entity_id NOT IN (SELECT entity_id FROM fact_entities)")


def _resolve(connection: Connection, encoder: Encoder, entity: Entity, now: float) -> KnownEntity:
    known = find_entity(connection, entity.name)
    if known is not None:
        return known
    key = key_of(entity.name)
    row = connection.execute(
        "INSERT INTO entities (name, name_key, entity_type, created_at, encoding, sketch) VALUES (?, ?, ?, ?, ?, ?)",
        (entity.name, key, entity.kind, now, encoder.name, encoder.name_sketch(key)),
    )
    entity_id = int(row.lastrowid or 0)
    connection.execute(
        "INSERT INTO aliases (alias_key, alias, entity_id) VALUES (?, ?, ?)", (key, entity.name, entity_id)
    )
    return KnownEntity(entity_id, entity.name, key)


def _merge(connection: Connection, target: KnownEntity, merged: KnownEntity) -> KnownEntity:
    """Merges an entity into the target, which gets all names; the facts of the merged one will be encoded again."""
    if target.entity_id == merged.entity_id:
        return target
    numbers = (target.entity_id, merged.entity_id)
    connection.execute(
        "UPDATE facts SET encoding = '' WHERE fact_id IN (SELECT fact_id FROM fact_entities WHERE entity_id = ?)",
        (merged.entity_id,),
    )
    connection.execute("UPDATE OR IGNORE fact_entities SET entity_id = ? WHERE entity_id = ?", numbers)
    connection.execute("DELETE FROM fact_entities WHERE entity_id = ?", (merged.entity_id,))
    connection.execute("UPDATE aliases SET entity_id = ? WHERE entity_id = ?", numbers)
    connection.execute("DELETE FROM entities WHERE entity_id = ?", (merged.entity_id,))
    return target


def _batches(items: list[_T]) -> Iterator[list[_T]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]
