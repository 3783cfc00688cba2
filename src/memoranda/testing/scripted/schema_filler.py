"""Makes documents that are valid under a JSON schema, out of texts that a caller gives.

The first array that can hold the facts has one item per fact, a text field of an item holds its fact, and every other
value is the simplest one that the schema allows, such as a short text that matches its pattern.
"""

import importlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import JsonObject

_CATEGORIES = {"CATEGORY_DIGIT": "0", "CATEGORY_WORD": "a", "CATEGORY_SPACE": " ", "CATEGORY_NOT_SPACE": "a"}
_ANYTHING = "aA0 -_.:/"


def example_of_pattern(pattern: str) -> str | None:
    """A text for the pattern, or None where it uses something that this module does not know."""
    try:
        # Python's own parser of patterns has no public name.
        tree = importlib.import_module("re._parser").parse(pattern)
    except re.error:
        return None
    text = "".join(_example(tree))
    return text if re.search(pattern, text) else None


def _example(tree: Iterable[tuple[Any, Any]]) -> Iterable[str]:
    for operation, value in tree:
        match str(operation):
            case "LITERAL":
                yield chr(value)
            case "ANY":
                yield "a"
            case "NOT_LITERAL":
                yield next(character for character in _ANYTHING if ord(character) != value)
            case "IN":
                yield _member(value)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                lowest, _, part = value
                yield from list(_example(part)) * lowest
            case "SUBPATTERN":
                yield from _example(value[-1])
            case "BRANCH":
                yield from _example(value[1][0])
            case "ATOMIC_GROUP":
                yield from _example(value)


def _member(options: list[tuple[Any, Any]]) -> str:
    """A character of a set such as `[A-F0-9]`."""
    first, value = options[0]
    if str(first) == "NEGATE":
        return next((each for each in _ANYTHING if not any(_matches(each, option) for option in options[1:])), "")
    if str(first) == "LITERAL":
        return chr(value)
    return chr(value[0]) if str(first) == "RANGE" else _CATEGORIES.get(str(value), "a")


def _matches(character: str, option: tuple[Any, Any]) -> bool:
    kind, value = str(option[0]), option[1]
    if kind == "LITERAL":
        return bool(ord(character) == value)
    if kind == "RANGE":
        return bool(value[0] <= ord(character) <= value[1])
    digit, word, space = character.isdigit(), character.isalnum() or character == "_", character.isspace()
    positive = {"CATEGORY_DIGIT": digit, "CATEGORY_WORD": word, "CATEGORY_SPACE": space}
    name = str(value)
    return positive[name] if name in positive else not positive.get(name.replace("NOT_", ""), False)


_MAX_DEPTH = 24
_ANSWER_NAMES = re.compile(
    r"text|content|fact|memory|what|answer|summary|statement|observation|conclusion|body|message"
)
_QUESTION_NAMES = re.compile(r"query|question|search|^q$")
_FORMATS = {
    "date": "2026-01-01", "time": "00:00:00Z", "date-time": "2026-01-01T00:00:00Z", "duration": "P1D",
    "email": "user@example.com", "hostname": "example.com", "ipv4": "127.0.0.1", "ipv6": "::1",
    "uri": "https://example.com/", "url": "https://example.com/", "uuid": "00000000-0000-4000-8000-000000000000",
}  # fmt: skip


class SchemaFillerError(ValueError):
    """The filler knows no document that is valid under the schema."""


@dataclass(frozen=True, slots=True)
class Material:
    """The texts that fill a document: facts for lists, an answer for single texts, a question for searches."""

    facts: tuple[str, ...] = ()
    answer: str = ""
    question: str = ""


def fill_schema(schema: JsonObject, material: Material | None = None) -> Any:
    """A document that is valid under the schema; raises SchemaFillerError where it knows none."""
    return _Filler(schema, material or Material()).value(schema, "", 0)


