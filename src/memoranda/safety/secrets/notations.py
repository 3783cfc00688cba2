"""Finds credentials by the notation that they stand in: HTTP headers, addresses, files, commands."""

import re
from collections.abc import Callable, Iterator

from memoranda.safety.secrets.found_secret import (
    FoundSecret,
    is_header_token,
    is_login,
    is_login_password,
    is_reference,
)
from memoranda.safety.substrings import lines_with
from memoranda.support.lazy_pattern import compile_later

_QUOTE = r"(?:\\{0,3}[\"'`])?"
_BEARER = compile_later(r"\b[Bb](?:earer|EARER)\s{1,3}(?P<value>[A-Za-z0-9._~+/-]{20,2000}={0,2})")
_AUTHORIZATION = compile_later(
    rf"(?i:\bauthorization{_QUOTE}\s?[:=]\s{{0,3}}{_QUOTE}(?:basic|token|api-?key|ssws)\s{{1,3}})"
    rf"(?P<value>[A-Za-z0-9+/._-]{{12,500}}={{0,2}})"
)
_BASIC = compile_later(r"\b[Bb](?:asic|ASIC)\s{1,3}(?P<value>[A-Za-z0-9+/]{12,500}={0,2})")
_LOGIN_OPTION = compile_later(
    r"\s(?:-[A-Za-z]{0,6}[uU]|--(?:proxy-)?user)[\s=]{0,3}\\{0,3}(?P<quote>[\"'])?[^\s:\"'\\]{0,100}:"
    r"(?P<value>(?(quote)(?:(?!(?P=quote))[^\n\\]){3,128}|[^\s\"'`\\]{3,128}))"
)
# How far after the name of the command its options are searched for.
_MAX_COMMAND_CHARS = 600
_END_OF_COMMAND = compile_later(r"(?<!\\)\n|\||&&")
_COOKIES = compile_later(
    rf"(?i)cookies?{_QUOTE}\s{{0,2}}(?:[:=]|\s)\s{{0,2}}{_QUOTE}(?=[\w.$%-]{{1,64}}=)|\s-b\s{{0,2}}{_QUOTE}(?=[\w.$%-]{{1,64}}=)"
)
_COOKIE = compile_later(r"(?P<name>[\w.$%-]{1,64})=(?P<value>[^;\s\"'`\\,<>]{1,4096})(?P<more>;\s{0,3})?")
_ATTRIBUTES = frozenset(["path", "domain", "expires", "max-age", "samesite", "secure", "httponly", "priority"])
_MIN_COOKIE_CHARS = 16
_MIN_COOKIE_VARIETY = 8
_DIGIT = compile_later(r"\d")
_DATE = compile_later(r"\d{4}-\d\d-\d\d|[a-z]+-\d{4}")


def find_in_headers(text: str, lower: str) -> Iterator[FoundSecret]:
    """The tokens, cookies and passwords in headers and in options of curl; `lower` is the text in lower case."""
    if "bearer " in lower:
        yield from _find_in_header(_BEARER, "bearer_token", is_header_token, text)
    if "auth" in lower:
        if "authorization" in lower:
            yield from _find_in_header(_AUTHORIZATION, "authorization_header", is_header_token, text)
        if "basic " in lower:
            yield from _find_in_header(_BASIC, "authorization_header", is_login, text)
    has_curl = "curl" in lower
    if has_curl and ":" in text:
        for match in _LOGIN_OPTION.finditer(text):
            if is_login_password(match["value"]) and _is_curl_option(text, match.start()):
                yield FoundSecret("login", *match.span("value"))
    if "=" in text and (has_curl or "cookie" in lower):
        yield from _find_cookies(text)


def _find_in_header(
    pattern: re.Pattern[str], kind: str, is_real: Callable[[str], bool], text: str
) -> Iterator[FoundSecret]:
    for match in pattern.finditer(text):
        if is_real(match["value"]):
            yield FoundSecret(kind, *match.span("value"))


def _is_curl_option(text: str, option: int) -> bool:
    """Whether an option belongs to a `curl` command: `-u` means other things elsewhere."""
    line = text[max(0, option - _MAX_COMMAND_CHARS) : option]
    return "curl" in line and not _END_OF_COMMAND.search(line, line.rindex("curl"))


