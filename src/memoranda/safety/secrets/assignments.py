"""Finds values that are given to the name of a secret: `DB_PASSWORD=…`, `"api_key": "…"`, `the token is …`.

The name decides how a value is judged. A key or token of a service may look like a hash or a UUID, a bare `token:` that
is followed by a hash is nearly always something else, and a `key` can be anything, so its value must look generated.

A person may state a password in a sentence or a list, in some twenty languages: the word for a password, a verb or a
sign, and a value that mixes letters with digits or signs as no word does. What follows such a word is usually not a
password ("das Passwort ist abgelaufen"), so a value that could be a word stays.
"""

import re
from collections.abc import Iterator

from memoranda.safety.secrets.found_secret import (
    FoundSecret,
    is_key,
    is_login,
    is_password,
    is_reference,
    looks_generated,
)
from memoranda.safety.substrings import contains_any
from memoranda.support.lazy_pattern import compile_later

# A name ends with one of these; searched in lower case.
_HINTS = ("key", "token", "secret", "pass", "pwd", "auth", "_pat")
_QUOTE = r"\\{0,3}[\"'`]"
# From the hint on: the rest of the name, and how a value is assigned to it.
_NAME_AND_SIGN = compile_later(
    rf"(?P<word>key(?:_base)?|token|secret|pass(?:word|wd|phrase|code)?|pwd|auth|_pat)(?:{_QUOTE}|[\])])?"
    r"(?:(?P<sign>\s{0,3}(?::=|=>|->|→|=|[:：](?!:))|\s(?:is|was)(?:\snow|\scurrently|\sstill)?:?(?=\s)|\s{0,3}\|(?=\s)|>)\s{0,3}"
    r"|(?P<to>\s(?:to|as)\s)|(?P<space>\s{1,3}))"
    rf"(?P<quote>{_QUOTE})?"
)
_VALUE = compile_later(r"[^\s\"'`,;<>{}()\[\]，。、；！？「」]{6,4000}")
_QUOTED_VALUE = {quote: re.compile(rf"[^\s{quote}\\]{{6,256}}(?={quote})").match for quote in "\"'`"}
# Where a value ends in a JSON string or a query: at an escaped quote, at an escaped break before another name or line,
# at any escaped break if the value is long, at the next parameter.
_ESCAPED_END = compile_later(
    r"\\+(?:$|[nrt](?=[A-Za-z_][\w.-]{0,60}[=:]|[\\#-]|$)|[\"'`].*)|(?<=\S{12})\\+[nrt].*|&(?:amp;)?[\w.-]{1,40}=.*"
)
_NEXT_NAME = compile_later(r"[+-]?[A-Za-z_][\w.-]*[=:]")
_BEFORE_CHARS = 40
# The part of a name before its last word, from its end.
_NAME_BACKWARDS = compile_later(r"[\s_.-]?([A-Za-z0-9][\w.]{0,40})")
# A text with more values is a dump or an attack. Every further one that could be a secret counts as one, because a
# judgement of each would take too long.
_MAX_JUDGED = 500
_MIXED = compile_later(r"(?=[^A-Za-z]{0,200}[A-Za-z])[^\d!-,;-@^~]{0,200}[\d!-,;-@^~]")
_MIN_HASH_CHARS = 32
_CHANGES = ("set ", "sets ", "change", "reset ", "update", "rotate")
_STRONG = frozenset(
    [
        "api",
        "app",
        "application",
        "access",
        "master",
        "private",
        "secret",
        "subscription",
        "account",
        "auth",
        "signing",
        "client",
        "encryption",
        "deploy",
        "service",
        "storage",
        "webhook",
        "bot",
        "refresh",
        "personal",
        "admin",
        "identity",
        "rest",
        "user",
    ]
)
_HARMLESS = frozenset(
    [
        "public",
        "primary",
        "foreign",
        "partition",
        "sort",
        "object",
        "cache",
        "host",
        "idempotency",
        "translation",
        "i18n",
        "feature",
        "jira",
        "hot",
        "row",
        "shard",
        "hash",
        "next",
        "page",
        "sync",
        "trace",
        "request",
        "continuation",
        "cancellation",
        "cancel",
        "cursor",
        "eos",
        "bos",
        "pad",
        "unk",
        "mask",
        "sep",
        "cls",
        "dedup",
        "lookup",
        "range",
        "composite",
        "unique",
        "candidate",
        "natural",
        "surrogate",
        "ssh",
        "gpg",
        "rsa",
        "dsa",
        "ecdsa",
        "ed25519",
        "pgp",
        "s3",
        "csrf",
        "xsrf",
        "max",
        "min",
        "erc20",
        "nft",
    ]
)
_NO_VENDOR = frozenset(
    ["the", "this", "that", "its", "our", "your", "my", "new", "old", "a", "an", "if", "when", "use", "set", "bearer"]
)
_PASSWORDS = ("pass", "pwd")
_MIN_WORD_CHARS = 3


