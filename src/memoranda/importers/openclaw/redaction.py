"""No credential leaves OpenClaw's files but by `--migrate-secrets`: every text that is taken over passes here first."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from memoranda.safety.redaction import Redactor

_TAKEN_OUT = "[redacted]"
# What a key must end in for its value to be a credential, written without signs and capitals.
_SECRET_ENDINGS = (
    "token", "secret", "password", "passwd", "passphrase", "apikey", "accesskey", "privatekey", "signingkey",
    "secretkey", "encryptionkey", "authkey", "botkey", "credential", "credentials", "cookie", "authorization",
    "webhookurl",
)  # fmt: skip
# Names stay, values do not: environments and headers hold credentials under any name.
_ALL_VALUES = ("env", "vars", "headers")
# A name of a variable in place of its value.
_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")


class MigrationRedactor:
    """Takes credentials out of what passes, and counts them."""

    def __init__(self, known_values: Iterable[str] = ()) -> None:
        self._redactor = Redactor(known_values)
        self.taken_out = 0

    def text(self, text: str) -> str:
        """A text without credentials."""
        clean, count = self._redactor.text(text)
        self.taken_out += count
        return clean

    def settings(self, value: Any, key: str = "", *, all_values: bool = False) -> Any:
        """Settings without credentials: by the names of their keys, and by what they look like."""
        if isinstance(value, Mapping):
            every = all_values or key in _ALL_VALUES
            return {
                self.text(str(name)): self.settings(each, str(name), all_values=every) for name, each in value.items()
            }
        if isinstance(value, list):
            return [self.settings(each, key, all_values=all_values) for each in value]
        if not isinstance(value, str):
            return value
        if value and (all_values or is_secret_name(key)) and not _REFERENCE.fullmatch(value):
            self.taken_out += 1
            return _TAKEN_OUT
        return self.text(value)


def is_secret_name(key: str) -> bool:
    """Whether the value of a setting is a credential, by its name."""
    return re.sub(r"[^a-z0-9]", "", key.lower()).endswith(_SECRET_ENDINGS)


def is_reference(value: str) -> bool:
    """Whether a value only names the variable that holds it."""
    return bool(_REFERENCE.fullmatch(value))
