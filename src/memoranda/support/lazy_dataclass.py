"""`dataclass` whose methods are generated when they are first used.

`dataclasses` writes six methods of every class as text and compiles them: four million instructions for each class at
each start, a fifth of what a command cost. A command creates objects of few of the classes that its modules define, and
seldom compares or prints them. An object is also created faster, because its attributes are set by their slots.
"""

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, get_origin

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, slots: bool, frozen: bool = False) -> Any:
        """Like `dataclasses.dataclass` with these options, except that a class without a docstring gets none."""
        assert slots

        def make(cls: type) -> type:
            source = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
            fields = [name for name, kind in cls.__annotations__.items() if get_origin(kind) is not ClassVar]
            attributes = {name: value for name, value in source.items() if name not in fields}
            attributes |= {name: _Generated(source) for name in _GENERATED if source.get(name) is None}
            attributes |= _FROZEN_METHODS if frozen else {"__hash__": source.get("__hash__")}
            made = type(cls)(cls.__name__, cls.__bases__, attributes | {"__slots__": fields})
            made.__qualname__ = cls.__qualname__
            return made

        return make


class _Generated:
    """Stands for an attribute that is generated when it is first read, and replaces itself by it.

    Two threads that read it at once may both generate it; one stays.
    """

    __slots__ = ("_cls", "_name", "_source")

    def __init__(self, source: dict[str, Any]) -> None:
        self._source = source

    def __set_name__(self, owner: type, name: str) -> None:
        self._cls = owner
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        setattr(self._cls, self._name, self._generate(**_GENERATED[self._name]))
        return getattr(owner if instance is None else instance, self._name)

    def _generate(self, **options: bool) -> Any:
        if self._name == "__init__":
            return _generate_init(self._cls)
        # A second class with the same source. Without a docstring, `dataclasses` would compute one.
        second = type(self._cls)(self._cls.__name__, self._cls.__bases__, self._source | {"__doc__": "generated"})
        options = dict.fromkeys(("init", "repr", "eq"), False) | options
        dataclasses.dataclass(**options)(second)
        return vars(second)[self._name]


_GENERATED: dict[str, dict[str, bool]] = {
    "__init__": {},
    "__repr__": {"repr": True},
    "__eq__": {"eq": True},
    "__hash__": {"unsafe_hash": True},
    "__match_args__": {},
    "__dataclass_fields__": {},
    "__dataclass_params__": {},
}


def _generate_init(cls: Any) -> Any:
    parameters, body = ["self"], ["pass"]
    # Two underscores: a field may be called "missing" or "default_limit".
    names: dict[str, Any] = {"__missing": dataclasses.MISSING}
    for field in dataclasses.fields(cls):
        if not field.init:
            if field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING:
                raise TypeError(f"{field.name} has a default that nothing would set: set it in __post_init__.")
            continue
        name, value = field.name, field.name
        names[f"__set_{name}"] = getattr(cls, name).__set__
        if field.default_factory is not dataclasses.MISSING:
            names[f"__make_{name}"] = field.default_factory
            parameters.append(f"{name}=__missing")
            value = f"__make_{name}() if {name} is __missing else {name}"
        elif field.default is not dataclasses.MISSING:
            names[f"__default_{name}"] = field.default
            parameters.append(f"{name}=__default_{name}")
        else:
            parameters.append(name)
        body.append(f"__set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body), names)
    return names["__init__"]


def _refuse_to_set(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


_FROZEN_METHODS = {
    "__setattr__": _refuse_to_set,
    "__delattr__": _refuse_to_delete,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
}