def find_assigned(text: str, lower: str) -> Iterator[FoundSecret]:
    """The assigned secrets of a text; `lower` is the text in lower case, with the same offsets."""
    position = judged = 0
    for name_at, match in sorted(_find_names(lower).items()):
        if name_at < position or not (value := _read_value(text, match)) or value.isalpha():
            continue
        if "\n" in match[0] and _NEXT_NAME.match(value):  # `FIRST=` has no value, and the next line is another name
            continue
        start = match.end()
        position = start + len(value)
        judged += 1
        if judged > _MAX_JUDGED:
            is_secret = _MIXED.match(value) is not None
        else:
            before = text[max(0, name_at - _BEFORE_CHARS) : name_at]
            is_secret = _is_assigned(before, match) and _is_secret(before, match["word"], value)
        if is_secret:
            yield FoundSecret("assigned_secret", start, position)


def _find_names(lower: str) -> dict[int, re.Match[str]]:
    """The words that name secrets and are followed by something that assigns a value, by their positions."""
    names = {}
    for hint in _HINTS:
        found = lower.find(hint)
        while found >= 0:
            if match := _NAME_AND_SIGN.match(lower, found):
                names[found] = match
            found = lower.find(hint, found + len(hint))
    return names


def _read_value(text: str, match: re.Match[str]) -> str:
    """The value after a name, without what ends it in a string, a query or a sentence."""
    quote = match["quote"]
    if quote and len(quote) == 1 and (quoted := _QUOTED_VALUE[quote](text, match.end())):
        return quoted[0]
    found = _VALUE.match(text, match.end())
    if found is None:
        return ""
    value = found[0]
    if "\\" in value or "&" in value:
        value = _ESCAPED_END.split(value, maxsplit=1)[0]
    return value if quote else value.rstrip(".:|")


def _is_assigned(before: str, match: re.Match[str]) -> bool:
    """Whether the words around a name say that a value follows it: most names followed by a space are prose."""
    sign = match["sign"]
    if sign:
        return (
            sign[0] != ">"
            or before.rpartition("<")[2].replace("_", "").replace("-", "").isalnum()
            or (before.endswith("<"))
        )
    is_password = match["word"].startswith(_PASSWORDS)
    if match["to"]:
        return is_password and contains_any(_CHANGES, before.lower())
    if is_password and match["quote"]:
        return True
    words = before.split()
    if not words or before[-1].isspace():  # the name has no part before this word
        return False
    return words[-1].startswith("--") or (len(words) > 1 and words[-2].lower() == "env")


