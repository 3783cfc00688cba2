"""Regular expressions that are compiled when they are first used: a command uses few of those that its modules have."""

import re
from functools import cache
from typing import Any, AnyStr, cast

_METHODS = ("match", "search", "fullmatch", "findall", "finditer", "split", "sub", "subn")


class _LazyPattern:
    """Has every attribute of the compiled expression; its methods become attributes of its own, which cost nothing."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self._source = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._source)
        self.__dict__.update((method, getattr(compiled, method)) for method in _METHODS)
        return getattr(compiled, name)


def compile_later(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Like `re.compile`, for an expression that not every command uses; a mistake in it is noticed at its first use."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))


@cache
def compile_once(pattern: str) -> re.Pattern[str]:
    """Like `re.compile`, which itself forgets all but the latest expressions."""
    return re.compile(pattern)
