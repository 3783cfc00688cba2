"""The generated parts of docs/reference/python.md: signatures, shapes of answers, and the tree of exceptions."""

import dataclasses
import inspect
import re
from collections.abc import Iterator
from typing import Any, get_overloads, is_typeddict

import memoranda
from memoranda import errors, types

CLASSES: dict[str, type] = {
    "Memory": memoranda.Memory,
    "Session": memoranda.Session,
    "Turn": memoranda.Turn,
    "Agent": memoranda.Agent,
    "Tool": memoranda.Tool,
}
_WIDTH = 100


def signatures(name: str) -> str:
    """Every public method and attribute of a class with its types and defaults, as a block."""
    lines = [line for member in public_members(name) for line in _member(CLASSES[name], member)]
    return "\n".join(["```text", *lines, "```"])


def functions() -> str:
    """The signatures of the functions of the package."""
    lines = [_signature("memoranda.open", memoranda.open)]
    lines += [_signature("memoranda.tool", function) for function in get_overloads(memoranda.tool)]
    lines.append(_signature("memoranda.safety.scan", memoranda.safety.scan))
    return "\n".join(["```text", *lines, "```"])


def public_members(name: str) -> list[str]:
    """The public names of a class in the order of its source."""
    found = CLASSES[name]
    fields = [field.name for field in dataclasses.fields(found)] if dataclasses.is_dataclass(found) else []
    return [member for member in dict.fromkeys([*fields, *vars(found)]) if not member.startswith("_")]


def answers() -> str:
    """The shapes in memoranda.types: what each is, and its keys."""
    rows = ["| type | what it is | keys; those in brackets may be missing |", "|---|---|---|"]
    for name, shape in vars(types).items():
        if is_typeddict(shape):
            keys = [f"`{key}`" if key in shape.__required_keys__ else f"[`{key}`]" for key in shape.__annotations__]
            rows.append(f"| `{name}` | {inspect.getdoc(shape)} | {', '.join(keys)} |")
    return "\n".join(rows)


def exceptions() -> str:
    """The tree that the module of the exceptions draws."""
    tree = (errors.__doc__ or "").split("\n\n")[1]
    return f"```text\n{inspect.cleandoc(tree)}\n```"


def _member(owner: type, name: str) -> Iterator[str]:
    found = inspect.getattr_static(owner, name)
    if isinstance(found, property):
        yield f"{name}: {_annotation(inspect.signature(found.fget or len).return_annotation)}"
    elif inspect.isfunction(found):
        for function in get_overloads(found) or [found]:
            yield _signature(name, function)
    else:
        yield f"{name}: {_annotation(owner.__annotations__[name])}"


def _signature(name: str, function: Any) -> str:
    signature = inspect.signature(function)
    parts, star = [], False
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        parts.append(_parameter(parameter))
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            parts.append("/")
    result = _annotation(signature.return_annotation)
    line = f"{name}({', '.join(parts)}) -> {result}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f") -> {result}"])


def _parameter(parameter: inspect.Parameter) -> str:
    stars = "**" if parameter.kind is inspect.Parameter.VAR_KEYWORD else ""
    default = "" if parameter.default is inspect.Parameter.empty else f" = {parameter.default!r}"
    return f"{stars}{parameter.name}: {_annotation(parameter.annotation)}{default}"


def _annotation(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text).replace("NoneType", "None")
    # Versions of Python write an optional type in different ways.
    return re.sub(r"^Optional\[(.*)\]$", r"\1 | None", text)
