"""The URL of a server, divided into what libpq understands and the parameters that Memoranda adds.

    postgresql://user:password@host:5432/database?schema=memoranda&pool=10

`schema` is the PostgreSQL schema with all tables. `pool` is the maximum number of connections of one process.
`pgbouncer=true` avoids everything that belongs to a session, for poolers in transaction mode; `direct=host:port` is
then the address of the server itself, for notifications and the locks of turns. All other parameters are libpq's.
"""

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from memoranda.errors import ConfigError

DEFAULT_SCHEMA = "memoranda"
DEFAULT_POOL = 10
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,50}")


def without_password(url: str) -> str:
    """The URL of a server as messages may show it: without a password, and without parameters."""
    parts = urlsplit(url)
    credentials, at, host = parts.netloc.rpartition("@")
    return urlunsplit(("postgresql", credentials.partition(":")[0] + at + host, parts.path, "", ""))


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A parsed URL. `conninfo` and `direct` contain the password and must not be shown; `location` may be."""

    conninfo: str
    direct: str
    schema: str
    pool_size: int
    pgbouncer: bool
    location: str

    @classmethod
    def parse(cls, url: str) -> "ServerAddress":
        """Raises ConfigError, without the password, if the URL cannot be used."""
        shown = without_password(url)
        parts = urlsplit(url)
        parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
        schema = parameters.pop("schema", DEFAULT_SCHEMA)
        if not _NAME.fullmatch(schema):
            raise ConfigError(
                f"The schema {schema!r} of {shown} is not a plain name: use lower-case letters, digits and underscores."
            )
        pool = parameters.pop("pool", str(DEFAULT_POOL))
        if not pool.isdecimal() or not 1 <= int(pool) <= 1000:
            raise ConfigError(f"The parameter pool={pool!r} of {shown} is not a number from 1 to 1000.")
        pgbouncer = parameters.pop("pgbouncer", "false").lower() in ("true", "1", "yes", "on")
        direct_host = parameters.pop("direct", "")
        query = urlencode(parameters, quote_via=quote)
        conninfo = urlunsplit(("postgresql", parts.netloc, parts.path, query, ""))
        credentials, at, _ = parts.netloc.rpartition("@")
        direct = urlunsplit(("postgresql", f"{credentials}{at}{direct_host}", parts.path, query, ""))
        return cls(conninfo, direct if direct_host else conninfo, schema, int(pool), pgbouncer, shown)
