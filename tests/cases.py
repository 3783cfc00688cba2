"""Many small cases in one test: a table that costs pytest's work once, and that names every case that fails.

pytest spends milliseconds on each test that it collects, sets up, reports and sends from one process to another. Where
a case is a call of a pure function, that is more than the case itself. `cases` takes the same arguments as
`pytest.mark.parametrize` and runs all rows, also after one of them has failed. All rows share the fixtures of the test,
so it is for tests whose rows leave nothing behind.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest

_Test = Callable[..., None]
_MAX_LABEL = 100


def cases(
    names: str | Sequence[str], rows: Iterable[Any], ids: Iterable[object] | Callable[[Any], Any] | None = None
) -> Callable[[_Test], _Test]:
    """Call the test with every row, and fail with all of the rows that failed."""
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = list(_labelled(arguments, list(rows), ids))
    if not table:
        raise ValueError(f"No cases for {names}: a test without cases cannot fail.")

    def decorate(test: _Test) -> _Test:
        signature = inspect.signature(test)
        given = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        if len(given) + len(arguments) != len(signature.parameters):
            raise TypeError(f"{test.__name__} does not take all of {arguments}.")

        @functools.wraps(test)
        def run_all(**fixtures: Any) -> None:
            failures = [failure for label, values in table if (failure := _run(test, label, values, fixtures))]
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(table)} cases failed", failures)

        run_all.__signature__ = signature.replace(parameters=given)  # type: ignore[attr-defined]
        return run_all

    return decorate


def _run(test: _Test, label: str, values: dict[str, Any], fixtures: dict[str, Any]) -> Exception | None:
    try:
        test(**values, **fixtures)
    except Exception as error:
        error.add_note(f"case: {label}")
        return error
    return None


def _labelled(
    arguments: list[str], rows: list[Any], ids: Iterable[object] | Callable[[Any], Any] | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    labels = None if ids is None or callable(ids) else list(ids)
    for number, row in enumerate(rows):
        given_id = None
        if isinstance(row, type(pytest.param())):
            if row.marks:
                raise ValueError("A case cannot have marks of its own; use pytest.mark.parametrize.")
            given_id, values = row.id, list(row.values)
        else:
            values = [row] if len(arguments) == 1 else list(row)
        shown = ", ".join(str(ids(value)) if callable(ids) else repr(value) for value in values)
        label = str(given_id) if given_id else labels[number] if labels else shown
        yield str(label)[:_MAX_LABEL], dict(zip(arguments, values, strict=True))
