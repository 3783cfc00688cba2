"""Shell commands and paths that read, send away or replace secrets.

The scan lists the positions of verbs (commands that read or send, orders to do so) and of objects (secret files,
variables, pipes); a verb followed closely by an object on one line is a finding. Building the lists first keeps the
work linear: text that repeats one verb ten thousand times costs one pass.

A conversation may name a file with credentials, such as the `.env` of an agent's home or a private key. A memory may
not: it stays in every later prompt, where it would lead the agent to the credentials. So `find_credential_paths` checks
only what is written into curated memory.
"""

import re
from collections.abc import Collection, Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple

from memoranda.safety.finding import Finding, Severity
from memoranda.safety.substrings import contains_any, lines_with
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.lazy_pattern import compile_later

_MAX_PER_RULE = 4
_MAX_OBJECTS = 2000
_SECRET_VARIABLE = r"\$(?:env:)?\{?[a-z0-9_]{0,40}(?:key|token|secret|passw|credential)"
_KNOWN_HOSTS = r"(?:[\w.-]{1,80}\.)?(?:googleapis\.com|telegram\.org|github\.com|localhost|127\.0\.0\.1|example\.com)\b"
_SENDERS = "curl|wget|ncat|netcat|nc|socat|scp|tftp|ftp|invoke-webrequest|iwr|telnet"

# Patterns begin with a plain character where they can, which lets `re` skip fast; the word boundary comes after it.
_VERBS = {
    "sender": rf"(?:{_SENDERS})\b",
    "reader": r"(?:cat|less|more|head|tail|bat|strings|xxd|base64|tac|type|get-content)(?=\s)",
    "send": r"(?:send|upload|email|e-mail|exfiltrate|leak|transmit)\b",
    "open": r"(?:reading|read|contents? of|open|include|print|access|share|copy|post|forward)\b",
    "environment": r"(?:printenv|env)(?=\s{0,4}\|)",
    "public_key": r"ssh-(?:rsa|ed25519|dss)(?=\s)",
    "shell": r"(?:bash|sh|exec)\b",
    "secret_folder": r"(?:~|\$home|/root|/home/[\w.-]{1,40})/\.(?:ssh|aws|gnupg|kube|config/gcloud)\b",
}
_OBJECTS = {
    "key_file": (
        r"\.ssh[/\\]id_[a-z0-9_]{1,20}(?!\w|\.pub)|\.aws[/\\]credentials\b|/etc/shadow\b|\.git-credentials\b"
        r"|id_(?:rsa|dsa|ecdsa|ed25519)\b(?!\.pub)|\.(?:memoranda|hermes|openclaw)[/\\]\.env\b"
    ),
    "secret_file": (
        r"\.ssh[/\\](?:identity\b|\*)|\.netrc\b|\.pgpass\b|\.npmrc\b|\.pypirc\b|\.env(?:\.(?:local|production|prod"
        r"|staging))?(?![\w.\-])"
        r"|\.kube[/\\]config\b|\.docker[/\\]config\.json\b|\.gnupg\b|\.config[/\\]gcloud\b|credentials\.json\b"
        r"|wallet\.dat\b"
    ),
    "variable_in_url": rf"https?://(?!{_KNOWN_HOSTS})[^\s\"'`$]{{1,160}}{_SECRET_VARIABLE}",
    "variable_as_data": rf"-(?:d|f|-data(?:-\w{{1,9}})?|-post-data|-form)[ =][^\n$]{{0,60}}{_SECRET_VARIABLE}",
    "to_sender": rf"\|[^\n|]{{0,60}}?\b(?:{_SENDERS})\b",
    "to_shell": r"\|\s{0,3}(?:sudo\s)?(?:ba|z|da|k)?sh\b",
    "to_login_keys": r">\s{0,3}[^\s|;&]{0,60}authorized_keys(?![\w.])|tee\s[^\n|;&]{0,60}authorized_keys",
    "login_keys": "authorized_keys",
    "network_device": "/dev/tcp/",
    "environment_sent": (
        r"json\s?=\s?(?:dict\(\s?)?os\.environ|data\s?=\s?(?:str\(|dict\(|repr\()?os\.environ(?!\s?[\[.])"
        r"|stringify\(process\.env\)|//[^\s\"'`]{1,120}[\"'`]\s?\+\s?(?:os\.environ|os\.getenv|process\.env"
        r"|localstorage|document\.cookie)"
    ),
    "wipe": (
        r"rm\s{1,3}-[a-z]{1,4}\s{1,3}(?:--no-preserve-root\s{1,3})?(?:~/?|/\*?|\$home/?)(?=[\s\"'`;.]|\Z)"
        r"|--no-preserve-root|dd\s[^\n|;]{0,60}if=/dev/(?:zero|u?random)\s[^\n|;]{0,40}of=/dev/(?:sd|nvme|hd|vd)"
    ),
    "unsafe_index": (
        r"(?:--(?:extra-)?index[-]url|pip3?\sinstall\s[^\n|;]{0,80}-i)[ =]http://(?!localhost|127\.|10\.|192\.168\.)"
    ),
    "as_shell": r"-[ec]\s{1,3}/?(?:bin/)?(?:ba)?sh\b",
}
# An object can only occur in a text that contains one hint of each row.
_HINTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "key_file": (("id_", ".aws", "/etc/shadow", ".git-", "/.env"),),
    "secret_file": (
        (
            ".ssh",
            ".netrc",
            ".pgpass",
            ".npmrc",
            ".pypirc",
            ".env",
            ".kube",
            ".docker",
            ".gnupg",
            ".config",
            ".json",
            ".dat",
        ),
    ),
    "variable_in_url": (("$",), ("://",)),
    "variable_as_data": (("$",), (" -",)),
    "to_sender": (("|",), tuple(_SENDERS.split("|"))),
    "to_shell": (("|",), ("curl", "wget")),
    "to_login_keys": (("authorized_keys",),),
    "login_keys": (("authorized_keys",),),
    "network_device": (("/dev/tcp/",),),
    "environment_sent": (("environ", "getenv", "process.env", "localstorage", "document.cookie"),),
    "wipe": (("rm -", "rm  -", "--no-preserve", "of=/dev/"),),
    "unsafe_index": (("-url", "pip"), ("http://",)),
    "as_shell": ((" -e", " -c"), ("nc", "netcat")),
}


