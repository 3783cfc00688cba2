"""Credentials written in clear, recognised by the form their issuers give them.

Formats with an issuer's prefix are certain. Assignments (`password = …`) are judged by their value: a reference
(`$TOKEN`, `<your key>`, `see the vault`), a placeholder, a word or a plain hash is not a secret.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import log2

from memoranda.safety.hints import occurs


@dataclass(frozen=True, slots=True)
class Secret:
    """A credential at `start` up to `end` of the text; `kind` names its issuer or form."""

    kind: str
    start: int
    end: int


_KEY_BLOCK = "-----BEGIN"
# Every issuer's token has this many letters, digits, '_' and '-' in a row, but for those with a mark of their own.
_RUN = b"a" * 20
_AS_RUNS = bytes(97 if byte < 128 and (chr(byte).isalnum() or chr(byte) in "_-") else 32 for byte in range(256))
_MARKS = (_KEY_BLOCK, "AccountKey=", "hooks.slack.com", "whsec_")
# An issuer's prefix may end with a sign that is not part of the run: this much of what stands before is looked at too.
_BEFORE_RUN = 12
_VARIED = re.compile(rb"[A-Z0-9]")
# kind, texts of which one must occur, pattern. Lengths are those the issuers document or use, with some room.
_FORMATS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("anthropic_key", ("sk-ant-",), r"\bsk-ant-[A-Za-z0-9_-]{20,200}"),
    ("openai_key", ("sk-",), r"\bsk-(?!ant-)(?:proj-|svcacct-|admin-|None-|or-v1-)?[A-Za-z0-9_-]{20,200}"),
    ("github_token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"\bgh[pousr]_[A-Za-z0-9]{30,255}"),
    ("github_token", ("github_pat_",), r"\bgithub_pat_[A-Za-z0-9_]{40,255}"),
    ("gitlab_token", ("glpat-", "gldt-", "glrt-", "glptt-"), r"\bgl(?:pat|dt|rt|ptt)-[A-Za-z0-9_-]{20,64}"),
    ("aws_access_key", ("AKIA", "ASIA"), r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("google_key", ("AIza",), r"\bAIza[A-Za-z0-9_-]{35}"),
    ("google_oauth", ("ya29.", "GOCSPX-"), r"\bya29\.[A-Za-z0-9_-]{20,500}|\bGOCSPX-[A-Za-z0-9_-]{20,64}"),
    ("slack_token", ("xox", "xapp-"), r"\bxox[abeoprs]-[A-Za-z0-9-]{15,250}|\bxapp-\d-[A-Za-z0-9-]{20,250}"),
    (
        "slack_webhook",
        ("hooks.slack.com",),
        r"hooks\.slack\.com/(?:services|workflows)/T[A-Za-z0-9]{6,14}/[A-Za-z0-9/]{12,80}",
    ),
    ("discord_webhook", ("/api/webhooks/",), r"discord(?:app)?\.com/api/webhooks/\d{15,22}/[\w-]{40,100}"),
    (
        "stripe_key",
        ("_live_", "_test_", "whsec_"),
        r"\b[srp]k_(?:live|test)_[A-Za-z0-9]{16,255}|\bwhsec_[A-Za-z0-9+/]{24,64}",
    ),
    ("npm_token", ("npm_",), r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("pypi_token", ("pypi-",), r"\bpypi-[A-Za-z0-9_-]{50,500}"),
    ("hugging_face_token", ("hf_",), r"\bhf_[A-Za-z0-9]{30,64}\b"),
    ("sendgrid_key", ("SG.",), r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,64}"),
    ("telegram_bot_token", (":AA",), r"\b\d{8,10}:AA[A-Za-z0-9_-]{32,34}"),
    ("twilio_key", ("SK", "AC"), r"\b(?:SK|AC)[0-9a-f]{32}\b"),
    ("digitalocean_token", ("dop_v1_", "doo_v1_"), r"\bdo[op]_v1_[0-9a-f]{64}"),
    ("shopify_token", ("shpat_", "shpss_", "shpca_"), r"\bshp(?:at|ss|ca)_[0-9a-fA-F]{32}"),
    ("databricks_token", ("dapi",), r"\bdapi[0-9a-f]{32}\b"),
    ("groq_key", ("gsk_",), r"\bgsk_[A-Za-z0-9]{40,64}"),
    ("xai_key", ("xai-",), r"\bxai-[A-Za-z0-9]{60,100}"),
    ("replicate_token", ("r8_",), r"\br8_[A-Za-z0-9]{37,40}\b"),
    ("perplexity_key", ("pplx-",), r"\bpplx-[A-Za-z0-9]{40,64}"),
    ("linear_key", ("lin_api_",), r"\blin_api_[A-Za-z0-9]{32,64}"),
    ("notion_token", ("ntn_", "secret_"), r"\bntn_[A-Za-z0-9]{40,60}|\bsecret_[A-Za-z0-9]{43}\b"),
    ("vault_token", ("hvs.", "hvb."), r"\bhv[sb]\.[A-Za-z0-9_-]{24,200}"),
    ("age_key", ("AGE-SECRET-KEY-",), r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,64}"),
    ("private_key", (_KEY_BLOCK,), r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"),
    ("json_web_token", ("eyJ",), r"\beyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{20,1000}"),
    ("azure_storage_key", ("AccountKey=",), r"AccountKey=[A-Za-z0-9+/]{60,100}={0,2}"),
)
# kind, texts of which each must occur in lower case, pattern.
_WITH_VALUE: tuple[tuple[str, tuple[str, str], str], ...] = (
    (
        "connection_string",
        ("@", "://"),
        r"\b[a-z][a-z0-9+.-]{2,20}://[^\s:/@\"'`<>]{0,64}:(?P<value>[^\s/@\"'`]{3,128})@[\w.\[-]",
    ),
    ("bearer_token", ("bearer", "bearer "), r"\b[Bb](?:earer|EARER)\s{1,3}(?P<value>[A-Za-z0-9._~+/-]{20,2000}={0,2})"),
    (
        "basic_credentials",
        ("authorization", "basic "),
        r"\b[Aa]uthorization\s?:\s{0,3}[Bb]asic\s{1,3}(?P<value>[A-Za-z0-9+/]{12,500}={0,2})",
    ),
)

_ISSUER_HINTS = tuple(dict.fromkeys(hint for _, hints, _ in _FORMATS for hint in hints))

# Matched on a lower-case copy; the value is then read from the text itself.
_ASSIGNMENT_HINTS = ("key", "token", "secret", "pass", "pwd")
# The longest such word with what may stand between it and its value.
_NAME_AND_SIGN = 24
# And what may stand before the hint in such a word.
_BEFORE_HINT = 12
_ASSIGNMENT = (
    r"(?:api[_ -]?key|access[_ -]?key|secret[_ -]?key|private[_ -]?key|auth[_ -]?token|secret|token|password"
    r"|passwd|passphrase|pwd)"
    r"[\"'`]?(?:\s{0,3}(?::=|=>|=|:)|\sis\b)\s{0,3}[\"'`]?"
)
_VALUE = r"[^\s\"'`,;<>{}()\[\]]{6,256}"

_REFERENCE = (
    r"(?i)^[$%@~&*#.!\\/|-]|^(?:https?|sha\d{1,3}-?|pbkdf2|scrypt|bcrypt|os|env|process|config|settings|self|str"
    r"|see|vault|secrets?)[.:/\[-]|\$\{|\.\.\.|…|\*{3}|x{4}"
)
_PLACEHOLDER = (
    r"(?i)your|example|sample|placeholder|change|dummy|fake|redacted|secret|password|token|xxx|todo|foo|bar\b|here"
    r"|insert|replace|test|none|null|true|false|my[_-]|^(?:abc|1234).{0,12}$"
)
_HASH = r"(?i)^(?:sha\d{1,3}[-:])?[0-9a-f]{7,128}$|^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$"


def find_secrets(text: str) -> list[Secret]:
    """Find credentials in `text`, in order of their place and without overlaps."""
    lower = text.lower()
    if len(lower) != len(text):  # a few capitals grow when lowered, which would shift offsets
        lower = "".join(char.lower() if char.isascii() else char for char in text)
    # Nearly all text has no credential in it: each part asks cheap questions first.
    found: list[Secret] = []
    suspects = _suspects(text)
    if suspects and occurs(_ISSUER_HINTS, suspects):
        found += _formatted(text, suspects)
    for kind, (rare, common), pattern in _WITH_VALUE:
        if rare in lower and common in lower:
            found += _with_value(kind, pattern, text)
    if occurs(_ASSIGNMENT_HINTS, lower):
        found += _assigned(text, lower)
    return _without_overlaps(found) if found else found


def _without_overlaps(found: list[Secret]) -> list[Secret]:
    kept: list[Secret] = []
    for secret in sorted(found, key=lambda secret: (secret.start, -secret.end)):
        if not kept or secret.start >= kept[-1].end:
            kept.append(secret)
    return kept


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(_literal_first(pattern))


def _literal_first(pattern: str) -> str:
    """The same pattern with its word boundary behind the issuer's prefix: `re` skips fast to a leading literal."""
    found = re.match(r"\\b([A-Za-z0-9_-]{2,})(?![?*+{])", pattern)
    if not found or "|" in pattern:
        return pattern
    return rf"{found[1]}(?<!\w{found[1]}){pattern[found.end() :]}"


