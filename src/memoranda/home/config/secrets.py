"""Reads and writes the credentials in `.env`; callers never print the values."""

import re
from collections.abc import Collection, Mapping
from io import StringIO

from memoranda.errors import ConfigError
from memoranda.external.loading.plugin_variables import provide_variables
from memoranda.home.config.config_file import LOCK_TIMEOUT, refuse_link
from memoranda.home.config.environment import ENVIRONMENT
from memoranda.storage.files.env_lease import EnvLease, EnvLeases
from memoranda.storage.files.file_lock import FileLock
from memoranda.support.durable_files import make_private_directory, read_file, write_private
from memoranda.support.home import Home
from memoranda.support.lazy_pattern import compile_later

_SECRET_NAME = compile_later(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_SUFFIX = compile_later(r"(?i)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|_PASS|_PWD|_PAT)$")
# A variable with such a word elsewhere in its name is a credential if its value looks like one.
_SECRET_WORD = compile_later(r"(?i)(?:^|_)(?:KEYS?|TOKENS?|SECRETS?|AUTH|PASS|PAT|SALT|SK)(?:_|$)")
_SECRET_VALUE = compile_later(r"(?=\S*[0-9])(?=\S*[A-Za-z])[^\s/]{12,}")
_PASSWORD_IN_URL = compile_later(r"\b[a-z][a-z0-9+.-]*://[^\s/:@]*:([^\s/@]+)@", re.IGNORECASE)

# Whatever uses a provider loads this module for the provider's keys.
provide_variables(ENVIRONMENT.get, ENVIRONMENT.setdefault)


def read_secrets(home: Home) -> dict[str, str]:
    """The names and values in `.env`; callers never print the values."""
    path = home.secrets_file
    try:
        text = read_file(path).decode("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}. Nothing is opened until it is fixed.") from error
    from dotenv import dotenv_values

    found = dotenv_values(stream=StringIO(text), interpolate=False)
    return {name: value for name, value in found.items() if value is not None}


def credentials(home: Home) -> dict[str, str]:
    """The variables in which keys of models are looked up: the environment, then `.env` of the home."""
    return {**read_secrets(home), **ENVIRONMENT}


def export_secrets(home: Home, names: Collection[str]) -> dict[str, str]:
    """Copy variables of `.env` into the environment, where providers read their keys; never overwrite a set one.

    Returns the values of those variables that are set now.
    """
    for name, value in read_secrets(home).items():
        if name in names:
            ENVIRONMENT.setdefault(name, value)
    return {name: ENVIRONMENT[name] for name in names if name in ENVIRONMENT}


_leases = EnvLeases(ENVIRONMENT)


def lease_secrets(home: Home, names: Collection[str]) -> EnvLease:
    """Like `export_secrets`, until the lease is released; EnvConflictError when another home leases another value."""
    values = {name: value for name, value in read_secrets(home).items() if name in names}
    return _leases.acquire(values, str(home.root), names)


def known_secrets(home: Home, environ: Mapping[str, str] | None = None) -> frozenset[str]:
    """The credentials of this machine: all values in `.env`, and those of variables that are named like secrets."""
    environ = ENVIRONMENT if environ is None else environ
    named = {
        value.strip()
        for name, value in environ.items()
        if _SECRET_SUFFIX.search(name) or (_SECRET_WORD.search(name) and _SECRET_VALUE.fullmatch(value.strip()))
    }
    named.update(password for value in environ.values() for password in _PASSWORD_IN_URL.findall(value))
    # A path in such a variable (SSH_AUTH_SOCK, a key file) is not a credential itself.
    return frozenset(value for value in {*named, *read_secrets(home).values()} if value and "/" not in value[:1])


def set_secret(home: Home, name: str, value: str) -> None:
    """Store one secret in `.env` without changing the others."""
    if not _SECRET_NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is not a name for a secret: use letters, digits and '_', like OPENAI_API_KEY.")
    if any(ord(char) < 32 or char in "\x7f\x85\u2028\u2029" or "\ud800" <= char <= "\udfff" for char in value):
        raise ConfigError(f"The value of {name} has more than one line of text; store the path of a file instead.")
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    _rewrite_secrets(home, name, value, f"{name}='{escaped}'\n")


def remove_secret(home: Home, name: str) -> bool:
    """Delete one secret from `.env`; False when there is none."""
    if name not in read_secrets(home):
        return False
    _rewrite_secrets(home, name, None, "")
    return True


def _rewrite_secrets(home: Home, name: str, value: str | None, line: str) -> None:
    from dotenv import dotenv_values
    from dotenv.parser import parse_stream

    home.refuse_if_foreign()
    make_private_directory(home.root)
    with FileLock(home.lock_file, LOCK_TIMEOUT):
        before = read_secrets(home)
        refuse_link(home.secrets_file)
        text = home.secrets_file.read_text("utf-8") if home.secrets_file.exists() else ""
        kept = "".join(item.original.string for item in parse_stream(StringIO(text)) if item.key != name)
        kept += "\n" if kept and not kept.endswith("\n") else ""
        wanted = {**before, name: value}
        found = dotenv_values(stream=StringIO(kept + line), interpolate=False)
        if {key: stored for key, stored in found.items() if stored is not None} | {name: found.get(name)} != wanted:
            raise ConfigError(f"{name} cannot be stored without changing others. Edit {home.secrets_file} by hand.")
        write_private(home.secrets_file, (kept + line).encode())