class _Filler:
    def __init__(self, root: JsonObject, material: Material) -> None:
        self._root = root
        self._material = material
        self._fact: str | None = None
        self._facts_used = False

    def value(self, schema: Any, name: str, depth: int) -> Any:
        """A value for a schema; `name` is that of the property."""
        if not isinstance(schema, Mapping):
            return self._text({}, name)
        if depth > _MAX_DEPTH:
            raise SchemaFillerError(f"The schema is nested deeper than {_MAX_DEPTH} levels at {name!r}.")
        schema = self._resolve(schema)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return schema["enum"][0]
        for choice in ("anyOf", "oneOf"):
            if schema.get(choice):
                return self._first_possible(schema, schema[choice], name, depth)
        return self._by_type(schema, _type(schema), name, depth)

    def _resolve(self, schema: Mapping[str, Any]) -> JsonObject:
        """Follows references and merges `allOf`, whose parts must all hold."""
        merged = dict(schema)
        for _ in range(_MAX_DEPTH):
            if "$ref" in merged:
                merged = {**self._referenced(merged.pop("$ref")), **merged}
            elif merged.get("allOf"):
                for part in merged.pop("allOf"):
                    merged = _merge(merged, self._resolve(part))
            else:
                return merged
        raise SchemaFillerError("A reference of the schema leads to itself.")

    def _referenced(self, reference: str) -> JsonObject:
        found: Any = self._root
        for part in reference.removeprefix("#").strip("/").split("/") if reference != "#" else ():
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or key not in found:
                raise SchemaFillerError(f"The schema has nothing at {reference!r}.")
            found = found[key]
        return dict(found)

    def _first_possible(self, schema: JsonObject, choices: Sequence[Any], name: str, depth: int) -> Any:
        """The first choice that can be filled; null comes last, because it says the least."""
        rest = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
        resolved = [self._resolve(choice) for choice in choices if isinstance(choice, Mapping)]
        problem: SchemaFillerError | None = None
        for choice in sorted(resolved, key=lambda each: _type(each) == "null"):
            try:
                return self.value(_merge(rest, choice), name, depth + 1)
            except SchemaFillerError as error:
                problem = error
        raise problem or SchemaFillerError(f"The schema allows nothing at {name!r}.")

    def _by_type(self, schema: JsonObject, kind: str, name: str, depth: int) -> Any:
        match kind:
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, name, depth)
            case "integer" | "number":
                return _number(schema, whole=kind == "integer")
            case "boolean":
                return False
            case "null":
                return None
        return self._text(schema, name)

    def _object(self, schema: JsonObject, depth: int) -> JsonObject:
        """Required properties, and those that can hold facts."""
        properties = schema.get("properties") or {}
        required = list(schema.get("required") or ())
        wanted = [name for name in properties if name in required or self._wants_facts(properties[name], name)]
        wanted += [name for name in required if name not in properties]
        additional = schema.get("additionalProperties", {})
        filled = {name: self.value(properties.get(name, additional), name, depth + 1) for name in wanted}
        for number in range(int(schema.get("minProperties") or 0) - len(filled)):
            spare = next((name for name in properties if name not in filled), f"property_{number}")
            filled[spare] = self.value(properties.get(spare, additional), spare, depth + 1)
        return filled

    def _wants_facts(self, schema: Any, name: str) -> bool:
        if not isinstance(schema, Mapping):
            return False
        if self._fact is None:
            resolved = self._resolve(schema)
            return _type(resolved) == "array" and self._holds_text(resolved.get("items"))
        return self._is_text_field(name, schema)

    def _holds_text(self, items: Any) -> bool:
        """True if the items of an array are texts, or objects with a text that is named like one."""
        if not isinstance(items, Mapping):
            return False
        resolved = self._resolve(items)
        if _type(resolved) == "string":
            return "enum" not in resolved and "format" not in resolved
        fields = resolved.get("properties") or {}
        return any(self._is_text_field(field, each) for field, each in fields.items())

    def _is_text_field(self, name: str, schema: Any) -> bool:
        if not isinstance(schema, Mapping) or not _ANSWER_NAMES.search(name.casefold()):
            return False
        return _type(self._resolve(schema)) == "string"

    def _array(self, schema: JsonObject, name: str, depth: int) -> list[Any]:
        items = schema.get("items", {})
        prefix = [self.value(each, name, depth + 1) for each in schema.get("prefixItems") or ()]
        lowest = max(int(schema.get("minItems") or 0), 1 if "contains" in schema else 0)
        filled = prefix + (self._fact_items(schema, items, depth) if not prefix else [])
        wanted = schema.get("contains", items)
        while len(filled) < lowest:
            choices = self._resolve(wanted).get("enum") if isinstance(wanted, Mapping) else None
            value = self.value(wanted, name, depth + 1)
            filled.append(_distinct(value, choices, len(filled)) if schema.get("uniqueItems") else value)
        return filled

    def _fact_items(self, schema: JsonObject, items: Any, depth: int) -> list[Any]:
        """One item per fact in the first array that can hold them."""
        if self._fact is not None or self._facts_used or "contains" in schema or not self._holds_text(items):
            return []
        self._facts_used = True
        filled = []
        for fact in self._material.facts[: schema.get("maxItems")]:
            self._fact = fact
            filled.append(self.value(items, "", depth + 1))
        self._fact = None
        return filled

    def _text(self, schema: JsonObject, name: str) -> str:
        if schema.get("format") in _FORMATS:
            return _FORMATS[schema["format"]]
        text = self._words(name)
        pattern = schema.get("pattern")
        if pattern and not re.search(pattern, text):
            example = example_of_pattern(pattern)
            if example is None:
                raise SchemaFillerError(f"The filler knows no text for the pattern {pattern!r}.")
            return example
        if not pattern:
            text = text[: schema.get("maxLength")].ljust(int(schema.get("minLength") or 0), "x")
        return text

    def _words(self, name: str) -> str:
        folded = name.casefold()
        if self._fact is not None and (_ANSWER_NAMES.search(folded) or not name):
            return self._fact
        if _QUESTION_NAMES.search(folded) and self._material.question:
            return self._material.question
        if _ANSWER_NAMES.search(folded) and self._material.answer:
            return self._material.answer
        return "N/A"


