"""Who sends a request, what that caller may do, and which user of the home a request acts as."""

import time
from collections.abc import Callable, Collection, Mapping
from hashlib import sha256
from math import inf
from threading import Lock
from typing import NamedTuple

from memoranda.home.access.keys import SCOPES, ApiKey, ApiKeys, Scope
from memoranda.home.access.schema import DEFAULT_TENANT
from memoranda.service.http.problems import Problem
from memoranda.support.lazy_dataclass import dataclass

# For how long a key is recognised without asking the database: a revoked key is refused after this time.
CACHE_SECONDS = 1.0
# For how long a caller who was recognised may read the metrics while the database cannot be reached.
_OUTAGE_SECONDS = 12 * 3600.0
_MAX_CACHED = 10_000
_MAX_USER_CHARS = 200
_SCHEMES = ("bearer", "token")
_CHALLENGE = {"WWW-Authenticate": "Bearer"}


@dataclass(frozen=True, slots=True)
class Caller:
    """The holder of an API key; without any key, on the loopback address, the owner of the home."""

    key_id: str
    tenant: str
    user: str | None
    scopes: frozenset[Scope]

    @property
    def is_owner(self) -> bool:
        """Whether the caller acts for the whole home, and not for one tenant or user."""
        return self.tenant == DEFAULT_TENANT and self.user is None

    def require(self, scope: Scope) -> None:
        """Raise Problem 403 unless the caller has a scope."""
        if scope not in self.scopes:
            raise Problem(403, "forbidden", f"This key does not have the scope {scope!r}.")

    def stored_user(self, name: str | None, read_tenants: Callable[[], Collection[str]]) -> str | None:
        """The user of the home that a request acts as, given the user that it names; None is the home's owner.

        A user of another tenant than the default one is stored as `<tenant>/<user>`, so below the service there are
        only users. `read_tenants` returns the others: the default tenant may not name their users. Raises Problem.
        """
        if self.user is not None:
            if name not in (None, self.user):
                raise Problem(403, "forbidden", "This key is bound to another user.")
            name = self.user
        if name is not None and (not 0 < len(name) <= _MAX_USER_CHARS or "\0" in name):
            raise Problem(422, "invalid", f"user must have 1 to {_MAX_USER_CHARS} characters.")
        if self.tenant != DEFAULT_TENANT:
            if name is None:
                raise Problem(422, "no_user", "Name the user: the query parameter 'user', or a key bound to one.")
            return f"{self.tenant}/{name}"
        if name is not None and "/" in name and name.partition("/")[0] in read_tenants():
            raise Problem(403, "forbidden", "This user belongs to another tenant.")
        return name

    def shown_user(self, stored: str | None) -> str | None:
        """The user as this caller names it."""
        if stored is None or self.tenant == DEFAULT_TENANT:
            return stored
        return stored.removeprefix(f"{self.tenant}/")


OWNER = Caller("", DEFAULT_TENANT, None, frozenset(SCOPES))


class _Recognised(NamedTuple):
    """A caller, until when the database need not be asked again, and until when it is known during an outage."""

    until: float
    known_until: float
    caller: Caller


class Authenticator:
    """Recognises API keys, and caches for one second which ones it knows."""

    def __init__(self, keys: ApiKeys, clock: Callable[[], float] = time.monotonic) -> None:
        self._keys = keys
        self._clock = clock
        self._lock = Lock()
        self._callers: dict[bytes, _Recognised] = {}
        self._owner: _Recognised | None = None

    def cached(self, token: str | None) -> Caller | None:
        """The caller, if that is known without asking the database."""
        found = self._find(token)
        return found.caller if found is not None and self._clock() < found.until else None

    def known(self, token: str | None) -> Caller | None:
        """The caller, if the database recognised it lately: for counters, while the database cannot be asked.

        A key is revoked in the database: no one can have done that meanwhile, unless only this process is cut off.
        """
        found = self._find(token)
        return found.caller if found is not None and self._clock() < found.known_until else None

    def _find(self, token: str | None) -> _Recognised | None:
        return self._owner if token is None else self._callers.get(_digest(token))

    def identify(self, token: str | None) -> Caller:
        """The caller with this key, or without any key the owner as long as no key exists; raises Problem 401."""
        caller = self.cached(token)
        if caller is not None:
            return caller
        if token is None:
            if self._refresh():
                raise Problem(401, "no_key", "Send an API key: 'Authorization: Bearer mk_…'.", _CHALLENGE)
            return OWNER
        key = self._keys.find(token)
        if key is None:
            self._callers.pop(_digest(token), None)
            raise Problem(401, "wrong_key", "The API key is unknown, revoked or expired.", _CHALLENGE)
        caller = Caller(key.id, key.tenant, key.user, key.scopes)
        expires_in = inf if key.expires_at is None else key.expires_at - time.time()
        with self._lock:
            if len(self._callers) >= _MAX_CACHED:
                self._callers.clear()
            self._callers[_digest(token)] = self._recognise(caller, expires_in)
        return caller

    def read_tenants(self) -> frozenset[str]:
        """The tenants that keys were created for, without the default one, as the database has them now."""
        return frozenset(key.tenant for key in self._refresh()) - {DEFAULT_TENANT}

    def _refresh(self) -> list[ApiKey]:
        """All keys; as long as there is none, a request without one is the owner's."""
        keys = self._keys.list_keys()
        self._owner = None if keys else self._recognise(OWNER)
        return keys

    def _recognise(self, caller: Caller, expires_in: float = inf) -> _Recognised:
        now = self._clock()
        return _Recognised(now + min(CACHE_SECONDS, expires_in), now + min(_OUTAGE_SECONDS, expires_in), caller)


def read_token(headers: Mapping[str, str]) -> str | None:
    """The API key of a request: in `Authorization` as Bearer or Token, or in `X-API-Key`; None without one.

    Raises Problem 401 for another scheme, and 400 for two different keys.
    """
    authorization, api_key = headers.get("authorization"), headers.get("x-api-key")
    token = None
    if authorization is not None:
        scheme, _, value = authorization.partition(" ")
        if scheme.lower() not in _SCHEMES or not value.strip():
            raise Problem(401, "wrong_scheme", "Send 'Authorization: Bearer mk_…' or 'X-API-Key: mk_…'.", _CHALLENGE)
        token = value.strip()
    if api_key is not None and token is not None and api_key.strip() != token:
        raise Problem(400, "two_keys", "Authorization and X-API-Key have different keys.")
    return token if api_key is None else api_key.strip()


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogateescape")).digest()