def _suspects(text: str) -> str:
    """The few places of a text that can hold an issuer's token: long runs with capitals or digits, and marks."""
    found = [mark for mark in _MARKS if mark in text]
    stored = text.encode("utf-8", "replace")
    runs = stored.translate(_AS_RUNS)
    start = runs.find(_RUN)
    while start >= 0:
        end = runs.find(b" ", start)
        run = stored[max(0, start - _BEFORE_RUN) : end if end >= 0 else len(stored)]
        if _VARIED.search(run):
            found.append(run.decode("utf-8", "replace"))
        start = runs.find(_RUN, end) if end >= 0 else -1
    return " ".join(found)


def _formatted(text: str, suspects: str) -> Iterator[Secret]:
    for kind, hints, pattern in _FORMATS:
        if occurs(hints, suspects):
            for match in _compiled(pattern).finditer(text):
                if kind in ("private_key", "json_web_token") or _looks_random(match[0]):
                    yield Secret(kind, match.start(), match.end())


def _with_value(kind: str, pattern: str, text: str) -> Iterator[Secret]:
    for match in _compiled(pattern).finditer(text):
        if _looks_real(kind, match["value"]):
            yield Secret(kind, match.start("value"), match.end("value"))


def _assigned(text: str, lower: str) -> Iterator[Secret]:
    assignment, position = _compiled(_ASSIGNMENT), 0
    for place in sorted(place for hint in _ASSIGNMENT_HINTS for place in _assignments(lower, hint)):
        end = place + 2 * _NAME_AND_SIGN
        match = assignment.search(lower, max(position, place - _BEFORE_HINT), end)
        if match and match.end() <= place:
            match = assignment.search(lower, match.end(), end)
        if match is None or match.start() > place:
            continue
        if value := _compiled(_VALUE).match(text, match.end()):
            position = value.end()
            if _looks_real("assigned_secret", value[0]):
                yield Secret("assigned_secret", *value.span())


