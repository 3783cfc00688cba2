"""Paths of files with credentials: the `.env` of an agent's home, and private keys.

A conversation may name such a file. A memory may not: it stays in every later prompt, where it would lead the agent to
the credentials. So only what is written into curated memory is checked for these paths.
"""

import re
from collections.abc import Iterator

from memoranda.safety.finding import Finding, Severity

_AGENTS = "memoranda|hermes|openclaw"
_PATHS = re.compile(
    rf"\.(?:{_AGENTS})[/\\](?:[\w.-]{{1,80}}[/\\]){{0,3}}\.env(?![\w-])"
    rf"|\$\{{?(?:{_AGENTS})_home\}}?[/\\](?:[\w.-]{{1,80}}[/\\]){{0,3}}\.env(?![\w-])"
    r"|\.ssh[/\\](?:id_[\w-]{1,40}|identity)(?![\w.-]*\.pub)\b"
    r"|(?<![\w-])id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?(?![\w.-]*\.pub)\b"
    r"|\.gnupg[/\\](?:private-keys|secring)[\w.-]{0,20}",
    re.IGNORECASE,
)
_HINTS = (".env", "id_", "identity", ".gnupg")
_MESSAGE = "The text names a file with credentials: the .env of an agent, or a private key."


def find_credential_paths(text: str) -> Iterator[Finding]:
    """Find the paths of files with credentials in a text."""
    lowered = text.lower()
    if any(hint in lowered for hint in _HINTS):
        for found in _PATHS.finditer(text):
            yield Finding("credential_file", Severity.HIGH, found.span(), _MESSAGE)
