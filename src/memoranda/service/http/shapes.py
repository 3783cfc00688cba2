"""Descriptions of JSON values: each checks a value that a client sent, and writes itself as JSON schema."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from memoranda.service.http.problems import Problem
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import JsonObject

# The largest whole number that every JSON parser reads exactly.
MAX_WHOLE = 2**53 - 1
_WHOLE = re.compile(r"-?[0-9]{1,16}")


class Shape(ABC):
    """What a JSON value must look like."""

    __slots__ = ()

    @abstractmethod
    def read(self, value: Any, name: str) -> Any:
        """Return the value if it has this shape; raises Problem 422 with the name of the value otherwise."""

    def parse(self, text: str, name: str) -> Any:
        """Read the value from a query parameter."""
        return self.read(text, name)

    @abstractmethod
    def schema(self, named: JsonObject) -> JsonObject:
        """This shape as JSON schema (2020-12, as OpenAPI 3.1 uses it); adds objects that have a name to `named`."""


def _refuse(name: str, expected: str, value: Any) -> Problem:
    found = "null" if value is None else type(value).__name__
    names = {"str": "text", "dict": "an object", "list": "a list", "int": "a number", "float": "a number"}
    found = "true or false" if isinstance(value, bool) else names.get(found, found)
    return Problem(422, "invalid", f"{name} must be {expected}, not {found}.")


@dataclass(frozen=True, slots=True)
class Text(Shape):
    """A text of a limited length, or one of several words."""

    minimum: int = 0
    maximum: int = 1_000
    choices: tuple[str, ...] = ()

    def read(self, value: Any, name: str) -> str:
        if not isinstance(value, str):
            raise _refuse(name, "text", value)
        if self.choices and value not in self.choices:
            raise Problem(422, "invalid", f"{name} must be one of {', '.join(self.choices)}.")
        if not self.minimum <= len(value) <= self.maximum:
            raise Problem(422, "invalid", f"{name} must have {self.minimum} to {self.maximum} characters.")
        return value

    def schema(self, named: JsonObject) -> JsonObject:
        if self.choices:
            return {"type": "string", "enum": list(self.choices)}
        return {"type": "string", "minLength": self.minimum, "maxLength": self.maximum}


@dataclass(frozen=True, slots=True)
class Whole(Shape):
    """A whole number within bounds."""

    minimum: int = 0
    maximum: int = MAX_WHOLE

    def read(self, value: Any, name: str) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise _refuse(name, "a whole number", value)
        if not self.minimum <= value <= self.maximum:
            raise Problem(422, "invalid", f"{name} must be from {self.minimum} to {self.maximum}.")
        return value

    def parse(self, text: str, name: str) -> int:
        if not _WHOLE.fullmatch(text):
            raise Problem(422, "invalid", f"{name} must be a whole number.")
        return self.read(int(text), name)

    def schema(self, named: JsonObject) -> JsonObject:
        return {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}


@dataclass(frozen=True, slots=True)
class Number(Shape):
    """Any finite number, such as a time in seconds since 1970."""

    def read(self, value: Any, name: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _refuse(name, "a number", value)
        return value

    def parse(self, text: str, name: str) -> float:
        try:
            return self.read(float(text), name)
        except ValueError:
            raise Problem(422, "invalid", f"{name} must be a number.") from None

    def schema(self, named: JsonObject) -> JsonObject:
        return {"type": "number"}


@dataclass(frozen=True, slots=True)
class Flag(Shape):
    """True or false."""

    def read(self, value: Any, name: str) -> bool:
        if not isinstance(value, bool):
            raise _refuse(name, "true or false", value)
        return value

    def parse(self, text: str, name: str) -> bool:
        if text not in ("true", "false"):
            raise Problem(422, "invalid", f"{name} must be true or false.")
        return text == "true"

    def schema(self, named: JsonObject) -> JsonObject:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Anything(Shape):
    """Any JSON value."""

    def read(self, value: Any, name: str) -> Any:
        return value

    def schema(self, named: JsonObject) -> JsonObject:
        return {}


@dataclass(frozen=True, slots=True)
class OneOf(Shape):
    """A value that has one of several shapes."""

    shapes: tuple[Shape, ...]
    expected: str

    def read(self, value: Any, name: str) -> Any:
        for shape in self.shapes:
            try:
                return shape.read(value, name)
            except Problem:
                continue
        raise _refuse(name, self.expected, value)

    def schema(self, named: JsonObject) -> JsonObject:
        return {"anyOf": [shape.schema(named) for shape in self.shapes]}


@dataclass(frozen=True, slots=True)
class Null(Shape):
    def read(self, value: Any, name: str) -> None:
        if value is not None:
            raise _refuse(name, "null", value)

    def schema(self, named: JsonObject) -> JsonObject:
        return {"type": "null"}


def optional(shape: Shape, expected: str) -> OneOf:
    return OneOf((shape, Null()), f"{expected} or null")


@dataclass(frozen=True, slots=True)
class ListOf(Shape):
    """A list of values of one shape."""

    item: Shape
    minimum: int = 0
    maximum: int = 1_000

    def read(self, value: Any, name: str) -> list[Any]:
        if not isinstance(value, list):
            raise _refuse(name, "a list", value)
        if not self.minimum <= len(value) <= self.maximum:
            raise Problem(422, "invalid", f"{name} must have {self.minimum} to {self.maximum} items.")
        return [self.item.read(item, f"{name}[{index}]") for index, item in enumerate(value)]

    def schema(self, named: JsonObject) -> JsonObject:
        return {
            "type": "array",
            "items": self.item.schema(named),
            "minItems": self.minimum,
            "maxItems": self.maximum,
        }


@dataclass(frozen=True, slots=True)
class Field:
    """One named value of an object, or one parameter of a query."""

    name: str
    shape: Shape
    meaning: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Object(Shape):
    """An object with known fields; with `extra`, others are accepted and kept."""

    fields: tuple[Field, ...]
    extra: bool = False
    name: str = ""
    _by_name: Mapping[str, Field] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {item.name: item for item in self.fields})

    def read(self, value: Any, name: str) -> JsonObject:
        if not isinstance(value, dict):
            raise _refuse(name, "an object", value)
        for item in self.fields:
            if item.required and item.name not in value:
                raise Problem(422, "invalid", f"{_path(name, item.name)} is missing.")
        if not self.extra and (unknown := next((key for key in value if key not in self._by_name), None)) is not None:
            known = ", ".join(self._by_name) or "none"
            raise Problem(422, "invalid", f"{_path(name, unknown[:60])} is not known here. The fields are: {known}.")
        return {
            key: self._by_name[key].shape.read(item, _path(name, key)) if key in self._by_name else item
            for key, item in value.items()
        }

    def schema(self, named: JsonObject) -> JsonObject:
        described: JsonObject = {
            "type": "object",
            "properties": {
                item.name: item.shape.schema(named) | ({"description": item.meaning} if item.meaning else {})
                for item in self.fields
            },
        }
        if required := [item.name for item in self.fields if item.required]:
            described["required"] = required
        if not self.extra:
            described["additionalProperties"] = False
        if not self.name:
            return described
        named[self.name] = described
        return {"$ref": f"#/components/schemas/{self.name}"}


def _path(name: str, key: str) -> str:
    return key if name == "body" else f"{name}.{key}"


def read_query(fields: Sequence[Field], pairs: Sequence[tuple[str, str]]) -> JsonObject:
    """The parameters of a query; raises Problem for an unknown or repeated one, or one with a wrong value."""
    known = {item.name: item for item in fields}
    values: JsonObject = {}
    for name, text in pairs:
        if name not in known:
            offered = ", ".join(known) or "none"
            raise Problem(422, "invalid", f"There is no query parameter {name[:60]!r}. There are: {offered}.")
        if name in values:
            raise Problem(422, "invalid", f"The query parameter {name!r} is repeated.")
        values[name] = known[name].shape.parse(text, name)
    for item in fields:
        if item.required and item.name not in values:
            raise Problem(422, "invalid", f"The query parameter {item.name!r} is missing.")
    return values
