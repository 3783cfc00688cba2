"""Settings behave like frozen dataclasses, although their methods are not generated."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from memoranda.support.settings_class import dataclass


@dataclass(frozen=True, slots=True)
class _Light:
    name: str
    size: int = 3
    parts: tuple[str, ...] = dataclasses.field(default_factory=tuple)


@dataclasses.dataclass(frozen=True, slots=True)
class _Usual:
    name: str
    size: int = 3
    parts: tuple[str, ...] = dataclasses.field(default_factory=tuple)


def test_values_defaults_and_copies_are_those_of_a_dataclass() -> None:
    """By position and by name; two with the same values are equal, and a copy may differ."""
    cases: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        (("a",), {}),
        (("a", 4), {"parts": ("x",)}),
        ((), {"size": 1, "name": "b"}),
    ]
    for given, named in cases:
        light, usual = _Light(*given, **named), _Usual(*given, **named)
        assert dataclasses.asdict(light) == dataclasses.asdict(usual)
        assert repr(light).replace("_Light", "_Usual") == repr(usual)
        changed = dataclasses.replace(light, size=9)
        assert (changed.size, changed.name) == (9, light.name) and changed != light
        assert light == _Light(*given, **named) and hash(light) == hash(_Light(*given, **named))
    assert _Light("a") != object()


def test_nothing_can_be_changed_or_misspelt() -> None:
    """As in a frozen dataclass."""
    light: Any = _Light("a")
    make: Any = _Light
    changes: list[Callable[[], Any]] = [lambda: setattr(light, "name", "b"), lambda: delattr(light, "name")]
    for change in changes:
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()
    wrong: list[Callable[[], Any]] = [
        make,
        lambda: make("a", nam="b"),
        lambda: make("a", 1, (), 2),
        lambda: make("a", name="b"),
    ]
    for call in wrong:
        with pytest.raises(TypeError):
            call()
