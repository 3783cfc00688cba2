"""The arguments of a `session_search` call, checked once, how answers repeat them, and pages joined into one list.

`FILTERS` describes each filter once: the tool, the library, the HTTP API, the command line, the pages of the viewer and
the indexes follow from it. A filter has the same name everywhere; only the command line may spell it shorter. People
and programs may list more than a model, so they get several pages at once.
"""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from datetime import date, datetime, timedelta
from functools import partial
from math import floor
from typing import Any, Literal

from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.shorten import json_size, shorten_end, shorten_for_json
from memoranda.support.tool import InvalidArgumentsError, JsonObject, tool_refusal

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
        raise InvalidArgumentsError(f"{name} must be one of {', '.join(ROLES)}; {describe_value(unknown[0])} is none.")
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


MAX_RESULTS = 10
MAX_WINDOW = 20
MAX_LISTED = 50
_DEFAULT_RESULTS = 3
_DEFAULT_WINDOW = 5
NAMES = (
    *("query", "limit", "sort", *(each.name for each in FILTERS)),
    *("session_id", "around_message_id", "window", "cursor", "why"),
)
_MAX_ECHO = 100
_MAX_ERROR_CHARS = 1_000
_CONTROL = {number: " " for number in (*range(32), *range(0x7F, 0xA0))}


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One call; which of its fields are set decides its mode."""

    query: str = ""
    session_id: str = ""
    around: int | None = None
    window: int = _DEFAULT_WINDOW
    limit: int = _DEFAULT_RESULTS
    sort: Literal["newest", "oldest"] | None = None
    filters: Mapping[str, Any] = field(default_factory=dict)
    """The values of the filters that are set, by name, as `FILTERS` checks them."""
    cursor: int = 0
    why: bool = False
    now: float | None = None
    """The time that dates in the query refer to; None for the time of the call."""

    def with_names(self, stored_name: Callable[[str], str]) -> "SearchRequest":
        """The same request with ids, sources and other names as the store stores them."""
        names = {
            each.name: frozenset(map(stored_name, self.filters[each.name]))
            for each in FILTERS
            if each.column and each.name in self.filters
        }
        return replace(self, session_id=stored_name(self.session_id), filters={**self.filters, **names})


def read_request(arguments: Any, now: float) -> SearchRequest:
    """Checks a model's arguments; numbers out of range become the nearest valid number."""
    if not isinstance(arguments, Mapping):
        raise InvalidArgumentsError(f"The arguments must be an object, not {type(arguments).__name__}.")
    query, session_id = (read_text(name, arguments.get(name)) for name in ("query", "session_id"))
    if not query and not session_id:
        _require_known(arguments)
    around = _number(arguments, "around_message_id")
    if around is not None and not session_id:
        raise InvalidArgumentsError("around_message_id needs the session_id it belongs to.")
    window, limit = _number(arguments, "window"), _number(arguments, "limit")
    return SearchRequest(
        query=query,
        session_id=session_id,
        around=around,
        window=_clamp(_DEFAULT_WINDOW if window is None else window, MAX_WINDOW),
        limit=_clamp(_DEFAULT_RESULTS if limit is None else limit, MAX_RESULTS),
        sort=_sort(arguments.get("sort")),
        filters=chosen_filters(arguments, now),
        cursor=max(0, _number(arguments, "cursor") or 0),
        why=arguments.get("why") in (True, "true", "True", 1),
        now=now,
    )


def _require_known(arguments: Mapping[Any, Any]) -> None:
    """Refuses a misspelt argument name, which would otherwise list the latest conversations."""
    unknown = [name for name in arguments if name not in NAMES]
    if unknown:
        raise InvalidArgumentsError(
            f"There is no argument {describe_value(unknown[0])}; the arguments are {', '.join(NAMES)}."
        )


def _clamp(number: int, maximum: int) -> int:
    return max(1, min(number, maximum))


def _number(arguments: Mapping[str, Any], name: str) -> int | None:
    value = arguments.get(name)
    if value is None or value == "":
        return None
    try:
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            raise TypeError
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgumentsError(f"{name} must be a whole number, not {describe_value(value)}.") from None
    return number if abs(number) < 2**62 else 2**62


def _sort(value: Any) -> Literal["newest", "oldest"] | None:
    word = value.strip().lower() if isinstance(value, str) else value
    if word in (None, "", "relevance"):
        return None
    if word == "newest":
        return "newest"
    if word == "oldest":
        return "oldest"
    raise InvalidArgumentsError(f"sort must be newest or oldest, not {describe_value(value)}.")


def echo_input(text: str, limit: int = _MAX_ECHO) -> str:
    """Typed text, or a name from the record, as an answer repeats it: short, and on one line.

    Each of its characters takes at most two in JSON.
    """
    return shorten_end(replace_surrogates(text[: limit + 1]).translate(_CONTROL).strip(), limit)


def echo_list(texts: Iterable[str], room: int) -> list[str]:
    """The first texts, as many as a list has room for, each as an answer repeats it."""
    shown: list[str] = []
    for text in texts:
        short = echo_input(text, min(_MAX_ECHO, room // 2 - 4))
        room -= json_size(short) + 2
        if room < 0:
            break
        shown.append(short)
    return shown


def fit_json(text: str, room: int) -> str:
    """As much of a text as its JSON has room for."""
    return shorten_for_json(replace_surrogates(text[: max(0, room)]), room)[0]


def search_pages(answer_one: Callable[[SearchRequest], JsonObject], request: SearchRequest, limit: int) -> JsonObject:
    """Answers a request; for more conversations than fit one answer, until `limit` are listed or there are no more."""
    answer = answer_one(replace(request, limit=min(limit, MAX_RESULTS)))
    while limit > MAX_RESULTS and answer.get("cursor") and 0 < len(answer.get("results", ())) < limit:
        left = limit - len(answer["results"])
        page = answer_one(replace(request, limit=min(left, MAX_RESULTS), cursor=int(answer["cursor"])))
        if not page["success"] or not page["results"]:
            # The cursor of what is listed already stays, so that a caller can continue from there.
            break
        del answer["cursor"]
        results = [*answer["results"], *page["results"]]
        # Each page has its own note about missing summaries.
        notes = dict.fromkeys(each["note"] for each in (answer, page) if "note" in each)
        answer |= {"note": " ".join(notes)} if notes else {}
        answer |= {"cursor": page["cursor"]} if "cursor" in page else {}
        answer |= {"results": results, "count": len(results)}
    return answer


def refuse(reason: str, error: str) -> JsonObject:
    """The answer to a call that was refused; the error may quote what was sent, and is shortened."""
    return tool_refusal(reason, fit_json(error, _MAX_ERROR_CHARS))
