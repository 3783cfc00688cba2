"""The filters of mem0's API: AND, OR and NOT over entity ids, times, categories and metadata, with operators."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any

from memoranda.service.compatible.requests import invalid

ENTITIES = ("user_id", "agent_id", "app_id", "run_id")
_TIMES = ("created_at", "updated_at", "timestamp")
_FIELDS = (*ENTITIES, *_TIMES, "categories", "metadata", "memory", "feedback", "feedback_reason", "id", "memory_ids")
_MAX_DEPTH = 20
_ANY = "*"

Memory = Mapping[str, Any]
"""A memory as the API shows it."""

Predicate = Callable[[Memory], bool]


def read_filters(filters: Any, depth: int = 0) -> Predicate:
    """The filters as a function; raises Problem 400 for what is no filter, so that none is ignored silently.

    An object means that all of its fields must match. A field that mem0 does not name is one of the metadata.
    """
    if filters is None:
        return lambda memory: True
    if isinstance(filters, list):
        return _all([read_filters(each, depth + 1) for each in filters])
    if not isinstance(filters, dict) or depth > _MAX_DEPTH:
        raise invalid("filters must be an object such as {'AND': [{'user_id': 'ana'}]}.")
    return _all([_read_part(name, value, depth) for name, value in filters.items()])


def _all(parts: list[Predicate]) -> Predicate:
    return lambda memory: all(part(memory) for part in parts)


def _read_part(name: str, value: Any, depth: int) -> Predicate:
    if name in ("AND", "OR", "NOT"):
        parts = [read_filters(each, depth + 1) for each in (value if isinstance(value, list) else [value])]
        if name == "AND":
            return _all(parts)
        if name == "OR":
            return lambda memory: any(part(memory) for part in parts)
        return lambda memory: not any(part(memory) for part in parts)
    if name == "metadata" and isinstance(value, dict):
        return _all([_compare_field(("metadata", key), wanted) for key, wanted in value.items()])
    if name == "keywords":
        return _compare_field(("memory",), value)
    if name == "memory_ids":
        return _compare_field(("id",), {"in": value})
    return _compare_field((name,) if name in _FIELDS else ("metadata", name), value)


def _compare_field(path: tuple[str, ...], wanted: Any) -> Predicate:
    is_time = path[-1] in _TIMES and path[0] != "metadata"
    if isinstance(wanted, dict):
        tests = [_operator(operator, _time(operand) if is_time else operand) for operator, operand in wanted.items()]
    else:
        tests = [_equals(_time(wanted) if is_time else wanted)]

    def matches(memory: Memory) -> bool:
        found: Any = memory
        for name in path:
            found = found.get(name) if isinstance(found, Mapping) else None
        found = _time(found) if is_time and found is not None else found
        return all(test(found) for test in tests)

    return matches


def _equals(wanted: Any) -> Callable[[Any], bool]:
    if wanted == _ANY:
        return lambda found: found is not None
    return lambda found: bool(found == wanted) or (isinstance(found, list) and wanted in found)


def _operator(name: str, wanted: Any) -> Callable[[Any], bool]:
    """One operator with its operand, as a test of the value that a memory has."""
    if name in ("eq", "ne"):
        equals = _equals(wanted)
        return equals if name == "eq" else lambda found: not equals(found)
    if name in ("in", "nin"):
        if not isinstance(wanted, list):
            raise invalid(f"The operator {name!r} takes a list.")
        tests = [_equals(each) for each in wanted]
        return lambda found: any(test(found) for test in tests) == (name == "in")
    if name in ("contains", "icontains"):
        return lambda found: _contains(found, wanted, ignore_case=name == "icontains")
    if name in ("gt", "gte", "lt", "lte"):
        return lambda found: _ordered(found, wanted) and _holds(name, found, wanted)
    raise invalid(f"filters have no operator {str(name)[:60]!r}.")


def _contains(found: Any, wanted: Any, *, ignore_case: bool) -> bool:
    if isinstance(found, list):
        wanted = wanted if isinstance(wanted, list) else [wanted]
        return any(each in found for each in wanted)
    if not isinstance(found, str) or not isinstance(wanted, str):
        return False
    return wanted.casefold() in found.casefold() if ignore_case else wanted in found


def _ordered(found: Any, wanted: Any) -> bool:
    """Whether two values can be compared: two numbers, or two texts."""
    numbers = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in (found, wanted))
    return numbers or (isinstance(found, str) and isinstance(wanted, str))


def _holds(name: str, found: Any, wanted: Any) -> bool:
    if name == "gt":
        return bool(found > wanted)
    if name == "gte":
        return bool(found >= wanted)
    return bool(found < wanted) if name == "lt" else bool(found <= wanted)


def _time(value: Any) -> Any:
    """A time as seconds since 1970: a number, an ISO date or an ISO time; raises Problem 400 for another text."""
    if not isinstance(value, str) or value == _ANY:
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise invalid(f"{value[:60]!r} is not a date or time in ISO 8601.") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def read_date(value: Any, name: str) -> str | None:
    """A date as YYYY-MM-DD; None stays None."""
    if value is None:
        return None
    try:
        return date.fromisoformat(str(value)[:10]).isoformat()
    except ValueError:
        raise invalid(f"{name} must be a date such as 2030-12-31.") from None