def _is_secret(before: str, word: str, value: str) -> bool:
    """Whether a value is a secret, by the name it has: its last word, and what is before that."""
    if word == "auth":
        return is_login(value)
    backwards = _NAME_BACKWARDS.match(before[::-1])
    name = backwards[1][::-1] if backwards else ""
    last = name.lower().replace(".", "_").rpartition("_")[2]
    is_key_word = word.startswith("key")
    if last in _HARMLESS:
        return not is_key_word and looks_generated(value) and not is_reference(value)
    is_strong = last in _STRONG or word == "_pat" or last.endswith(("api", "access", "client"))
    may_be_hash = is_strong or _names_service(before, name)
    if is_key_word and not may_be_hash:
        return looks_generated(value) and is_key(value, may_be_hash=False)
    if is_key_word and not is_strong:
        return (looks_generated(value) or len(value) >= _MIN_HASH_CHARS) and is_key(value, may_be_hash=True)
    return is_key(value, may_be_hash=may_be_hash)


def _names_service(before: str, name: str) -> bool:
    """Whether the words before `token` or `key` name a service: `RAILWAY_TOKEN`, `snyk_token`, `the Exa key`."""
    word = name.rpartition("_")[2] or name
    if len(name) < _MIN_WORD_CHARS or word.lower() in _NO_VENDOR:
        return False
    return before.endswith("_") or "_" in name or not name.islower()


# The beginnings of the words for a password, in lower case: in ASCII text, and in text with other letters.
_PASS_HINTS = ("passwor", "mot de passe")
OTHER_PASSWORD_WORDS = ("kennwort", "wachtwoord", "senha", "heslo", "kata sandi")
_OTHER_HINTS = (
    "парол", "密码", "密碼", "パスワード", "비밀번호", "contraseña", "hasło", "şifre", "parola", "lösenord",
    "adgangskode", "mật khẩu", "κωδικός", "סיסמ", "รหัสผ่าน", "口令", "كلمة المرور", "كلمة السر", "पासवर्ड",
)  # fmt: skip
# What follows `password` in an assignment, which is no sentence.
_ASSIGNS = ("=", ":", '"', "'")
_WORDS_BETWEEN = r"(?:\s(?:[^\W\d]|-){1,12}){0,3}?"
_SIGN = r"\s{0,2}[:：=]{1,2}\s{0,2}|\s?(?:[–—]|->|-\s)\s?"
_VERB = r"\s(?:is|was|ist|lautet|war|est|es|é|è|jest|to|är|je|là|er|adalah)\s{1,2}:?\s?"
_PARTICLE = r"\s{0,2}(?:是|为|為|は|が|는|은|가|है|είναι|היא|คือ|هي)\s{0,2}[:：]?\s{0,2}"
# From the end of the hint to the value. A value that follows the word at once has to begin like a password.
_UP_TO_VALUE = compile_later(
    rf"[^\W\d]{{0,6}}?(?:{_WORDS_BETWEEN}(?:{_SIGN}|{_VERB}|{_PARTICLE})|\s(?=[a-z]{{1,12}}(?:[-_!#%&+?@^][a-z]{{0,12}})?\d))"
    r"[\"'`«„“「]?"
)
_STATED_VALUE = compile_later(r"[!#-&*-:=?-Z^-z~]{6,64}")


def find_stated_passwords(text: str, lower: str, *, has_pass: bool) -> Iterator[FoundSecret]:
    """The passwords that a sentence states.

    `lower` is the text in lower case, with the same offsets, and `has_pass` whether it contains "pass".
    """
    hints = (*_PASS_HINTS, *OTHER_PASSWORD_WORDS) if has_pass else OTHER_PASSWORD_WORDS
    for hint in hints if text.isascii() else (*hints, *_OTHER_HINTS):
        position = lower.find(hint)
        while position >= 0:
            position += len(hint)
            if hint != "passwor" or lower[position + 1 : position + 2] not in _ASSIGNS:
                yield from _read_password(text, lower, position)
            position = lower.find(hint, position)


def _read_password(text: str, lower: str, position: int) -> Iterator[FoundSecret]:
    """The password after a word for one that ends at or after a position, if there is one."""
    before = _UP_TO_VALUE.match(lower, position)
    value = _STATED_VALUE.match(text, before.end()) if before else None
    if value is not None:
        password = value[0].rstrip(".,:;!?")
        if is_password(password) and not is_reference(password):
            yield FoundSecret("password", value.start(), value.start() + len(password))