def _find_cookies(text: str) -> Iterator[FoundSecret]:
    """The values of cookies that identify a session; settings such as `theme=dark` stay."""
    done = 0
    for header in _COOKIES.finditer(text):
        if header.start() < done:
            continue
        position = header.end()
        while cookie := _COOKIE.match(text, position):
            position = done = cookie.end()
            if cookie["name"].lower() not in _ATTRIBUTES and _identifies_session(cookie["value"]):
                yield FoundSecret("cookie", *cookie.span("value"))
            if not cookie["more"]:
                break


def _identifies_session(value: str) -> bool:
    return (
        len(value) >= _MIN_COOKIE_CHARS
        and len(set(value)) >= _MIN_COOKIE_VARIETY
        and bool(_DIGIT.search(value))
        and not _DATE.search(value)
        and not is_reference(value)
    )


_NETRC = compile_later(
    r"\b(?:machine\s{1,9}\S{1,100}|default)\s{1,9}login\s{1,9}\S{1,100}\s{1,9}(?:account\s{1,9}\S{1,100}\s{1,9})?"
    r"password\s{1,9}(?P<value>[^\s\"'\\]{3,128})"
)
_PGPASS = compile_later(
    r"(?m)^[\w.*-]{1,100}:(?:\d{2,5}|\*):[\w*$.-]{1,64}:[\w*.@-]{1,64}:(?P<value>[^\s:\"'][^\s\"']{2,127})(?=\s*$)"
)
_MYSQL = compile_later(
    r"\bmysql(?:dump|admin)?\b[^\n|]{0,200}?\s-p(?P<quote>[\"'])?(?P<value>[^\s\"'$-][^\s\"']{5,127})"
)
_SSHPASS = compile_later(r"\bsshpass\s{1,3}-p\s{0,3}(?P<quote>[\"'])?(?P<value>[^\s\"'$][^\s\"']{3,127})")


def find_in_files(text: str, lower: str, *, has_pass: bool) -> Iterator[FoundSecret]:
    """The passwords in `.netrc`, `.pgpass`, and in commands of MySQL and sshpass.

    `text` has no escaped breaks; `lower` is the text in lower case, and `has_pass` whether it contains "pass".
    """
    if has_pass and "machine" in lower and "login" in lower:
        yield from _find_password(_NETRC, text)
    if has_pass and "sshpass" in lower:
        yield from _find_password(_SSHPASS, text)
    if ":5432:" in text or ("*" in text and ":*:" in text):
        yield from _find_password(_PGPASS, text)
    if "mysql" in lower and " -p" in text:
        yield from _find_password(_MYSQL, text)


def _find_password(pattern: re.Pattern[str], text: str) -> Iterator[FoundSecret]:
    for match in pattern.finditer(text):
        if is_login_password(match["value"]):
            yield FoundSecret("login", *match.span("value"))


_LOGIN_IN_ADDRESS = compile_later(
    r"\b[a-z][a-z0-9+.-]{2,20}://[^\s:/@\"'`<>]{0,64}:(?P<value>[^\s/@\"'`]{3,128})@[\w.\[-]"
)
_SIGNATURE = compile_later(
    r"(?i:[?&;](?:amp;)?(?:x-(?:amz|goog|ms|oss|cos|tos)-)?sig(?:nature)?)=(?P<value>[A-Za-z0-9%+/_~=-]{20,4000})"
)
_MIN_VARIETY = 10


def find_logins(text: str) -> Iterator[FoundSecret]:
    """The passwords in addresses such as `postgres://user:password@host`."""
    for line in lines_with(text, "@"):
        for match in _LOGIN_IN_ADDRESS.finditer(text, *line):
            if is_login_password(match["value"]):
                yield FoundSecret("connection_string", *match.span("value"))


def find_signatures(text: str) -> Iterator[FoundSecret]:
    """The signatures of addresses that S3, Azure, Google, CloudFront and others sign."""
    for match in _SIGNATURE.finditer(text):
        value = match["value"]
        if len(set(value)) >= _MIN_VARIETY and _DIGIT.search(value):
            yield FoundSecret("signature", *match.span("value"))
