"""An expression that is compiled when it is first used behaves like one that was compiled at once."""

import re

import pytest

from memoranda.support import lazy_pattern
from memoranda.support.lazy_pattern import compile_later

pytestmark = pytest.mark.slow


def test_an_expression_is_compiled_once_and_only_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when a module is loaded that may need it."""
    compiled: list[str] = []

    def compile_now(pattern: str, flags: int) -> re.Pattern[str]:
        compiled.append(pattern)
        return re.compile(pattern, flags)

    class Counted:
        compile = staticmethod(compile_now)

    monkeypatch.setattr(lazy_pattern, "re", Counted)
    pattern = compile_later("b+", re.IGNORECASE)
    assert compiled == []
    assert [pattern.sub("-", "aBBc"), pattern.sub("-", "bc")] == ["a-c", "-c"]
    assert compiled == ["b+"]


def test_it_has_what_a_compiled_expression_has() -> None:
    """Every method, its text and its groups."""
    lazy, compiled = compile_later(r"(?P<letter>[a-z])(\d)"), re.compile(r"(?P<letter>[a-z])(\d)")
    text = "a1 b2 3"
    assert lazy.findall(text) == compiled.findall(text)
    assert [each.span() for each in lazy.finditer(text)] == [each.span() for each in compiled.finditer(text)]
    assert lazy.split(text) == compiled.split(text)
    for method in ("match", "search", "fullmatch"):
        assert str(getattr(lazy, method)(text)) == str(getattr(compiled, method)(text))
    assert (lazy.pattern, lazy.groups, lazy.groupindex) == (compiled.pattern, compiled.groups, compiled.groupindex)
