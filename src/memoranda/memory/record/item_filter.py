"""Filters on the fields of an item's value, with the operators that LangGraph's stores have."""

from collections.abc import Callable, Mapping
from typing import Any

from memoranda.errors import SessionError

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda found, wanted: bool(found == wanted),
    "$ne": lambda found, wanted: bool(found != wanted),
    "$gt": lambda found, wanted: _compare(found, wanted, lambda one, other: one > other),
    "$gte": lambda found, wanted: _compare(found, wanted, lambda one, other: one >= other),
    "$lt": lambda found, wanted: _compare(found, wanted, lambda one, other: one < other),
    "$lte": lambda found, wanted: _compare(found, wanted, lambda one, other: one <= other),
}
_MAX_DEPTH = 20


def check_filter(filters: Any, depth: int = 0) -> Mapping[str, Any]:
    """The filter itself; raises SessionError if it is not an object or has an unknown operator."""
    if not isinstance(filters, Mapping) or depth > _MAX_DEPTH:
        raise SessionError("filter must be an object such as {'kind': 'note', 'year': {'$gte': 2020}}.")
    for name, wanted in filters.items():
        if isinstance(name, str) and name.startswith("$") and (depth == 0 or name not in _OPERATORS):
            raise SessionError(f"filter has no operator {name[:60]!r}; there are {', '.join(_OPERATORS)}.")
        if isinstance(wanted, Mapping):
            check_filter(wanted, depth + 1)
    return filters


def passes(value: Any, filters: Mapping[str, Any]) -> bool:
    """Whether a value has every field as the filter says; a filter within a field applies to the fields in it."""
    if not isinstance(value, Mapping):
        return not filters
    return all(_matches(value.get(name), wanted) for name, wanted in filters.items())


def _matches(found: Any, wanted: Any) -> bool:
    if not isinstance(wanted, Mapping):
        return bool(found == wanted)
    operators = [name for name in wanted if isinstance(name, str) and name.startswith("$")]
    if operators:
        return all(_OPERATORS[name](found, wanted[name]) for name in operators)
    return isinstance(found, Mapping) and passes(found, wanted)


def _compare(found: Any, wanted: Any, holds: Callable[[Any, Any], bool]) -> bool:
    """Compare numbers with numbers and texts with texts; nothing else has an order."""
    both = (found, wanted)
    if all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in both):
        return holds(found, wanted)
    return all(isinstance(one, str) for one in both) and holds(found, wanted)
