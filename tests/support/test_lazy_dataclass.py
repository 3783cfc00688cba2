"""A dataclass whose methods are generated later behaves like one of the standard library."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from memoranda.support.lazy_dataclass import dataclass

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class _Lazy:
    name: str
    size: int = 3
    parts: tuple[str, ...] = dataclasses.field(default_factory=tuple)
    secret: str = dataclasses.field(default="", repr=False)
    kind: ClassVar[str] = "lazy"


@dataclasses.dataclass(frozen=True, slots=True)
class _Usual:
    name: str
    size: int = 3
    parts: tuple[str, ...] = dataclasses.field(default_factory=tuple)
    secret: str = dataclasses.field(default="", repr=False)
    kind: ClassVar[str] = "lazy"


@dataclass(frozen=True, slots=True)
class _Longer(_Lazy):
    more: int = 0


@dataclass(frozen=True, slots=True)
class _Found:
    default_asked: str
    missing: tuple[str, ...] = ()
    asked: dict[str, int] = dataclasses.field(default_factory=dict)
    set_missing: int = 7


@dataclass(slots=True)
class _Counter:
    start: int
    seen: list[int] = dataclasses.field(default_factory=list)
    length: int = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.length = self.start + len(self.seen)


def test_a_default_that_nothing_would_set_is_refused() -> None:
    """`__init__` skips such a field, and its slot would stay empty."""

    @dataclass(slots=True)
    class Wrong:
        length: int = dataclasses.field(init=False, default=0)

    with pytest.raises(TypeError, match="length has a default"):
        Wrong()


def test_a_field_may_have_any_name() -> None:
    """None of them changes the default of another."""
    found = _Found("x", ("y",))
    assert (found.default_asked, found.missing, found.asked, found.set_missing) == ("x", ("y",), {}, 7)


def test_values_defaults_and_copies_are_those_of_a_dataclass() -> None:
    """By position and by name; two with the same values are equal, and a copy may differ."""
    cases: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        (("a",), {}),
        (("a", 4), {"parts": ("x",)}),
        ((), {"size": 1, "name": "b", "secret": "s"}),
    ]
    for given, named in cases:
        lazy, usual = _Lazy(*given, **named), _Usual(*given, **named)
        assert dataclasses.asdict(lazy) == dataclasses.asdict(usual)
        assert repr(lazy).replace("_Lazy", "_Usual") == repr(usual)
        changed = dataclasses.replace(lazy, size=9)
        assert (changed.size, changed.name) == (9, lazy.name) and changed != lazy
        assert lazy == _Lazy(*given, **named) and hash(lazy) == hash(usual)
        assert copy.deepcopy(lazy) == lazy == pickle.loads(pickle.dumps(lazy))
    assert _Lazy("a") != object()
    assert _Lazy.kind == _Usual.kind and not hasattr(_Lazy("a"), "__dict__")


def test_nothing_can_be_changed_or_misspelt() -> None:
    """As in a frozen dataclass."""
    lazy: Any = _Lazy("a")
    make: Any = _Lazy
    changes: list[Callable[[], Any]] = [lambda: setattr(lazy, "name", "b"), lambda: delattr(lazy, "name")]
    for change in changes:
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()
    wrong: list[Callable[[], Any]] = [
        make,
        lambda: make("a", nam="b"),
        lambda: make("a", 1, (), "", 2),
        lambda: make("a", name="b"),
    ]
    for call in wrong:
        with pytest.raises(TypeError):
            call()


def test_a_subclass_has_the_fields_of_its_base_first() -> None:
    """Also in a match statement."""
    longer = _Longer("a", more=2)
    assert (longer.name, longer.size, longer.more) == ("a", 3, 2)
    assert longer != _Lazy("a")
    match longer:
        case _Longer(name, size):
            assert (name, size) == ("a", 3)


def test_an_object_that_may_change_completes_itself_and_has_no_hash() -> None:
    """Each object gets a list of its own."""
    first, second = _Counter(1, [5]), _Counter(1)
    assert (first.length, second.length) == (2, 1)
    second.seen.append(5)
    second.length = 2
    assert first == second and _Counter(1).seen == []
    with pytest.raises(TypeError, match="unhashable"):
        hash(first)


def test_a_class_that_is_not_used_generates_nothing() -> None:
    """Its methods are generated one by one, when they are called."""

    @dataclass(frozen=True, slots=True)
    class Unused:
        name: str

    def generated() -> list[str]:
        names = ("__init__", "__repr__", "__eq__", "__hash__")
        return [name for name in names if type(vars(Unused)[name]).__name__ == "function"]

    assert generated() == []
    unused = Unused("a")
    assert generated() == ["__init__"]
    assert unused == Unused("a")
    assert generated() == ["__init__", "__eq__"]
