"""API keys: created, listed, revoked, and recognised by their hash.

A key is `mk_<id>_<secret>`. Its secret has 256 random bits, so a plain SHA-256 protects it: there is nothing to guess.
"""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Collection, Sequence
from typing import Any, Literal, get_args

from memoranda.errors import AccessError
from memoranda.home.access.schema import DEFAULT_TENANT
from memoranda.home.access.service_database import ServiceDatabase
from memoranda.support.lazy_dataclass import dataclass

Scope = Literal["read", "append", "curate", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_KEY = re.compile(r"mk_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_MAX_NAME_CHARS = 100
_MAX_USER_CHARS = 200
# How exactly the time of the last use is known; writing it with every request would cost a transaction each.
_LAST_USE_SECONDS = 60.0
_COLUMNS = "id, name, tenant, user_id, scopes, created_at, expires_at, last_used_at, revoked_at"


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it is stored, without its secret."""

    id: str
    name: str
    tenant: str
    user: str | None
    scopes: frozenset[Scope]
    created_at: float
    expires_at: float | None = None
    last_used_at: float | None = None
    revoked_at: float | None = None

    def is_valid(self, now: float) -> bool:
        """Whether the key is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class ApiKeys:
    """The API keys of one home."""

    def __init__(self, database: ServiceDatabase) -> None:
        self._database = database

    def create(
        self,
        scopes: Collection[str],
        *,
        name: str = "",
        tenant: str = DEFAULT_TENANT,
        user: str | None = None,
        expires_at: float | None = None,
    ) -> tuple[ApiKey, str]:
        """Create a key; returns it with its secret form, which is shown once and stored nowhere.

        Raises AccessError for a tenant, user, name or scope that cannot be used.
        """
        checked = _check_scopes(scopes)
        _check_names(name, tenant, user)
        key_id = secrets.token_hex(6)
        token = f"mk_{key_id}_{secrets.token_urlsafe(32)}"
        key = ApiKey(key_id, name, tenant, user, checked, time.time(), expires_at)
        with self._database.open().writing() as connection:
            connection.execute(
                "INSERT INTO api_keys (id, name, secret_hash, tenant, user_id, scopes, created_at, expires_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (key.id, name, _hash(token), tenant, user, _scope_text(checked), key.created_at, expires_at),
            )
        return key, token

    def list_keys(self) -> list[ApiKey]:
        """All keys, the oldest first, with those that were revoked or have expired."""
        rows = self._database.fetch_all(f"SELECT {_COLUMNS} FROM api_keys ORDER BY created_at, id")
        return [_read_row(row) for row in rows]

    def exist(self) -> bool:
        """Whether any key was ever created; then every request needs one, even if none is valid any more."""
        return bool(self.list_keys())

    def revoke(self, key_id: str) -> bool:
        """Revoke a key; False if there is none with this id, or it was revoked before."""
        if not self._database.exists():
            return False
        with self._database.open().writing() as connection:
            changed = connection.execute(
                "UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (time.time(), key_id)
            )
            return bool(changed.rowcount)

    def find(self, token: str) -> ApiKey | None:
        """The valid key with this secret form; None if there is none. Notes that the key is used now."""
        match = _KEY.fullmatch(token)
        if match is None:
            return None
        rows = self._database.fetch_all(f"SELECT {_COLUMNS}, secret_hash FROM api_keys WHERE id = ?", (match[1],))
        row = next(iter(rows), None)
        # A hash is compared even for an unknown id, so that the time of the answer says nothing.
        expected = "" if row is None else str(row[-1])
        if not hmac.compare_digest(expected.encode(), _hash(token).encode()) or row is None:
            return None
        key, now = _read_row(row[:-1]), time.time()
        if not key.is_valid(now):
            return None
        if now - (key.last_used_at or 0.0) >= _LAST_USE_SECONDS:
            with self._database.open().writing() as connection:
                connection.execute("UPDATE api_keys SET last_used_at = ? WHERE id = ?", (now, key.id))
        return key

    def find_by_id(self, key_id: str) -> ApiKey | None:
        """The valid key with this id, for a token that stands for it."""
        rows = self._database.fetch_all(f"SELECT {_COLUMNS} FROM api_keys WHERE id = ?", (key_id,))
        return next((key for key in map(_read_row, rows) if key.is_valid(time.time())), None)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _scope_text(scopes: Collection[Scope]) -> str:
    return " ".join(scope for scope in SCOPES if scope in scopes)


def _check_scopes(scopes: Collection[str]) -> frozenset[Scope]:
    unknown = sorted(set(scopes).difference(SCOPES))
    if unknown:
        raise AccessError(f"There is no scope {unknown[0]!r}. There are: {', '.join(SCOPES)}.")
    if not scopes:
        raise AccessError(f"A key needs at least one scope: {', '.join(SCOPES)}.")
    return frozenset(scope for scope in SCOPES if scope in scopes)


def _check_names(name: str, tenant: str, user: str | None) -> None:
    if not _TENANT.fullmatch(tenant):
        raise AccessError(
            f"{tenant!r} cannot be a tenant: use up to 63 letters, digits, '.', '_' and '-', and begin with a letter "
            "or a digit."
        )
    if user is not None and (not user or len(user) > _MAX_USER_CHARS or "\0" in user):
        raise AccessError(f"A user id has 1 to {_MAX_USER_CHARS} characters.")
    if len(name) > _MAX_NAME_CHARS or not name.isprintable():
        raise AccessError(f"The name of a key has up to {_MAX_NAME_CHARS} printable characters.")


def _read_row(row: Sequence[Any]) -> ApiKey:
    key_id, name, tenant, user, scopes, *times = row
    known = frozenset(scope for scope in SCOPES if scope in str(scopes).split())
    return ApiKey(key_id, name, tenant, user, known, *times)
