"""A random secret that all processes of a service share, for signatures that end with the service's database."""

import secrets

from memoranda.home.access.service_database import ServiceDatabase

_KEY = "service.signing_secret"


def load_or_create_secret(database: ServiceDatabase) -> bytes:
    """Returns the secret; the first process that asks creates it. Without a database it lasts as long as the process.

    There is no database until the first key is created, and reading must not create one.
    """
    if not database.exists():
        return secrets.token_bytes(32)
    with database.open().writing() as connection:
        connection.execute(
            "INSERT INTO state_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
            (_KEY, secrets.token_hex(32)),
        )
        (stored,) = connection.execute("SELECT value FROM state_meta WHERE key = ?", (_KEY,)).fetchone()
    return bytes.fromhex(stored)