@dataclass(frozen=True, slots=True)
class CommandRule:
    """A verb (or none) followed by one of the objects on the same line, at most `reach` characters apart."""

    id: str
    severity: Severity
    verb: str
    objects: tuple[str, ...]
    reach: int = 120


_FIRST_HINTS = tuple(dict.fromkeys(hint for rows in _HINTS.values() for hint in rows[0]))
MESSAGES = {
    "hidden_text": "The text names more files and commands than can be checked.",
    "exfiltration_command": "A command sends a secret to another machine.",
    "secret_path": "The text asks to read or pass on a file that contains secrets.",
    "ssh_backdoor": "The text plants a key that lets another person log in.",
    "download_and_run": "The text orders code from the network to be run unseen.",
    "reverse_shell": "A command opens a shell to another machine.",
    "destructive_command": "A command deletes a whole home, system or disk.",
}
COMMAND_RULES = (
    CommandRule(
        "exfiltration_command",
        Severity.HIGH,
        "sender",
        ("key_file", "secret_file", "variable_in_url", "variable_as_data"),
    ),
    CommandRule("exfiltration_command", Severity.HIGH, "environment", ("to_sender",)),
    CommandRule("exfiltration_command", Severity.HIGH, "secret_folder", ("to_sender",)),
    CommandRule("exfiltration_command", Severity.HIGH, "", ("environment_sent",)),
    CommandRule("destructive_command", Severity.HIGH, "", ("wipe",)),
    CommandRule("download_and_run", Severity.MEDIUM, "", ("unsafe_index",)),
    CommandRule("secret_path", Severity.HIGH, "reader", ("key_file", "secret_file"), 80),
    CommandRule("secret_path", Severity.HIGH, "send", ("key_file", "secret_file")),
    CommandRule("secret_path", Severity.HIGH, "open", ("key_file",)),
    CommandRule("ssh_backdoor", Severity.HIGH, "", ("to_login_keys",)),
    CommandRule("ssh_backdoor", Severity.HIGH, "public_key", ("login_keys", "to_login_keys"), 900),
    CommandRule("download_and_run", Severity.MEDIUM, "sender", ("to_shell",), 200),
    CommandRule("reverse_shell", Severity.HIGH, "shell", ("network_device",)),
    CommandRule("reverse_shell", Severity.HIGH, "sender", ("as_shell",), 60),
)
_TOO_MANY = CommandRule("hidden_text", Severity.MEDIUM, "", ())
_ORDER_TO_RUN = r"\b(?:run|execute|always|must|first)[\s:`'\"(]{1,4}\Z"
# "more information about the .netrc" is prose; a command has options and paths between its name and its file.
_PLAIN_WORD = r"(?<![\w/$~{.\\-])(?!(?:the|your|my|contents?|of|file|all|out)\b)[a-z]{2,}(?![\w/}.\\:-])"
_BARE_MACHINE = r"https?://\d{1,3}(?:\.\d{1,3}){3}|http://(?!localhost)"
_SCHEDULE = r"(?:\*\s){2}|\bwhile\b|\bdo\s{1,3}\Z"
_INSTALLER = r"install|setup|get\.|rustup|brew|bootstrap"


