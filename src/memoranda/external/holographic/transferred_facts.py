"""Whole facts by the digest of their text, for the synchronisation of two homes."""

from collections.abc import Mapping
from typing import Any

from memoranda.external.holographic.fact import FactError
from memoranda.external.holographic.fact_store import FactStore
from memoranda.storage.sqlite.database import Connection

TEXTS = ("content", "category", "tags", "session_id", "message", "written_by", "mirror_of")
NUMBERS = ("trust_score", "helpful_count", "created_at", "updated_at")
_COLUMNS = (*TEXTS, *NUMBERS)


def read_facts(store: FactStore) -> dict[str, dict[str, Any]]:
    """All facts by their keys, without what each machine has of its own; `entities` are names that a writer gave."""
    with store.database.reading() as connection:
        given = given_names(connection)
        rows = connection.execute(
            f"SELECT fact_id, content_key, {', '.join(_COLUMNS)} FROM facts ORDER BY fact_id"
        ).fetchall()
    return {
        key: dict(zip(_COLUMNS, values, strict=True)) | {"entities": given.get(fact_id)}
        for fact_id, key, *values in rows
    }


def given_names(connection: Connection) -> dict[int, list[str]]:
    """The names of the entities of facts whose writer named them; those of the others are found in the text."""
    rows = connection.execute(
        "SELECT fact_id, name, entity_type FROM fact_entities JOIN entities USING (entity_id) ORDER BY entity_id"
    ).fetchall()
    named = {fact_id for fact_id, _, kind in rows if kind == "given"}
    found: dict[int, list[str]] = {}
    for fact_id, name, _ in rows:
        if fact_id in named:
            found.setdefault(fact_id, []).append(name)
    return found


def put_fact(store: FactStore, key: str, state: Mapping[str, Any]) -> None:
    """Add a fact, or give the one with this key these values; raises FactError if it would get another key."""
    fact, is_new = store.add(state["content"], category=state["category"], entities=state["entities"])
    with store.database.writing() as connection:
        (stored,) = connection.execute("SELECT content_key FROM facts WHERE fact_id = ?", (fact.fact_id,)).fetchone()
        if stored == key:
            assignments = ", ".join(f"{name} = ?" for name in _COLUMNS)
            values = [state[name] for name in _COLUMNS]
            connection.execute(f"UPDATE facts SET {assignments} WHERE fact_id = ?", (*values, fact.fact_id))
    if stored != key:
        if is_new:
            store.remove(fact.fact_id)
        raise FactError("It contains a secret, and is not stored.")
    # Its words contain its tags, and entries about the user are linked to the user.
    store.relink(fact.fact_id, state["entities"])


def remove_fact(store: FactStore, key: str) -> None:
    """Remove the fact with a key, with all that it leaves in the file."""
    with store.database.reading() as connection:
        row = connection.execute("SELECT fact_id FROM facts WHERE content_key = ?", (key,)).fetchone()
    if row is not None:
        store.remove(row[0])
        store.erase_removed()
