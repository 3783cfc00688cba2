"""Finds credentials in addresses: passwords of users, and signatures that give access to what they sign."""

import re
from collections.abc import Iterator

from memoranda.safety.secrets.found_secret import FoundSecret
from memoranda.safety.secrets.value_checks import is_login_password

_LOGIN = re.compile(r"\b[a-z][a-z0-9+.-]{2,20}://[^\s:/@\"'`<>]{0,64}:(?P<value>[^\s/@\"'`]{3,128})@[\w.\[-]")
_SIGNATURE = re.compile(
    r"(?i:[?&;](?:amp;)?(?:x-(?:amz|goog|ms|oss|cos|tos)-)?sig(?:nature)?)=(?P<value>[A-Za-z0-9%+/_~=-]{20,4000})"
)
_DIGIT = re.compile(r"\d").search
_MIN_VARIETY = 10


def find_logins(text: str) -> Iterator[FoundSecret]:
    """The passwords in addresses such as `postgres://user:password@host`."""
    for match in _LOGIN.finditer(text):
        if is_login_password(match["value"]):
            yield FoundSecret("connection_string", *match.span("value"))


def find_signatures(text: str) -> Iterator[FoundSecret]:
    """The signatures of addresses that S3, Azure, Google, CloudFront and others sign."""
    for match in _SIGNATURE.finditer(text):
        value = match["value"]
        if len(set(value)) >= _MIN_VARIETY and _DIGIT(value):
            yield FoundSecret("signature", *match.span("value"))
