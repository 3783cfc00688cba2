"""The tables of facts on a server: what cannot be derived. Words, vectors and links are in the cache of each node."""

from memoranda.external.holographic.schema import FACTS
from memoranda.storage.schema import Column, Schema, ServerTables, Table

DERIVED = ("entity_count", "encoding", "sketch")
COPIED = tuple(column for column in FACTS.columns if column.name not in ("fact_id", *DERIVED))
"""The columns that a server and a file have in common, besides the number of the fact."""

SHARED_FACTS = Table(
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
FACT_REVISIONS = Table(
    "fact_revisions",
    "How far each user's facts have changed.",
    (
        Column("user_id", "text", "PRIMARY KEY", "The user; empty for the home's owner."),
        Column("revision", "integer", "NOT NULL", "The number of the last change."),
        Column("last_removal", "integer", "NOT NULL DEFAULT 0", "The number of the last change that removed a fact."),
    ),
)
SERVER_SCHEMA = Schema(
    version=1,
    name="facts",
    tables=(SHARED_FACTS, FACT_REVISIONS),
    indexes=(
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_shared_facts_id ON shared_facts(user_id, fact_id)",
        "CREATE UNIQUE INDEX IF NOT EXISTS idx_shared_facts_key ON shared_facts(user_id, content_key)"
        " WHERE removed = 0",
        "CREATE INDEX IF NOT EXISTS idx_shared_facts_revision ON shared_facts(user_id, revision)",
    ),
    server=ServerTables(user_tables=tuple((table.name, "user_id") for table in (SHARED_FACTS, FACT_REVISIONS))),
)
