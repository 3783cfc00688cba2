"""Triggers that refuse to change the rows of a user who has moved, and that let a move wait for writers.

A writer shares two locks until its transaction ends: that of its user and that of the shard. A move takes one of them
for itself, so it starts when all writers of the user have finished, and those that come later wait until it has ended.
They then find that the user has moved. A node that does not know of the move yet cannot lose a write that way.
"""

from memoranda.home.shards.placement import shard_expression
from memoranda.storage.connection import Connection
from memoranda.storage.postgres.pool import MOVED
from memoranda.storage.postgres.row_security import POLICY, SETTING

# A move itself copies and deletes rows.
_MOVING = "memoranda.moving"
SET_MOVING = f"set_config('{_MOVING}', 'on', true)"
_TRIGGER = "refuse_moved_user"
USER_LOCK, SHARD_LOCK = 11, 12
_USER_COLUMN = "user_id"


def user_tables(connection: Connection) -> list[str]:
    """The tables of this store that have rows of users, of all components."""
    rows = connection.execute(
        "SELECT tablename::text FROM pg_policies WHERE schemaname = current_schema() AND policyname = ? ORDER BY 1",
        (POLICY,),
    )
    return [table for (table,) in rows]


def install_fences(connection: Connection) -> None:
    """Create the triggers on the tables with rows of users that have none; an upgrade may have added tables."""
    # PostgreSQL refuses the second of two transactions that create the same function.
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' fences', 13))")
    rows = connection.execute(
        "SELECT relname::text FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid"
        " WHERE tgname = ? AND relnamespace = current_schema()::regnamespace",
        (_TRIGGER,),
    )
    # Creating one that exists would make all writers wait.
    existing = {table for (table,) in rows}
    for table in user_tables(connection):
        if table in existing:
            continue
        function = f"{_TRIGGER}_of_{table}"
        column = user_column(connection, table)
        own = f"changed.{column}, " if column else ""
        user = f"COALESCE({own}substr(current_setting('{SETTING}', true), 3), '')"
        connection.execute(_function(function, table, user))
        connection.execute(
            f"CREATE OR REPLACE TRIGGER {_TRIGGER} BEFORE INSERT OR UPDATE OR DELETE ON {table}"
            f" FOR EACH ROW EXECUTE FUNCTION {function}()"
        )


def lock_user(connection: Connection, user: str) -> None:
    """Wait for the writers of a user, and let later ones wait until this transaction ends."""
    connection.execute(f"SELECT pg_advisory_xact_lock({_lock_key('?', USER_LOCK)})", (user,))


def lock_shard(connection: Connection, shard: int) -> None:
    """Wait for the writers of all users of a shard, and let later ones wait until this transaction ends."""
    connection.execute(f"SELECT pg_advisory_xact_lock({_lock_key('?', SHARD_LOCK)})", (str(shard),))


def _lock_key(name: str, kind: int) -> str:
    return f"hashtextextended(current_schema() || ' ' || {name}, {kind})"


def user_column(connection: Connection, table: str) -> str:
    """The column with the user of a row; "" if the table has none, such as that of messages."""
    found = connection.execute(
        "SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass(?) AND attname = ? AND NOT attisdropped",
        (table, _USER_COLUMN),
    ).fetchone()
    return _USER_COLUMN if found else ""


def _function(name: str, table: str, user: str) -> str:
    return f"""
CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $function$
DECLARE
    changed {table}%ROWTYPE;
    owner text;
    target bigint;
BEGIN
    IF TG_OP = 'DELETE' THEN changed := OLD; ELSE changed := NEW; END IF;
    IF current_setting('{_MOVING}', true) = 'on' THEN RETURN changed; END IF;
    owner := {user};
    PERFORM pg_advisory_xact_lock_shared({_lock_key("owner", USER_LOCK)});
    PERFORM pg_advisory_xact_lock_shared({_lock_key(shard_expression("owner") + "::text", SHARD_LOCK)});
    SELECT store INTO target FROM moved_users WHERE user_id = owner;
    IF target IS NULL THEN
        SELECT store INTO target FROM moved_shards WHERE shard = {shard_expression("owner")};
    END IF;
    IF target IS NOT NULL THEN
        RAISE EXCEPTION 'the user has moved to store %', target USING ERRCODE = '{MOVED}', DETAIL = target::text;
    END IF;
    RETURN changed;
END $function$"""
