"""The arguments of a `session_search` call, checked once, how answers repeat them, and pages joined into one list.

People and programs may list more than a model, so they get several pages at once.
"""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, Literal

from memoranda.support.shorten import json_size, shorten_end, shorten_for_json
from memoranda.support.tool import InvalidArgumentsError, JsonObject

MAX_RESULTS = 10
MAX_WINDOW = 20
_DEFAULT_RESULTS = 3
_DEFAULT_WINDOW = 5
_MAX_NAMES = 50
NAMES = (
    *("query", "limit", "sort", "role_filter", "since", "until", "source", "project"),
    *("session_id", "around_message_id", "window", "cursor", "why"),
)
ROLES = ("user", "assistant", "tool", "system")
_MAX_ECHO = 100
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = {number: " " for number in (*range(32), *range(0x7F, 0xA0))}
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


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One call; which of its fields are set decides its mode."""

    query: str = ""
    session_id: str = ""
    around: int | None = None
    window: int = _DEFAULT_WINDOW
    limit: int = _DEFAULT_RESULTS
    sort: Literal["newest", "oldest"] | None = None
    roles: frozenset[str] | None = None
    sources: frozenset[str] | None = None
    project: str = ""
    since: float | None = None
    until: float | None = None
    cursor: int = 0
    why: bool = False
    now: float | None = None
    """The time that dates in the query refer to; None for the time of the call."""

    def with_names(self, stored_name: Callable[[str], str]) -> "SearchRequest":
        """The same request with the session id, the sources and the project as the store stores them."""
        sources = None if self.sources is None else frozenset(map(stored_name, self.sources))
        return replace(
            self, session_id=stored_name(self.session_id), sources=sources, project=stored_name(self.project)
        )


def read_request(arguments: Any, now: float) -> SearchRequest:
    """Checks a model's arguments; numbers out of range become the nearest valid number."""
    if not isinstance(arguments, Mapping):
        raise InvalidArgumentsError(f"The arguments must be an object, not {type(arguments).__name__}.")
    query, session_id = _text(arguments, "query"), _text(arguments, "session_id")
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
        roles=_roles(arguments),
        sources=_names(arguments, "source"),
        project=_text(arguments, "project"),
        since=_time(arguments, "since", now, end=False),
        until=_time(arguments, "until", now, end=True),
        cursor=max(0, _number(arguments, "cursor") or 0),
        why=arguments.get("why") in (True, "true", "True", 1),
        now=now,
    )


def _require_known(arguments: Mapping[Any, Any]) -> None:
    """Refuses a misspelt argument name, which would otherwise list the latest conversations."""
    unknown = [name for name in arguments if name not in NAMES]
    if unknown:
        raise InvalidArgumentsError(
            f"There is no argument {_describe_value(unknown[0])}; the arguments are {', '.join(NAMES)}."
        )


def _clamp(number: int, maximum: int) -> int:
    return max(1, min(number, maximum))


def _text(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidArgumentsError(f"{name} must be text, not {type(value).__name__}.")
    return replace_surrogates(value).strip()


def _number(arguments: Mapping[str, Any], name: str) -> int | None:
    value = arguments.get(name)
    if value is None or value == "":
        return None
    try:
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            raise TypeError
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgumentsError(f"{name} must be a whole number, not {_describe_value(value)}.") from None
    return number if abs(number) < 2**62 else 2**62


def _sort(value: Any) -> Literal["newest", "oldest"] | None:
    word = value.strip().lower() if isinstance(value, str) else value
    if word in (None, "", "relevance"):
        return None
    if word == "newest":
        return "newest"
    if word == "oldest":
        return "oldest"
    raise InvalidArgumentsError(f"sort must be newest or oldest, not {_describe_value(value)}.")


def _describe_value(value: Any) -> str:
    """A wrong value, short enough for an error message."""
    return repr(value[:60]) if isinstance(value, str) else type(value).__name__


def _names(arguments: Mapping[str, Any], name: str) -> frozenset[str] | None:
    value = arguments.get(name)
    if isinstance(value, str):
        value = value.split(",")
    if value is None:
        return None
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise InvalidArgumentsError(f"{name} must be names separated by commas, not {type(value).__name__}.")
    names = frozenset(replace_surrogates(item).strip() for item in value if item.strip())
    if len(names) > _MAX_NAMES:
        raise InvalidArgumentsError(f"{name} takes at most {_MAX_NAMES} names, not {len(names)}.")
    return names or None


def _roles(arguments: Mapping[str, Any]) -> frozenset[str] | None:
    names = _names(arguments, "role_filter")
    if names is None:
        return None
    roles = frozenset(name.lower() for name in names)
    if unknown := sorted(roles.difference(ROLES)):
        raise InvalidArgumentsError(f"role_filter takes {', '.join(ROLES)}, not {_describe_value(unknown[0])}.")
    return roles


def _time(arguments: Mapping[str, Any], name: str, now: float, *, end: bool) -> float | None:
    value = arguments.get(name)
    if value is None or value == "":
        return None
    try:
        return parse_time(value, now=now, end=end)
    except ValueError as error:
        raise InvalidArgumentsError(f"{name}: {error}") from None


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
    return shorten_for_json(replace_surrogates(text[: max(0, room)]), room)


def replace_surrogates(text: str) -> str:
    """A text that can be stored and sent: half of a surrogate pair becomes U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


MAX_LISTED = 50


def search_pages(call: Callable[[Mapping[str, Any]], JsonObject], arguments: Mapping[str, Any]) -> JsonObject:
    """Calls the tool; for more conversations than fit one answer, until `limit` are listed or there are no more."""
    limit: int = arguments["limit"]
    answer = call({**arguments, "limit": min(limit, MAX_RESULTS)})
    while limit > MAX_RESULTS and answer.get("cursor") and 0 < len(answer.get("results", ())) < limit:
        left = limit - len(answer["results"])
        page = call({**arguments, "limit": min(left, MAX_RESULTS), "cursor": answer["cursor"]})
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
