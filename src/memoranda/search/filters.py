"""The filters of a search, each described once.

The tool, the library, the HTTP API, the command line, the pages of the viewer and the indexes follow from `FILTERS`. A
filter has the same name everywhere; only the command line may spell it shorter.
"""

import re
import time
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import partial
from math import floor
from typing import Any

from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import InvalidArgumentsError

ROLES = ("user", "assistant", "tool", "system")
ALL_ITEMS = "all"
_MAX_NAMES = 50
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNITS = {
    "m min mins minute minutes": 60,
    "h hour hours": 3_600,
    "d day days": 86_400,
    "w week weeks": 604_800,
    "mo month months": 2_629_800,
    "y year years": 31_557_600,
}
_SECONDS = {name: seconds for names, seconds in _UNITS.items() for name in names.split()}
_AGO = re.compile(r"(\d{1,6})\s*([a-z]+)(?:\s+ago)?")
_DAYS = {"today": 0, "yesterday": 1}
_LATEST = 253_402_300_800
_FORMS = "30d, 12h, 2w, 6mo, 2026-11-01, 2026-11-01T14:30, today or yesterday"
# Without a zone, which would be written after every time.
_EPOCH = datetime(1970, 1, 1)
_MAX_NUMBER = 1e20


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """One way to narrow a search."""

    name: str
    """The argument of the tool, of the library, of an HTTP request, and in the address of a page."""
    label: str
    """What a page calls it."""
    help: str
    """What it does, for a person."""
    for_model: str
    """What it does and how it is written, for a model."""
    read: Callable[[str, Any, float], Any]
    """Checks a value, given the name and the time now; raises InvalidArgumentsError."""
    option: str = ""
    """How the command line spells it; `--name` if this is empty."""
    choices: tuple[str, ...] = ()
    several: bool = False
    """Whether it takes several names: a list, or a text with commas."""
    column: str = ""
    """The column of sessions that it compares; every index knows which messages belong to each of its values."""
    contains: bool = False
    """Whether a part of the column's value is enough, ignoring case."""

    @property
    def is_time(self) -> bool:
        return self.name in ("since", "until")


def _read_names(name: str, value: Any, now: float) -> frozenset[str] | None:
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise InvalidArgumentsError(f"{name} must be names separated by commas, not {type(value).__name__}.")
    names = frozenset(replace_surrogates(item).strip() for item in value if item.strip())
    if len(names) > _MAX_NAMES:
        raise InvalidArgumentsError(f"{name} takes at most {_MAX_NAMES} names, not {len(names)}.")
    return names or None


def _read_roles(name: str, value: Any, now: float) -> frozenset[str] | None:
    names = _read_names(name, value, now)
    if names is None:
        return None
    roles = frozenset(role.lower() for role in names)
    if unknown := sorted(roles.difference(ROLES)):
        raise InvalidArgumentsError(f"{name} takes {', '.join(ROLES)}, not {describe_value(unknown[0])}.")
    return roles


def _read_name(name: str, value: Any, now: float) -> frozenset[str] | None:
    text = read_text(name, value)
    return frozenset((text,)) if text else None


def _read_namespace(name: str, value: Any, now: float) -> tuple[str, ...] | None:
    text = read_text(name, value)
    labels = tuple(label for label in text.split("/") if label)
    return (() if text == ALL_ITEMS else labels) if labels else None


def _read_time(name: str, value: Any, now: float, *, end: bool) -> float | None:
    if value == "":
        return None
    try:
        return parse_time(value, now=now, end=end)
    except ValueError as error:
        raise InvalidArgumentsError(f"{name}: {error}") from None


