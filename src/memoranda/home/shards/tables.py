"""The tables of shards: the directory in the first store, and in every store which users have moved away."""

from memoranda.storage.schema import Column, Schema, Table

_STORES = Table(
    "stores",
    "The stores of a fleet; only the first store has rows here.",
    (
        Column("number", "integer", "NOT NULL UNIQUE", "The number of the store, from 0."),
        Column("store_id", "text", "NOT NULL", "The random id of its record, so that no other store gets its number."),
        Column("added_at", "real", "NOT NULL", "When it was added."),
    ),
)
_SHARDS = Table(
    "shards",
    "Which store has which shard; only the first store has rows here.",
    (
        Column("shard", "integer", "NOT NULL UNIQUE", "The number of the shard, 0 to 63."),
        Column("store", "integer", "NOT NULL", "The number of its store."),
        Column("moving_to", "integer", "", "The number of the store that it is moving to, if it is."),
    ),
)
_MOVED_USERS = Table(
    "moved_users",
    "Users whose rows here are only a copy from before they moved: writing them is refused.",
    (
        Column("user_id", "text", "NOT NULL UNIQUE", "The user; '' is the owner of the home."),
        Column("store", "integer", "NOT NULL", "The number of the store that has the user now."),
    ),
)
_MOVED_SHARDS = Table(
    "moved_shards",
    "Shards that have moved away completely: no user of theirs may be created here.",
    (
        Column("shard", "integer", "NOT NULL UNIQUE", "The number of the shard."),
        Column("store", "integer", "NOT NULL", "The number of the store that has it now."),
    ),
)

SCHEMA = Schema(1, (_STORES, _SHARDS, _MOVED_USERS, _MOVED_SHARDS), (), name="shards")
