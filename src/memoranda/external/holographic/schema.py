"""The tables of facts, in `home.db` or on a server, and those of the cache with their words, vectors and links.

Only what cannot be derived is in the tables of facts. Each node of a server has a cache of its own.
"""

from collections.abc import Callable, Iterator
from typing import Any

from memoranda.storage.connection import Connection
from memoranda.storage.schema import Column, Forgetting, RowIssue, Schema, ServerTables, Table, is_json_list

APPLICATION_ID = int.from_bytes(b"Holo", "big")

FACTS = Table(
    "facts",
    "One row per fact.",
    (
        Column("fact_id", "numbered", "", "Order of writing."),
        Column("content", "text", "NOT NULL", "The fact as it was written."),
        Column("content_key", "text", "NOT NULL", "A digest of the normalised text; there is one fact per key."),
        Column("category", "text", "NOT NULL", "user_pref, project, tool or general."),
        Column("tags", "text", "NOT NULL DEFAULT ''", "Joined by commas."),
        Column("trust_score", "real", "NOT NULL", "0 to 1; rises and falls with feedback."),
        Column("retrieval_count", "integer", "NOT NULL DEFAULT 0", "How often it was returned."),
        Column("helpful_count", "integer", "NOT NULL DEFAULT 0", "How often it was rated helpful."),
        Column("created_at", "real", "NOT NULL", "Seconds since 1970."),
        Column("updated_at", "real", "NOT NULL", "When its content was last changed; age counts from here."),
        Column("session_id", "text", "NOT NULL DEFAULT ''", "The session that it comes from."),
        Column("message", "text", "NOT NULL DEFAULT ''", "The message or tool call that it comes from."),
        Column("written_by", "text", "NOT NULL DEFAULT ''", "tool, mirror, extraction or a caller's name."),
        Column("mirror_of", "text", "NOT NULL DEFAULT ''", "memory or user: a copy of an entry of curated memory."),
        Column("entity_count", "integer", "NOT NULL DEFAULT 0", "How many entities its vector contains."),
        Column("encoding", "text", "NOT NULL DEFAULT ''", "The encoding of its vector; an outdated one is replaced."),
        Column("sketch", "blob", "", "The signs of its vector."),
    ),
)  # fmt: skip

_VECTORS = Table(
    "vectors",
    "The vectors of the facts, in a separate table so that scanning the facts stays fast.",
    (Column("fact_id", "integer", "PRIMARY KEY"), Column("vector", "blob", "NOT NULL", "Phases, two bytes each.")),
)

_MEANINGS = Table(
    "meanings",
    "What a sentence encoder makes of the facts, if the home has one; a cache.",
    (
        Column("fact_id", "integer", "PRIMARY KEY"),
        Column("model", "text", "NOT NULL", "The encoder; vectors of different ones are never compared."),
        Column("vector", "blob", "NOT NULL", "Floats of four bytes, of length 1."),
    ),
)

ENTITIES = Table(
    "entities",
    "The people and things that facts are about.",
    (
        Column("entity_id", "numbered", "", "Order of first mention."),
        Column("name", "text", "NOT NULL", "As it was first written."),
        Column("name_key", "text", "NOT NULL", "Normalised; one entity per key."),
        Column("entity_type", "text", "NOT NULL DEFAULT ''", "name, quoted, handle, code, given or user."),
        Column("created_at", "real", "NOT NULL", "Seconds since 1970."),
        Column("encoding", "text", "NOT NULL DEFAULT ''", "How its sketch is encoded."),
        Column("sketch", "blob", "", "The sketch of its name."),
    ),
)

ALIASES = Table(
    "aliases",
    "All names of the entities, including their main names.",
    (
        Column("alias_key", "text", "PRIMARY KEY", "Normalised."),
        Column("alias", "text", "NOT NULL", "As it was written."),
        Column("entity_id", "integer", "NOT NULL", "The entity."),
    ),
)

FACT_ENTITIES = Table(
    "fact_entities",
    "Which facts are about which entities.",
    (Column("fact_id", "integer", "NOT NULL"), Column("entity_id", "integer", "NOT NULL")),
)

WORDS = "CREATE VIRTUAL TABLE IF NOT EXISTS fact_words USING fts5 (text, tokenize = 'ascii')"

CACHE_SCHEMA = Schema(
    version=1,
    tables=(FACTS, _VECTORS, _MEANINGS, ENTITIES, ALIASES, FACT_ENTITIES),
    indexes=(
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_facts_key ON facts(content_key)",
        "CREATE INDEX IF NOT EXISTS idx_facts_encoding ON facts(encoding)",
        "CREATE INDEX IF NOT EXISTS idx_facts_mirror ON facts(mirror_of) WHERE mirror_of != ''",
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_entities_key ON entities(name_key)",
        "CREATE INDEX IF NOT EXISTS idx_aliases_entity ON aliases(entity_id)",
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_links_fact ON fact_entities(fact_id, entity_id)",
        "CREATE INDEX IF NOT EXISTS idx_links_entity ON fact_entities(entity_id)",
        WORDS,
    ),
)

_DERIVED = ("entity_count", "encoding", "sketch")
COPIED = tuple(column for column in FACTS.columns if column.name not in ("fact_id", *_DERIVED))
"""The columns that a cache has, too, besides the number of the fact."""