FILTERS = (
    SearchFilter(
        "role_filter",
        "Role",
        "Only messages of this role.",
        "Only messages of these roles, separated by commas: user, assistant, tool, system.",
        _read_roles,
        option="--role",
        choices=ROLES,
        several=True,
    ),
    SearchFilter(
        "since",
        "Time",
        "From this time on: 30d, 12h, 2026-11-01.",
        "Only messages from this time on: 30d, 12h, 2w, 2026-11-01, yesterday.",
        partial(_read_time, end=False),
    ),
    SearchFilter(
        "until",
        "Until",
        "Up to this time.",
        "Only messages up to this time, in the same format.",
        partial(_read_time, end=True),
    ),
    SearchFilter(
        "source",
        "Agent",
        "Only from this source: cli, telegram …",
        "Only conversations from these sources, separated by commas: cli, telegram …",
        _read_names,
        several=True,
        column="source",
    ),
    SearchFilter(
        "project",
        "Project",
        "Only this project: this (the repository or directory you are in), owner/name, or a directory.",
        "Only conversations about one project: this, a repository such as owner/name, or a directory.",
        _read_name,
        column="project",
    ),
    SearchFilter(
        "model",
        "Model",
        "Only conversations with models whose name contains this.",
        "Only conversations with models whose name contains one of these, separated by commas: opus, gpt …",
        _read_names,
        several=True,
        column="model",
        contains=True,
    ),
    SearchFilter(
        "items",
        "Items",
        "Also show items of programs: all, or those under a namespace such as notes/work.",
        "Also show items, which are facts that programs keep: all, or those under a namespace such as notes/work.",
        _read_namespace,
    ),
)


def chosen_filters(arguments: Any, now: float) -> dict[str, Any]:
    """The filters among the arguments of a search, checked, by name; those that say nothing are left out."""
    found = {}
    for each in FILTERS:
        value = arguments.get(each.name)
        if value is not None and (checked := each.read(each.name, value, now)) is not None:
            found[each.name] = checked
    return found


def show_time(seconds: float | None) -> str | None:
    """A timestamp in the format of every answer: UTC, to the second."""
    if seconds is None:
        return None
    try:
        return f"{(_EPOCH + timedelta(seconds=floor(seconds))).isoformat()}Z"
    except (ValueError, OverflowError, OSError):
        return f"{seconds:.0f} s since 1970" if abs(seconds) < _MAX_NUMBER else f"{seconds:g} s since 1970"


def parse_time(text: object, *, now: float | None = None, end: bool = False) -> float:
    """Parses a time as people write it into seconds since 1970; a day means its start, or its end if `end`.

    Raises ValueError for anything else; its message names the valid forms.
    """
    now = time.time() if now is None else now
    if isinstance(text, int | float) and not isinstance(text, bool) and abs(text) < _LATEST:
        return float(text)
    if not isinstance(text, str):
        raise ValueError(f"This {type(text).__name__} is not a time; write {_FORMS}.")
    word = text.strip()
    if (ago := _AGO.fullmatch(word)) and ago[2] in _SECONDS:
        return now - int(ago[1]) * _SECONDS[ago[2]]
    try:
        if word.lower() in _DAYS:
            day = date.fromtimestamp(now) - timedelta(days=_DAYS[word.lower()])
        elif re.fullmatch(r"\d{4}-\d{2}-\d{2}", word):
            day = date.fromisoformat(word)
        else:
            return datetime.fromisoformat(word).timestamp()
        if end and day == date.max:
            return float(_LATEST)
        begin = datetime.combine(day, datetime.min.time())
        return (begin + timedelta(days=1)).timestamp() - 0.001 if end else begin.timestamp()
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{word[:60]!r} is not a time; write {_FORMS}.") from None


def read_text(name: str, value: Any) -> str:
    """A text argument without surrounding white space; "" for none."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidArgumentsError(f"{name} must be text, not {type(value).__name__}.")
    return replace_surrogates(value).strip()


def describe_value(value: Any) -> str:
    """A wrong value, short enough for an error message."""
    return repr(value[:60]) if isinstance(value, str) else type(value).__name__


def replace_surrogates(text: str) -> str:
    """A text that can be stored and sent: half of a surrogate pair becomes U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)
