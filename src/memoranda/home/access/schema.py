"""The tables of the service: API keys, the audit log, stored answers, and OAuth clients, grants and tokens.

No token is stored, only its SHA-256.

When a user is removed, the keys that act as the user are deleted. The audit log keeps that something was done, when,
and by which key. In place of the user it has a pseudonym, which a person who knows the id of the user can compute, and
no one can read.
"""

import hashlib

from memoranda.storage.connection import Connection
from memoranda.storage.schema import Column, Forgetting, Schema, ServerTables, Table

DEFAULT_TENANT = "default"

CLIENTS = Table(
    "oauth_clients",
    "One row per program that registered itself to ask for access.",
    (
        Column("id", "text", "PRIMARY KEY", "The client's id."),
        Column("name", "text", "NOT NULL", "How it calls itself; nothing proves it."),
        Column("redirect_uris", "text", "NOT NULL", "Where it receives codes: a JSON list."),
        Column("created", "real", "NOT NULL", "When it registered, in seconds since 1970."),
        Column("approved", "real", "", "When a person first approved it; a client that no one approves is deleted."),
    ),
)
GRANTS = Table(
    "oauth_grants",
    "One row per approval of a client by a person.",
    (
        Column("id", "text", "PRIMARY KEY", "The grant's id."),
        Column("client_id", "text", "NOT NULL", "The client that was approved."),
        Column("key_id", "text", "NOT NULL", "The API key with which it was approved; the grant ends with it."),
        Column("scopes", "text", "NOT NULL", "What was approved, separated by spaces."),
        Column("resource", "text", "NOT NULL", "The address for which the tokens are valid."),
        Column("created", "real", "NOT NULL", "When it was approved, in seconds since 1970."),
        Column("revoked", "real", "", "When it ended, in seconds since 1970."),
    ),
)
TOKENS = Table(
    "oauth_tokens",
    "One row per code, access token and refresh token, until it expires.",
    (
        Column("hash", "text", "PRIMARY KEY", "The SHA-256 of the token."),
        Column("kind", "text", "NOT NULL", "code, access or refresh."),
        Column("grant_id", "text", "NOT NULL", "The grant that it belongs to."),
        Column("expires", "real", "NOT NULL", "Until when it is valid, in seconds since 1970."),
        Column("used", "real", "", "When a code or a refresh token was exchanged; it is valid once."),
        Column("redirect_uri", "text", "NOT NULL DEFAULT ''", "Of a code: where it was sent."),
        Column("challenge", "text", "NOT NULL DEFAULT ''", "Of a code: the SHA-256 of the verifier (PKCE)."),
    ),
)
OAUTH_TABLES = (CLIENTS, GRANTS, TOKENS)
OAUTH_INDEXES = (
    "CREATE INDEX IF NOT EXISTS idx_oauth_tokens_grant ON oauth_tokens(grant_id)",
    "CREATE INDEX IF NOT EXISTS idx_oauth_tokens_expires ON oauth_tokens(expires)",
    "CREATE INDEX IF NOT EXISTS idx_oauth_grants_key ON oauth_grants(key_id)",
)

API_KEYS = Table(
    "api_keys",
    "One row per API key; the secret itself is stored nowhere.",
    (
        Column("id", "text", "PRIMARY KEY", "The part of the key between `mk_` and its secret."),
        Column("name", "text", "NOT NULL DEFAULT ''", "What a person calls it."),
        Column("secret_hash", "text", "NOT NULL", "SHA-256 of the whole key, in hexadecimal."),
        Column("tenant", "text", "NOT NULL", "The tenant that the key belongs to."),
        Column("user_id", "text", "", "The only user that the key may act as; null for every user of the tenant."),
        Column("scopes", "text", "NOT NULL", "What the key allows, in words separated by spaces."),
        Column("created_at", "real", "NOT NULL", "In seconds since 1970."),
        Column("expires_at", "real", "", "From when the key is refused; null for never."),
        Column("last_used_at", "real", "", "When it was last used, to the minute; null for never."),
        Column("revoked_at", "real", "", "When it was revoked; null while it is valid."),
    ),
)
AUDIT_LOG = Table(
    "audit_log",
    "One row per change of curated memory and per deletion through the service, without any text of a user.",
    (
        Column("id", "numbered", "", "Order of writing."),
        Column("at", "real", "NOT NULL", "In seconds since 1970."),
        Column("key_id", "text", "NOT NULL", "The API key; empty without one, on the loopback address."),
        Column("tenant", "text", "NOT NULL", "The tenant of the key."),
        Column("user_id", "text", "", "Whose data it was, as stored; null for the home's owner."),
        Column("action", "text", "NOT NULL", "What was done, such as memory.add or session.delete."),
        Column("subject", "text", "NOT NULL DEFAULT ''", "The session, change, entry or proposal."),
        Column("request_id", "text", "NOT NULL DEFAULT ''", "The id of the request."),
    ),
)
ANSWERS = Table(
    "answers",
    "The answers to requests with an Idempotency-Key, for a day; none contains text of a user.",
    (
        Column("token", "text", "PRIMARY KEY", "SHA-256 of the caller, the route and the Idempotency-Key."),
        Column("fingerprint", "text", "NOT NULL", "SHA-256 of the request: another one with this key is refused."),
        Column("status", "integer", "NOT NULL", "The HTTP status of the answer."),
        Column("body", "text", "NOT NULL", "The answer, as JSON."),
        Column("at", "real", "NOT NULL", "In seconds since 1970."),
    ),
)
_FORGOTTEN = "forgotten-"
_DIGITS = 16
# A user of another tenant than the default one is stored as `<tenant>/<user>`.
_STORED_USER = f"CASE WHEN tenant = '{DEFAULT_TENANT}' THEN '' ELSE tenant || '/' END || user_id"


def forgotten_name(user: str) -> str:
    """The pseudonym of a user who was forgotten."""
    return _FORGOTTEN + hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def _remove_user(connection: Connection, user: str) -> None:
    """Delete the keys of a user with what was granted by them, and replace the user in the audit log."""
    for (key_id,) in connection.execute(f"SELECT id FROM api_keys WHERE {_STORED_USER} = ?", (user,)).fetchall():
        _delete_key(connection, key_id)
    # What was changed may be named after its content, such as a session.
    connection.execute("UPDATE audit_log SET user_id = ?, subject = '' WHERE user_id = ?", (forgotten_name(user), user))


def _delete_key(connection: Connection, key_id: str) -> None:
    grants = "SELECT id FROM oauth_grants WHERE key_id = ?"
    connection.execute(f"DELETE FROM oauth_tokens WHERE grant_id IN ({grants})", (key_id,))
    connection.execute("DELETE FROM oauth_grants WHERE key_id = ?", (key_id,))
    connection.execute("DELETE FROM api_keys WHERE id = ?", (key_id,))


SCHEMA = Schema(
    version=1,
    name="service",
    tables=(API_KEYS, AUDIT_LOG, ANSWERS, *OAUTH_TABLES),
    indexes=(
        "CREATE INDEX IF NOT EXISTS idx_audit_log_user ON audit_log(tenant, user_id, id)",
        "CREATE INDEX IF NOT EXISTS idx_answers_at ON answers(at)",
        *OAUTH_INDEXES,
    ),
    server=ServerTables(open_user_tables=((API_KEYS.name, _STORED_USER), (AUDIT_LOG.name, "user_id"))),
    forgetting=Forgetting(remove_user=_remove_user),
)
