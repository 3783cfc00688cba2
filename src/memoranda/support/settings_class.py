"""`dataclass` for settings: the methods are shared functions instead of generated code.

`dataclasses` writes six methods of every class as text and compiles them at each start, a quarter of what a command
costs in all. An object that is created a few times does not need methods that are fast.
"""

from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from dataclasses import MISSING, FrozenInstanceError, fields
    from dataclasses import dataclass as _dataclass

    def dataclass(*, frozen: bool, slots: bool) -> Any:
        """Like `dataclasses.dataclass(frozen=True, slots=True)`, except that objects have no slots."""
        assert frozen and slots

        def make(cls: type) -> type:
            cls = _dataclass(init=False, repr=False, eq=False)(cls)
            for method in (__init__, __repr__, __eq__, __hash__, __setattr__, __delattr__):
                setattr(cls, method.__name__, method)
            return cls

        return make

    def __init__(self, *values: Any, **named: Any) -> None:
        all_fields = fields(self)
        if len(values) > len(all_fields):
            raise TypeError(f"{type(self).__name__} has only {len(all_fields)} fields.")
        given = {each.name: value for each, value in zip(all_fields, values, strict=False)}
        if twice := given.keys() & named.keys():
            raise TypeError(f"{type(self).__name__}: {', '.join(sorted(twice))} was given twice.")
        given |= named
        for each in all_fields:
            if each.name in given:
                value = given.pop(each.name)
            elif each.default is not MISSING:
                value = each.default
            elif each.default_factory is not MISSING:
                value = each.default_factory()
            else:
                raise TypeError(f"{type(self).__name__} needs {each.name}.")
            self.__dict__[each.name] = value
        if given:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(given))}.")
        if hasattr(self, "__post_init__"):
            self.__post_init__()

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({', '.join(f'{each.name}={getattr(self, each.name)!r}' for each in fields(self))})"
        )

    def __eq__(self, other: object) -> Any:
        return self.__dict__ == other.__dict__ if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.values()))

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")
