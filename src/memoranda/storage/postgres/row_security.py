"""Row-level security: a second barrier between users, below the conditions that the store adds to its statements.

Every transaction says in the setting `memoranda.acting_for` for whom it acts, and policies hide the rows of all other
users. Without the setting no row is visible. The barrier catches a statement that lacks its condition; it does not
protect from a caller that can set the setting. Superusers and roles with BYPASSRLS are exempt, so the application
should log in as a plain role; owners of the tables are not exempt, because the tables force the policies on them.
"""

from memoranda.storage.postgres.connection import PostgresConnection, RawConnection, escape

EVERYONE = "*"
POLICY = "memoranda_user"
SHARED_POLICY = "memoranda_user_shared"
"""The policy of tables whose rows do not move with their users."""
SETTING = "memoranda.acting_for"


def setting_of(user: str | None) -> str:
    """The value of the setting for one user; None is the owner of the home."""
    return f"u:{user or ''}"


def set_locally(setting: str) -> str:
    """The statement that sets it until the end of the transaction; in hexadecimal, so that nothing needs quoting."""
    if setting == EVERYONE:
        return f"SELECT {SET_EVERYONE}"
    value = f"convert_from(decode('{escape(setting).encode().hex()}', 'hex'), 'UTF8')"
    return f"SELECT set_config('{SETTING}', {value}, true)"


SET_EVERYONE = f"set_config('{SETTING}', '{EVERYONE}', true)"
SET_EXPRESSION = f"set_config('{SETTING}', ?, true)"
"""An expression with one `?`, for statements that are transactions by themselves."""


def protect_table(connection: PostgresConnection, table: str, user: str, policy: str = POLICY) -> None:
    """Hide the rows of other users; `user` is an expression for the user of a row, '' for the owner."""
    visible = f"current_setting('{SETTING}', true) IN ('{EVERYONE}', 'u:' || {user})"
    connection.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    connection.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    connection.execute(f"DROP POLICY IF EXISTS {policy} ON {table}")
    connection.execute(f"CREATE POLICY {policy} ON {table} USING ({visible}) WITH CHECK ({visible})")


def why_not_effective(raw: RawConnection, tables: list[str]) -> str:
    """Why the barrier does not protect these tables from this login; '' if it does."""
    role, is_exempt = raw.execute(
        "SELECT rolname::text, rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    ).fetchone() or ("", False)
    if is_exempt:
        return f"the role {role} is a superuser or has BYPASSRLS"
    rows = raw.execute(
        "SELECT relname::text FROM pg_class WHERE oid = ANY(SELECT to_regclass(name) FROM unnest($1::text[]) name)"
        " AND NOT (relrowsecurity AND relforcerowsecurity) ORDER BY relname",
        [tables],
    ).fetchall()
    return f"it is switched off for {', '.join(name for (name,) in rows)}" if rows else ""
