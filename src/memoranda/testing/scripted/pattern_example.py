"""Makes a short text that matches a regular expression, for documents that a schema describes with a pattern."""

import importlib
import re
from collections.abc import Iterable
from typing import Any

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
