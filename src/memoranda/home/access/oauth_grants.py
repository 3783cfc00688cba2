"""Stores clients, grants and tokens, and decides which tokens are valid.

A code and a refresh token are valid once. A second use means that a copy exists, so it ends the grant with all of its
tokens; the person then has to approve the client again.
"""

import hashlib
import json
import secrets
import time
from collections.abc import Callable

from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.support.lazy_dataclass import dataclass

CODE_SECONDS = 60.0
ACCESS_SECONDS = 3_600.0
REFRESH_SECONDS = 30 * 86_400.0
ACCESS_PREFIX, _REFRESH_PREFIX = "mat_", "mrt_"
# A client that no person approved within a day is forgotten, and the oldest of too many: registrations, which need no
# key, can neither fill the store nor keep others from registering.
_UNAPPROVED_SECONDS = 86_400.0
_MAX_UNAPPROVED = 1_000


@dataclass(frozen=True, slots=True)
class Client:
    """A registered program."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    created: float


@dataclass(frozen=True, slots=True)
class Grant:
    """What a person approved: a client, with a key, for some scopes of one resource."""

    id: str
    client_id: str
    key_id: str
    scopes: tuple[str, ...]
    resource: str


@dataclass(frozen=True, slots=True)
class TokenPair:
    access: str
    refresh: str
    grant: Grant


@dataclass(frozen=True, slots=True)
class ConnectedProgram:
    """A grant as a person sees it: which program has access, with which key, and since when."""

    id: str
    name: str
    key_id: str
    scopes: tuple[str, ...]
    created: float


class InvalidGrant(Exception):
    """A code or token that is unknown, expired, used, revoked, or not meant for this client."""


class GrantStore:
    """Clients, grants and tokens in the database that `open_engine` returns; its tables must exist."""

    def __init__(self, open_engine: Callable[[], Engine], *, clock: Callable[[], float] = time.time) -> None:
        self._open_engine = open_engine
        self._clock = clock

    def register(self, name: str, redirect_uris: tuple[str, ...]) -> Client:
        """Stores a new client, in the place of the oldest one if too many wait for their first approval."""
        now = self._clock()
        client = Client(secrets.token_urlsafe(16), name, redirect_uris, now)
        with self._open_engine().writing() as connection:
            connection.execute(
                "DELETE FROM oauth_clients WHERE approved IS NULL AND created < ?",
                (now - _UNAPPROVED_SECONDS,),
            )
            connection.execute(
                "DELETE FROM oauth_clients WHERE approved IS NULL AND id NOT IN"
                " (SELECT id FROM oauth_clients WHERE approved IS NULL ORDER BY created DESC LIMIT ?)",
                (_MAX_UNAPPROVED - 1,),
            )
            connection.execute(
                "INSERT INTO oauth_clients (id, name, redirect_uris, created) VALUES (?, ?, ?, ?)",
                (client.id, name, json.dumps(redirect_uris), now),
            )
        return client

    def find_client(self, client_id: str) -> Client | None:
        with self._open_engine().reading() as connection:
            row = connection.execute(
                "SELECT name, redirect_uris, created FROM oauth_clients WHERE id = ?", (client_id,)
            ).fetchone()
        return Client(client_id, row[0], tuple(json.loads(row[1])), row[2]) if row else None

    def approve(
        self,
        client: Client,
        key_id: str,
        *,
        scopes: tuple[str, ...],
        resource: str,
        redirect_uri: str,
        challenge: str,
    ) -> str:
        """Stores a grant, and returns the code with which its client gets tokens."""
        code, grant_id, now = secrets.token_urlsafe(32), secrets.token_hex(8), self._clock()
        with self._open_engine().writing() as connection:
            connection.execute(
                "INSERT INTO oauth_grants (id, client_id, key_id, scopes, resource, created) VALUES (?, ?, ?, ?, ?, ?)",
                (grant_id, client.id, key_id, " ".join(scopes), resource, now),
            )
            connection.execute(
                "INSERT INTO oauth_tokens (hash, kind, grant_id, expires, redirect_uri, challenge)"
                " VALUES (?, 'code', ?, ?, ?, ?)",
                (_hash(code), grant_id, now + CODE_SECONDS, redirect_uri, challenge),
            )
            connection.execute(
                "UPDATE oauth_clients SET approved = ? WHERE id = ? AND approved IS NULL", (now, client.id)
            )
            self._delete_expired(connection, now)
        return code

    def exchange_code(self, code: str, *, client_id: str, redirect_uri: str, challenge: str) -> TokenPair:
        """Exchanges a code for tokens; raises InvalidGrant. `challenge` is computed from the client's verifier."""
        return self._exchange("code", code, client_id, (redirect_uri, challenge))

    def refresh(self, token: str, *, client_id: str) -> TokenPair:
        """Exchanges a refresh token for new tokens; raises InvalidGrant."""
        return self._exchange("refresh", token, client_id, None)

    def find_access(self, token: str) -> Grant | None:
        """The grant of an access token that is valid now."""
        if not token.startswith(ACCESS_PREFIX):
            return None
        with self._open_engine().reading() as connection:
            row = connection.execute(
                "SELECT t.grant_id FROM oauth_tokens t JOIN oauth_grants g ON g.id = t.grant_id"
                " WHERE t.hash = ? AND t.kind = 'access' AND t.expires > ? AND g.revoked IS NULL",
                (_hash(token), self._clock()),
            ).fetchone()
            return _read_grant(connection, row[0]) if row else None

    def revoke(self, token: str, *, client_id: str) -> None:
        """Ends the grant of an access or refresh token of this client; does nothing for an unknown token."""
        with self._open_engine().writing() as connection:
            row = connection.execute(
                "SELECT t.grant_id FROM oauth_tokens t JOIN oauth_grants g ON g.id = t.grant_id"
                " WHERE t.hash = ? AND g.client_id = ?",
                (_hash(token), client_id),
            ).fetchone()
            if row:
                self._end_grant(connection, row[0])

    def list_programs(self) -> list[ConnectedProgram]:
        """The programs that have access now, the latest first; those of revoked keys too, which can do nothing."""
        with self._open_engine().reading() as connection:
            rows = connection.execute(
                "SELECT g.id, c.name, g.key_id, g.scopes, g.created FROM oauth_grants g"
                " JOIN oauth_clients c ON c.id = g.client_id WHERE g.revoked IS NULL"
                " AND EXISTS (SELECT 1 FROM oauth_tokens t"
                " WHERE t.grant_id = g.id AND t.used IS NULL AND t.expires > ?)"
                " ORDER BY g.created DESC, g.id",
                (self._clock(),),
            ).fetchall()
        return [ConnectedProgram(row[0], row[1], row[2], tuple(row[3].split()), row[4]) for row in rows]

    def disconnect(self, grant_id: str) -> bool:
        """End a grant with all of its tokens; False if there is none with this id, or it ended before."""
        with self._open_engine().writing() as connection:
            ended = connection.execute(
                "UPDATE oauth_grants SET revoked = ? WHERE id = ? AND revoked IS NULL", (self._clock(), grant_id)
            )
            return bool(ended.rowcount)

    def _exchange(self, kind: str, token: str, client_id: str, sent_to: tuple[str, str] | None) -> TokenPair:
        """Uses up a code or refresh token. `sent_to` is what must be equal to the stored redirect URI and challenge."""
        now = self._clock()
        with self._open_engine().writing() as connection:
            grant = self._use_up(connection, kind, token, client_id, sent_to, now)
            if grant is not None:
                return self._issue(connection, grant, now)
        # Outside the transaction, which may have ended the grant.
        raise InvalidGrant("The code or token is unknown, expired, already used, or not meant for this client.")

    def _use_up(
        self,
        connection: Connection,
        kind: str,
        token: str,
        client_id: str,
        sent_to: tuple[str, str] | None,
        now: float,
    ) -> Grant | None:
        row = connection.execute(
            "SELECT grant_id, expires, used, redirect_uri, challenge FROM oauth_tokens WHERE hash = ? AND kind = ?",
            (_hash(token), kind),
        ).fetchone()
        grant = _read_grant(connection, row[0]) if row else None
        if grant is None or grant.client_id != client_id:
            return None
        marked = connection.execute(
            "UPDATE oauth_tokens SET used = ? WHERE hash = ? AND used IS NULL", (now, _hash(token))
        )
        if marked.rowcount != 1:
            self._end_grant(connection, grant.id)
            return None
        if row[1] <= now or (sent_to is not None and sent_to != (row[3], row[4])):
            return None
        return grant

    def _issue(self, connection: Connection, grant: Grant, now: float) -> TokenPair:
        pair = TokenPair(ACCESS_PREFIX + secrets.token_urlsafe(32), _REFRESH_PREFIX + secrets.token_urlsafe(32), grant)
        connection.executemany(
            "INSERT INTO oauth_tokens (hash, kind, grant_id, expires) VALUES (?, ?, ?, ?)",
            [
                (_hash(pair.access), "access", grant.id, now + ACCESS_SECONDS),
                (_hash(pair.refresh), "refresh", grant.id, now + REFRESH_SECONDS),
            ],
        )
        return pair

    def _end_grant(self, connection: Connection, grant_id: str) -> None:
        connection.execute(
            "UPDATE oauth_grants SET revoked = ? WHERE id = ? AND revoked IS NULL", (self._clock(), grant_id)
        )

    def _delete_expired(self, connection: Connection, now: float) -> None:
        """Deletes tokens that expired. A used refresh token stays until then, to recognise a second use."""
        connection.execute("DELETE FROM oauth_tokens WHERE expires < ?", (now,))
        connection.execute(
            "DELETE FROM oauth_grants WHERE created < ?"
            " AND NOT EXISTS (SELECT 1 FROM oauth_tokens t WHERE t.grant_id = oauth_grants.id)",
            (now - CODE_SECONDS,),
        )


def _read_grant(connection: Connection, grant_id: str) -> Grant | None:
    """A grant that was not ended."""
    row = connection.execute(
        "SELECT client_id, key_id, scopes, resource FROM oauth_grants WHERE id = ? AND revoked IS NULL", (grant_id,)
    ).fetchone()
    return Grant(grant_id, row[0], row[1], tuple(row[2].split()), row[3]) if row else None


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