class CommandMatch(NamedTuple):
    """The part of the folded text that a command rule matched."""

    rule: CommandRule
    start: int
    end: int


class _Occurrence(NamedTuple):
    """The position of a verb or an object in the text; sorted by position."""

    start: int
    end: int
    kind: str


CommandHints = frozenset[tuple[str, int]]
"""The rows of hints of which a text has one: the kind of an object, and the number of the row."""


def command_hints(plain: str) -> CommandHints:
    """What a folded text has of the hints without which there is no command."""
    return frozenset(
        (kind, number) for kind, rows in _HINTS.items() for number, row in enumerate(rows) if contains_any(row, plain)
    )


def can_have_command(hints: CommandHints, rule_ids: Collection[str]) -> bool:
    """Whether a text with these hints can have a command that one of these rules forbids."""
    kinds = {kind for rule in COMMAND_RULES if rule.id in rule_ids for kind in rule.objects}
    return any(all((kind, number) in hints for number in range(len(_HINTS[kind]))) for kind in kinds)


def find_commands(plain: str) -> Iterator[CommandMatch]:
    """Find every command rule's matches in a folded text, commands continued over lines included."""
    text = plain.replace("\\\n", "  ") if "\\\n" in plain else plain
    if not contains_any(_FIRST_HINTS, text):
        return
    possible = [kind for kind, rows in _HINTS.items() if all(contains_any(row, text) for row in rows)]
    objects = list(islice(_objects(text, possible), _MAX_OBJECTS + 1))
    if len(objects) > _MAX_OBJECTS:
        yield CommandMatch(_TOO_MANY, objects[0].start, objects[-1].end)
    elif objects:
        yield from _pair_verbs_with_objects(text, objects)


def _pair_verbs_with_objects(text: str, objects: list[_Occurrence]) -> Iterator[CommandMatch]:
    """Walk through verbs and objects in order, and match each object with the latest verb of each of its rules."""
    kinds = {found.kind for found in objects}
    verbs = {rule.verb for kind in kinds for _, rule in _rules_for(kind)} - {""}
    remaining = [_MAX_PER_RULE] * len(COMMAND_RULES)
    latest: dict[str, _Occurrence] = {}
    for found in sorted([*objects, *_verbs_near(text, sorted(verbs), objects)]):
        if found.kind in verbs:
            if not found.start or text[found.start - 1] not in _WORD_SIGNS:
                latest[found.kind] = found
            continue
        for number, rule in _rules_for(found.kind):
            start = _match_start(rule, text, latest.get(rule.verb), found.start) if remaining[number] else None
            if start is not None:
                remaining[number] -= 1
                yield CommandMatch(rule, start, found.end)