def _assignments(lower: str, hint: str) -> Iterator[int]:
    """Where a word that names secrets is followed by a sign that gives it a value."""
    place = lower.find(hint)
    while place >= 0:
        following = lower[place : place + _NAME_AND_SIGN]
        if ":" in following or "=" in following or " is" in following:
            yield place
        place = lower.find(hint, place + len(hint))


def _looks_random(token: str) -> bool:
    """Whether the part after the issuer's prefix has the variety of a generated value."""
    tail = token[-20:]
    return len(set(tail)) >= 9 and not re.search(r"x{4}|0{6}|example|placeholder|your", token, re.I)


def _looks_real(kind: str, value: str) -> bool:
    if _compiled(_REFERENCE).search(value) or _compiled(_PLACEHOLDER).search(value):
        return False
    if kind == "connection_string":
        return len(set(value)) >= 4 and (
            any(map(str.isdigit, value)) or not value.replace("_", "").replace("-", "").islower()
        )
    if kind in ("bearer_token", "basic_credentials"):
        return _bits(value) >= 3.0 and any(map(str.isdigit, value))
    if _compiled(_HASH).match(value) or "://" in value or value.count("/") > 1 or value.count(".") > 2:
        return False
    return _is_password_like(value)


def _is_password_like(value: str) -> bool:
    """A mixture that nobody writes as a word: letters with digits or signs, and varied enough for its length."""
    letters = any(map(str.isalpha, value))
    digits = sum(map(str.isdigit, value))
    signs = sum(not char.isalnum() and char not in "_-./:" for char in value)
    cases = any(map(str.islower, value)) and any(map(str.isupper, value))
    mixed = letters and (digits >= 2 or (signs and (digits or cases)))
    return (
        bool(mixed)
        and len(value) >= 8
        and _bits(value) >= 2.75
        and not re.fullmatch(r"[A-Za-z]+[-_.:]?\d{1,4}|[a-z_]+\(.*", value)
    )


def _bits(value: str) -> float:
    counts = Counter(value)
    return -sum(count / len(value) * log2(count / len(value)) for count in counts.values())
