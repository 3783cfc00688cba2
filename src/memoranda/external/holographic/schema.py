"""The tables of `holographic.db`."""

from memoranda.storage.schema import Column, Schema, Table

APPLICATION_ID = int.from_bytes(b"Holo", "big")
VERSION = 2

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

VECTORS = Table(
    "vectors",
    "The vectors of the facts, in a separate table so that scanning the facts stays fast.",
    (Column("fact_id", "integer", "PRIMARY KEY"), Column("vector", "blob", "NOT NULL", "Phases, two bytes each.")),
)

MEANINGS = Table(
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

STATE_META = Table(
    "state_meta", "Facts about the store.", (Column("key", "text", "PRIMARY KEY"), Column("value", "text"))
)
SCHEMA_VERSION = Table("schema_version", "A single row.", (Column("version", "integer", "NOT NULL"),))

WORDS = "CREATE VIRTUAL TABLE IF NOT EXISTS fact_words USING fts5 (text, tokenize = 'ascii')"

SCHEMA = Schema(
    version=VERSION,
    tables=(FACTS, VECTORS, MEANINGS, ENTITIES, ALIASES, FACT_ENTITIES, STATE_META, SCHEMA_VERSION),
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
