"""Finds passwords in the files and commands of programs that have a notation of their own."""

import re
from collections.abc import Iterator

from memoranda.safety.secrets.found_secret import FoundSecret
from memoranda.safety.secrets.value_checks import is_login_password

_NETRC = re.compile(
    r"\b(?:machine\s{1,9}\S{1,100}|default)\s{1,9}login\s{1,9}\S{1,100}\s{1,9}(?:account\s{1,9}\S{1,100}\s{1,9})?"
    r"password\s{1,9}(?P<value>[^\s\"'\\]{3,128})"
)
_PGPASS = re.compile(
    r"(?m)^[\w.*-]{1,100}:(?:\d{2,5}|\*):[\w*$.-]{1,64}:[\w*.@-]{1,64}:(?P<value>[^\s:\"'][^\s\"']{2,127})(?=\s*$)"
)
_MYSQL = re.compile(r"\bmysql(?:dump|admin)?\b[^\n|]{0,200}?\s-p(?P<quote>[\"'])?(?P<value>[^\s\"'$-][^\s\"']{5,127})")
_SSHPASS = re.compile(r"\bsshpass\s{1,3}-p\s{0,3}(?P<quote>[\"'])?(?P<value>[^\s\"'$][^\s\"']{3,127})")


def find_in_files(text: str, lower: str, *, has_pass: bool) -> Iterator[FoundSecret]:
    """The passwords in `.netrc`, `.pgpass`, and in commands of MySQL and sshpass.

    `text` has no escaped breaks; `lower` is the text in lower case, and `has_pass` whether it contains "pass".
    """
    if has_pass and "machine" in lower and "login" in lower:
        yield from _find(_NETRC, text)
    if has_pass and "sshpass" in lower:
        yield from _find(_SSHPASS, text)
    if ":5432:" in text or ("*" in text and ":*:" in text):
        yield from _find(_PGPASS, text)
    if "mysql" in lower and " -p" in text:
        yield from _find(_MYSQL, text)


def _find(pattern: re.Pattern[str], text: str) -> Iterator[FoundSecret]:
    for match in pattern.finditer(text):
        if is_login_password(match["value"]):
            yield FoundSecret("login", *match.span("value"))
