"""Redacts credentials in every text that is migrated; only `--migrate-secrets` copies a credential."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from memoranda.safety.redaction import Redactor

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


class MigrationRedactor:
    """Redacts credentials, and counts them."""

    def __init__(self, known_values: Iterable[str] = ()) -> None:
        self._redactor = Redactor(known_values)
        self.redacted_count = 0

    def text(self, text: str) -> str:
        """Redact the credentials in a text."""
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
