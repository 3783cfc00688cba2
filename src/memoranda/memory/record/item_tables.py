"""The tables of items, each column with its meaning; the reference page on tables is generated from it."""

from memoranda.storage.schema import Column, Table

ITEMS = Table(
    "memory_items",
    "One row per version of an item. The row with `current` = 1 is the item; the others are its history.",
    (
        Column("id", "numbered", "", "Increases with every version of any item and is never reused."),
        Column("item_id", "text", "NOT NULL", "A hash of user, namespace and key, which all versions share."),
        Column("user_id", "text", "", "The user it belongs to; null for the owner of the home."),
        Column("namespace", "text", "NOT NULL", "The labels of its namespace, as a JSON list."),
        Column("key", "text", "NOT NULL", "Its key within the namespace."),
        Column("value", "text", "", "The value, as JSON; null if this version says that the item was deleted."),
        Column("indexed", "text", "", "null: all texts are searchable; else a JSON list of the paths that are."),
        Column("version", "integer", "NOT NULL", "Counts the versions of the item, from 1."),
        Column("event", "text", "NOT NULL", "What made this version: add, update or delete."),
        Column("current", "integer", "NOT NULL DEFAULT 0", "1: the live version of the item, until it expires."),
        Column("created_at", "real", "NOT NULL", "When the item was added, in seconds since 1970."),
        Column("updated_at", "real", "NOT NULL", "When this version was written, in seconds since 1970."),
        Column("ttl", "real", "", "How many seconds it lives after a write, and after a read that refreshes it."),
        Column("expires_at", "real", "", "From then on no call returns it, in seconds since 1970; null: never."),
        Column("checksum", "integer", "", "CRC-32 of what was written, by which damage is noticed."),
    ),
)

ITEM_CHANGES = Table(
    "item_changes",
    "The feed of items that were replaced or removed, for the index of items.",
    (
        Column("seq", "numbered", "", "Increases with every change."),
        Column("item_id", "text", "NOT NULL", "The item that changed or was removed."),
    ),
)

ITEM_INDEXES = (
    "CREATE UNIQUE INDEX IF NOT EXISTS idx_items_version ON memory_items(item_id, version)",
    "CREATE UNIQUE INDEX IF NOT EXISTS idx_items_current ON memory_items(item_id) WHERE current = 1",
    "CREATE INDEX IF NOT EXISTS idx_items_namespace ON memory_items(user_id, namespace) WHERE current = 1",
    "CREATE INDEX IF NOT EXISTS idx_items_expiry ON memory_items(expires_at)"
    " WHERE expires_at IS NOT NULL AND current = 1",
)