def _objects(text: str, kinds: list[str]) -> Iterator[_Occurrence]:
    """The objects of these kinds; each is in a line with one of its hints."""
    for kind in kinds:
        for line in lines_with(text, _HINTS[kind][0]):
            for match in _compiled(kind).finditer(text, *line):
                yield _Occurrence(*match.span(), kind)


def _verbs_near(text: str, kinds: list[str], objects: list[_Occurrence]) -> Iterator[_Occurrence]:
    """The verbs in the lines of the objects; elsewhere they belong to no rule."""
    end = 0
    for found in sorted(objects):
        if found.start >= end:
            start, end = text.rfind("\n", 0, found.start) + 1, text.find("\n", found.end) + 1 or len(text)
            for kind in kinds:
                for match in _compiled(kind).finditer(text, start, end):
                    yield _Occurrence(*match.span(), kind)


def _match_start(rule: CommandRule, text: str, verb: _Occurrence | None, start: int) -> int | None:
    """The start of a match that ends in an object at `start`; None when the rule's latest verb is not near enough."""
    if not rule.verb:
        return start
    if verb is None or start - verb.end > rule.reach or text.find("\n", verb.end, start) >= 0:
        return None
    between = text[verb.end : start]
    if rule.verb == "reader" and re.search(_PLAIN_WORD, between):
        return None
    if "to_shell" in rule.objects and not _is_blind_run(text[max(0, verb.start - 40) : verb.start], between):
        return None
    return verb.start


@cache
def _compiled(kind: str) -> re.Pattern[str]:
    return re.compile((_VERBS | _OBJECTS)[kind])


@cache
def _rules_for(kind: str) -> tuple[tuple[int, CommandRule], ...]:
    return tuple((number, rule) for number, rule in enumerate(COMMAND_RULES) if kind in rule.objects)


_WORD_SIGNS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_'.-/")


def _is_blind_run(before: str, address: str) -> bool:
    """Whether a download is piped into a shell by order, on a schedule or from a bare machine.

    The installers that tools document do not count: they come from a named host over HTTPS.
    """
    if re.search(_BARE_MACHINE, address) or re.search(_SCHEDULE, before):
        return True
    return bool(re.search(_ORDER_TO_RUN, before)) and not re.search(_INSTALLER, address)


_AGENTS = "memoranda|hermes|openclaw"
_CREDENTIAL_PATHS = compile_later(
    rf"\.(?:{_AGENTS})[/\\](?:[\w.-]{{1,80}}[/\\]){{0,3}}\.env(?![\w-])"
    rf"|\$\{{?(?:{_AGENTS})_home\}}?[/\\](?:[\w.-]{{1,80}}[/\\]){{0,3}}\.env(?![\w-])"
    r"|\.ssh[/\\](?:id_[\w-]{1,40}|identity)(?![\w.-]*\.pub)\b"
    r"|(?<![\w-])id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?(?![\w.-]*\.pub)\b"
    r"|\.gnupg[/\\](?:private-keys|secring)[\w.-]{0,20}",
    re.IGNORECASE,
)
_PATH_HINTS = (".env", "id_", "identity", ".gnupg")
_CREDENTIAL_PATH_MESSAGE = "The text names a file with credentials: the .env of an agent, or a private key."


def find_credential_paths(text: str) -> Iterator[Finding]:
    """Find the paths of files with credentials in a text."""
    lowered = text.lower()
    if any(hint in lowered for hint in _PATH_HINTS):
        for found in _CREDENTIAL_PATHS.finditer(text):
            yield Finding("credential_file", Severity.HIGH, found.span(), _CREDENTIAL_PATH_MESSAGE)
