"""The tables of the service: API keys, the audit log, and the answers that a repeated request gets again."""

from memoranda.home.access.oauth_schema import OAUTH_INDEXES, OAUTH_TABLES
from memoranda.storage.schema import Column, Schema, Table

APPLICATION_ID = int.from_bytes(b"MemS", "big")
FILE_NAME = "service.db"

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
SCHEMA = Schema(
    version=1,
    name="service",
    tables=(API_KEYS, AUDIT_LOG, ANSWERS, *OAUTH_TABLES),
    indexes=(
        "CREATE INDEX IF NOT EXISTS idx_audit_log_user ON audit_log(tenant, user_id, id)",
        "CREATE INDEX IF NOT EXISTS idx_answers_at ON answers(at)",
        *OAUTH_INDEXES,
    ),
)
