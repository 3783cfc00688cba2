"""Finds the credentials in OpenClaw's files, decides which can be used here, and redacts them in what is migrated.

Only `--migrate-secrets` copies a credential.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from dotenv import dotenv_values

from memoranda.importers.openclaw.installation import Installation, section
from memoranda.importers.openclaw.transcripts import FILE_NAME
from memoranda.importers.source_databases import open_database
from memoranda.models.model_factory import VENDORS
from memoranda.safety.redaction import Redactor
from memoranda.support.json_object import parse_object
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.text_file import TextFile, read_text

_REDACTED = "[redacted]"
# A setting whose name ends like this is a credential; lower case, without punctuation.
_SECRET_ENDINGS = (
    "token", "secret", "password", "passwd", "passphrase", "apikey", "accesskey", "privatekey", "signingkey",
    "secretkey", "encryptionkey", "authkey", "botkey", "credential", "credentials", "cookie", "authorization",
    "webhookurl",
)  # fmt: skip
# Environments and headers contain credentials under any name, so all their values are redacted.
_ALL_VALUES = ("env", "vars", "headers")
# The name of a variable instead of its value.
_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
# Only these are ever copied: keys of the models and external memories that can be used here.
USABLE = frozenset(
    {vendor.key for vendor in VENDORS.values() if vendor.key}
    | {"HONCHO_API_KEY", "MEM0_API_KEY", "HINDSIGHT_API_KEY", "OPENVIKING_API_KEY", "RETAINDB_API_KEY", "BRV_API_KEY"}
    | {"SUPERMEMORY_API_KEY"}
)
_MAX_CHARS = 4096
_KNOWN_MODELS = tuple(f"models.providers.{name}" for name in VENDORS)


@dataclass(frozen=True, slots=True)
class Credential:
    """One credential; `name` is its environment variable, or its path in the settings."""

    name: str
    value: str
    file: Path

    @property
    def is_usable(self) -> bool:
        return self.name in USABLE

    def __repr__(self) -> str:
        # Keeps the value out of logs and tracebacks.
        return f"Credential({self.name}, in {self.file})"


def find_credentials(found: Installation) -> list[Credential]:
    """Return every credential in the files; if several have the same name, the first."""
    kept: dict[str, Credential] = {}
    for credential in _all_credentials(found):
        if 0 < len(credential.value) <= _MAX_CHARS and not is_reference(credential.value):
            kept.setdefault(credential.name, credential)
    return list(kept.values())


class MigrationRedactor:
    """Redacts credentials, and counts them."""

    def __init__(self, known_values: Iterable[str] = ()) -> None:
        self._redactor = Redactor(known_values)
        self.redacted_count = 0

    def text(self, text: str) -> str:
        clean, count = self._redactor.text(text)
        self.redacted_count += count
        return clean

    def settings(self, value: Any, key: str = "", *, all_values: bool = False) -> Any:
        """Redact the credentials in settings, by the names of their keys and by their form."""
        if isinstance(value, Mapping):
            every = all_values or key in _ALL_VALUES
            return {
                self.text(str(name)): self.settings(element, str(name), all_values=every)
                for name, element in value.items()
            }
        if isinstance(value, list):
            return [self.settings(element, key, all_values=all_values) for element in value]
        if not isinstance(value, str):
            return value
        if value and (all_values or is_secret_name(key)) and not _REFERENCE.fullmatch(value):
            self.redacted_count += 1
            return _REDACTED
        return self.text(value)


def is_secret_name(key: str) -> bool:
    """Whether the value of a setting is a credential, by its name."""
    return re.sub(r"[^a-z0-9]", "", key.lower()).endswith(_SECRET_ENDINGS)


def is_reference(value: str) -> bool:
    """Whether a value only names the variable that contains the credential."""
    return bool(_REFERENCE.fullmatch(value))


def _all_credentials(found: Installation) -> Iterator[Credential]:
    env_file = found.root / ".env"
    state = read_text(env_file)
    if isinstance(state, TextFile):
        for name, value in dotenv_values(stream=StringIO(state.text), interpolate=False).items():
            if value and (name in USABLE or is_secret_name(name)):
                yield Credential(name, value, env_file)
    if found.config_file is not None:
        yield from _in_config(found.config, found.config_file)
    for profiles in sorted(found.root.glob("agents/*/agent/auth-profiles.json")):
        state = read_text(profiles)
        yield from _in_profiles(state.text if isinstance(state, TextFile) else "", profiles)
    for database, (table, column) in _databases(found.root):
        for text in _column_texts(database, table, column):
            yield from _in_profiles(text, database)


def _in_config(config: Mapping[str, Any], file: Path) -> Iterator[Credential]:
    env = section(config, "env")
    for name, value in {**section(env, "vars"), **env}.items():
        if isinstance(value, str) and (name in USABLE or is_secret_name(str(name))):
            yield Credential(str(name), value, file)
    for provider, entry in section(config, "models", "providers").items():
        value = entry.get("apiKey") if isinstance(entry, Mapping) else None
        if isinstance(value, str) and provider in VENDORS:
            yield Credential(VENDORS[provider].key, value, file)
    for path, value in _secret_settings(config, ""):
        yield Credential(path, value, file)


def _secret_settings(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, entry in value.items():
            full_path = f"{path}.{name}" if path else str(name)
            if isinstance(entry, str) and is_secret_name(str(name)):
                # The credentials of the environment and of known models were already found by name.
                if path not in ("env", "env.vars", *_KNOWN_MODELS):
                    yield full_path, entry
            else:
                yield from _secret_settings(entry, full_path)
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from _secret_settings(entry, f"{path}[{number}]")


def _databases(root: Path) -> Iterator[tuple[Path, tuple[str, str]]]:
    """Yield the databases with auth profiles: one for all agents, or one per agent."""
    yield root / "state" / "openclaw.sqlite", ("config_machine_state", "value_json")
    for database in sorted(root.glob(f"agents/*/agent/{FILE_NAME}")):
        yield database, ("auth_profile_store", "store_json")


def _column_texts(database: Path, table: str, column: str) -> list[str]:
    """Return the texts in a column; none when the database or table is missing."""
    try:
        with open_database(database, "surrogateescape") as connection:
            rows = connection.execute(f"SELECT {column} FROM {table}").fetchall()
    except OSError:
        return []
    return [row[0] for row in rows if isinstance(row[0], str)]


def _in_profiles(text: str, path: Path) -> Iterator[Credential]:
    """Yield the credentials in the auth profiles of an agent; only API keys can be used elsewhere."""
    profiles = section(parse_object(text) or {}, "profiles")
    for name, entry in profiles.items():
        if not isinstance(entry, Mapping):
            continue
        value = entry.get("key") or entry.get("token") or entry.get("access")
        provider = str(entry.get("provider") or str(name).partition(":")[0])
        if isinstance(value, str):
            usable = entry.get("type") == "api_key" and provider in VENDORS
            yield Credential(VENDORS[provider].key if usable else f"auth profile {name}", value, path)