_SHARED_FACTS = Table(
    "shared_facts",
    "One row per fact of each user; a removed fact leaves its number.",
    (
        Column("id", "numbered", "", "No meaning."),
        Column("user_id", "text", "NOT NULL", "The user; empty for the home's owner."),
        Column("fact_id", "integer", "NOT NULL", "The number of the fact; each user's facts are numbered from 1."),
        Column("revision", "integer", "NOT NULL", "The number of the user's change in which the row was last written."),
        *COPIED,
        Column("given_names", "text", "NOT NULL DEFAULT ''", "The entities that the writer named, as a JSON list."),
        Column("removed", "integer", "NOT NULL DEFAULT 0", "1 if the fact was removed."),
    ),
)
_FACT_REVISIONS = Table(
    "fact_revisions",
    "How far each user's facts have changed.",
    (
        Column("user_id", "text", "PRIMARY KEY", "The user; empty for the home's owner."),
        Column("revision", "integer", "NOT NULL", "The number of the last change."),
        Column("last_removal", "integer", "NOT NULL DEFAULT 0", "The number of the last change that removed a fact."),
    ),
)


EMPTY: dict[str, Any] = {column.name: {"text": "", "real": 0.0, "integer": 0}[column.kind] for column in COPIED}
"""The values of `COPIED` in a row without content."""


def removed_values(fact_id: int) -> dict[str, Any]:
    """The values of a row without content; its key is unique among removed facts."""
    return EMPTY | {"content_key": f"removed:{fact_id}"}


def next_revision(connection: Connection, user: str, *, removal: bool) -> int:
    """The number of a change of a user's facts, which is now the last one."""
    (revision,) = connection.execute(
        "INSERT INTO fact_revisions (user_id, revision) VALUES (?, 1)"
        " ON CONFLICT (user_id) DO UPDATE SET revision = fact_revisions.revision + 1 RETURNING revision",
        (user,),
    ).fetchone()
    if removal:
        connection.execute("UPDATE fact_revisions SET last_removal = revision WHERE user_id = ?", (user,))
    return int(revision)


def _remove_facts_with(connection: Connection, matches: Callable[[str], bool], user: str) -> int:
    """Remove the facts of a user with a matching text; a fact with a mark in it would say nothing."""
    rows = connection.execute(
        "SELECT fact_id, content, tags, given_names FROM shared_facts WHERE user_id = ? AND removed = 0", (user,)
    ).fetchall()
    numbers = [number for number, *texts in rows if any(map(matches, texts))]
    if numbers:
        revision = next_revision(connection, user, removal=True)
        names = ", ".join(f"{column.name} = ?" for column in COPIED)
        connection.executemany(
            f"UPDATE shared_facts SET {names}, given_names = '', removed = 1, revision = ?"
            " WHERE user_id = ? AND fact_id = ?",
            [(*removed_values(number).values(), revision, user, number) for number in numbers],
        )
    return len(numbers)


# Nodes ask for what came after the number they know, so a row with a higher one than the user's counter is overlooked.
_OVERLOOKED = (
    "SELECT f.user_id, max(f.revision), count(*) FROM shared_facts f"
    " LEFT JOIN fact_revisions r ON r.user_id = f.user_id"
    " WHERE f.revision > COALESCE(r.revision, 0) GROUP BY f.user_id ORDER BY f.user_id"
)


def _check_rows(connection: Connection, _on_server: bool) -> Iterator[RowIssue]:
    """Facts that are overlooked or unreadable."""
    if overlooked := connection.execute(_OVERLOOKED).fetchall():
        yield RowIssue(
            "error",
            f"{sum(row[2] for row in overlooked):,} facts of {len(overlooked):,} users that nodes overlook, because"
            " the number of the last change is too low",
            "raise that number",
            _raise_revisions,
        )
    rows = connection.execute("SELECT given_names FROM shared_facts WHERE given_names <> '' AND removed = 0").fetchall()
    if unreadable := sum(not is_json_list(text) for (text,) in rows):
        yield RowIssue(
            "error",
            f"{unreadable:,} facts whose names of entities cannot be read",
            "set given_names of those rows of shared_facts to '[]', or restore them from a backup",
        )


def _raise_revisions(connection: Connection) -> str:
    rows = connection.execute(_OVERLOOKED).fetchall()
    connection.executemany(
        "INSERT INTO fact_revisions (user_id, revision) VALUES (?, ?)"
        " ON CONFLICT (user_id) DO UPDATE SET revision = excluded.revision",
        [(user, revision) for user, revision, _ in rows],
    )
    return f"the facts of {len(rows):,} users are complete on every node again"


SCHEMA = Schema(
    version=1,
    name="facts",
    tables=(_SHARED_FACTS, _FACT_REVISIONS),
    indexes=(
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_shared_facts_id ON shared_facts(user_id, fact_id)",
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_shared_facts_key ON shared_facts(user_id, content_key)"
        " WHERE removed = 0",
        "CREATE INDEX IF NOT EXISTS idx_shared_facts_revision ON shared_facts(user_id, revision)",
    ),
    server=ServerTables(user_tables=tuple((table.name, "user_id") for table in (_SHARED_FACTS, _FACT_REVISIONS))),
    forgetting=Forgetting(texts=frozenset({"content", "tags", "given_names"}), delete_rows=_remove_facts_with),
    after_salvage=(
        "INSERT INTO fact_revisions (user_id, revision)"
        " SELECT user_id, max(revision) FROM shared_facts WHERE true GROUP BY user_id"
        " ON CONFLICT (user_id) DO UPDATE SET revision = max(fact_revisions.revision, excluded.revision)",
    ),
    check_rows=_check_rows,
)
