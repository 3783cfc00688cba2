"""The tables of OAuth clients, grants and tokens. No token is stored, only its SHA-256."""

from memoranda.storage.schema import Column, Table

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
