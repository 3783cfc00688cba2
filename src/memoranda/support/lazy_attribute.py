"""An attribute that is computed when it is first read."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class lazy_attribute(Generic[Value]):
    """Like `functools.cached_property`, but without its lock.

    Two threads that read the attribute at once may both compute it; one value stays.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "lazy_attribute[Value]": ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object, owner: type) -> "lazy_attribute[Value] | Value":
        if instance is None:
            return self
        value: Value = instance.__dict__.setdefault(self._name, self._compute(instance))
        return value
