"""The arguments of a `session_search` call, checked once, how answers repeat them, and pages joined into one list.

People and programs may list more than a model, so they get several pages at once.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from typing import Any, Literal

from memoranda.search.filters import FILTERS, chosen_filters, describe_value, read_text, replace_surrogates
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.shorten import json_size, shorten_end, shorten_for_json
from memoranda.support.tool import InvalidArgumentsError, JsonObject, tool_refusal

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
    """The values of the filters that are set, by name, as `memoranda.search.filters` checks them."""
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
    return shorten_for_json(replace_surrogates(text[: max(0, room)]), room)


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
