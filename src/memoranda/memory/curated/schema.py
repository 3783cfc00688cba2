"""The tables of curated memory in a database: one per concept, every row with its user."""

from memoranda.storage.schema import Column, Schema, ServerTables, Table

_USER = Column("user_id", "text", "NOT NULL", "The user of a gateway; empty for the home's owner.")
_NAME = Column("name", "text", "NOT NULL", "The name that the file would have.")
_CONTENT = Column("content", "text", "NOT NULL", "The text as it would be in the file.")
_MODIFIED = Column("modified", "real", "NOT NULL", "When it was last written, in seconds since 1970.")
_TEXT_COLUMNS = (_USER, _NAME, _CONTENT, _MODIFIED)

MEMORY = Table("curated_memory", "One row per MEMORY.md and USER.md: its entries, separated by §.", _TEXT_COLUMNS)
JOURNAL = Table(
    "curated_journal",
    "One row per change of curated memory, in order.",
    (Column("id", "numbered", "", "Order."), _USER, Column("line", "text", "NOT NULL", "The change, as JSON.")),
)
PROPOSALS = Table(
    "curated_proposals",
    "One row per proposed write that was not approved yet, or was rejected.",
    _TEXT_COLUMNS,
)
BACKUPS = Table("curated_backups", "Copies of texts that other programs had changed.", _TEXT_COLUMNS)
ALLOWANCES = Table("curated_allowances", "The findings of the scanner that a person accepted, as JSON.", _TEXT_COLUMNS)
FORGOTTEN = Table("curated_forgotten", "The hashes of forgotten entries, as JSON.", _TEXT_COLUMNS)
_TEXTS = (MEMORY, PROPOSALS, BACKUPS, ALLOWANCES, FORGOTTEN)

SCHEMA = Schema(
    version=1,
    tables=(JOURNAL, *_TEXTS),
    indexes=(
        "CREATE INDEX IF NOT EXISTS idx_curated_journal ON curated_journal(user_id, id)",
        *(f"CREATE UNIQUE INDEX IF NOT EXISTS idx_{table.name} ON {table.name}(user_id, name)" for table in _TEXTS),
    ),
    name="curated",
    server=ServerTables(user_tables=tuple((table.name, "user_id") for table in (JOURNAL, *_TEXTS))),
)