def _type(schema: Mapping[str, Any]) -> str:
    """The type of a schema; where several are allowed, the first that is not null."""
    kind = schema.get("type")
    if isinstance(kind, list):
        return next((str(each) for each in kind if each != "null"), "null")
    if kind:
        return str(kind)
    if "properties" in schema or "required" in schema or "additionalProperties" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema:
        return "array"
    return "number" if "minimum" in schema or "maximum" in schema else "string"


def _merge(first: JsonObject, second: JsonObject) -> JsonObject:
    """Both schemas at once: properties and required names of both, otherwise the second decides."""
    merged = {**first, **second}
    if "properties" in first and "properties" in second:
        merged["properties"] = {**first["properties"], **second["properties"]}
    if "required" in first and "required" in second:
        merged["required"] = list(dict.fromkeys([*first["required"], *second["required"]]))
    return merged


def _number(schema: JsonObject, *, whole: bool) -> float:
    step = schema.get("multipleOf") or (1 if whole else 0)
    lowest, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    highest, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    gap = step or _small_gap(above, below)
    candidates = [0, lowest, None if above is None else above + gap, highest, None if below is None else below - gap]
    if step:
        candidates += [_round_up(each, step) for each in candidates if each is not None]
        candidates += [_round_up(each, step) - step for each in candidates if each is not None]
    for candidate in candidates:
        if candidate is not None and _allowed(candidate, lowest, above, highest, below, step):
            return int(candidate) if float(candidate).is_integer() else candidate
    raise SchemaFillerError(f"The filler knows no number for {schema!r}.")


def _small_gap(above: float | None, below: float | None) -> float:
    return (below - above) / 2 if above is not None and below is not None else 1


def _round_up(number: float, step: float) -> float:
    return -(-number // step) * step


def _allowed(
    number: float, lowest: float | None, above: float | None, highest: float | None, below: float | None, step: float
) -> bool:
    return (
        (lowest is None or number >= lowest)
        and (above is None or number > above)
        and (highest is None or number <= highest)
        and (below is None or number < below)
        and (not step or abs(number / step - round(number / step)) < 1e-9)
    )


def _distinct(value: Any, choices: Sequence[Any] | None, number: int) -> Any:
    """The value in another form for each number, where the items of an array must differ."""
    if choices:
        return choices[number % len(choices)]
    if isinstance(value, bool):
        return bool(number % 2)
    if isinstance(value, str):
        return f"{value} {number}" if number else value
    return value + number if isinstance(value, int | float) else value
