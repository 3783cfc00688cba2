"""The generated parts of docs/reference/python*.md: signatures with what they raise, shapes of answers, exceptions."""

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any, get_overloads, is_typeddict

import memoranda
from memoranda import errors, types
from memoranda.support.lazy_attribute import lazy_attribute

CLASSES: dict[str, type] = {
    "Memory": memoranda.Memory,
    "Session": memoranda.Session,
    "Turn": memoranda.Turn,
    "Agent": memoranda.Agent,
    "AsyncMemory": memoranda.AsyncMemory,
    "AsyncSession": memoranda.AsyncSession,
    "AsyncTurn": memoranda.AsyncTurn,
    "AsyncAgent": memoranda.AsyncAgent,
    "Tool": memoranda.Tool,
}
"""The classes whose every member is described in a table; the signatures of the others speak for themselves."""
WITHOUT_TABLE: dict[str, type] = {
    "SessionDB": memoranda.SessionDB,
    "MemoryStore": memoranda.MemoryStore,
    "MemoryProvider": memoranda.MemoryProvider,
}
_ALL = CLASSES | WITHOUT_TABLE
_WIDTH = 100


def signatures(name: str) -> str:
    """Every public method and attribute of a class with its types and defaults, as a block."""
    lines = [line for member in public_members(name) for line in _member(_ALL[name], member)]
    return "\n".join(["```text", *lines, "```"])


def functions() -> str:
    """The signatures of the functions of the package."""
    lines = [_signature("memoranda.open", memoranda.open), _signature("memoranda.open_async", memoranda.open_async)]
    lines += [
        _signature("memoranda.connect", memoranda.connect),
        _signature("memoranda.connect_async", memoranda.connect_async),
    ]
    lines += [_signature("memoranda.tool", function) for function in get_overloads(memoranda.tool)]
    lines.append(_signature("memoranda.safety.scan", memoranda.safety.scan))
    return "\n".join(["```text", *lines, "```"])


def public_members(name: str) -> list[str]:
    """The public names of a class in the order of its source, after those of its bases."""
    found = _ALL[name]
    fields = [field.name for field in dataclasses.fields(found)] if dataclasses.is_dataclass(found) else []
    own = [each for each in reversed(found.__mro__) if each.__module__.startswith("memoranda.")]
    # The parts of a store are made when they are first used; their methods are those of the store.
    members = [name for each in own for name, value in vars(each).items() if not isinstance(value, lazy_attribute)]
    return [member for member in dict.fromkeys([*fields, *members]) if not member.startswith("_")]


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
    elif callable(method := getattr(owner, name)):
        for function in get_overloads(method) or [method]:
            prefix = "async " if inspect.iscoroutinefunction(method) else ""
            yield _signature(prefix + name, function)
        yield from _raises(method)
    else:
        yield f"{name}: {_annotation(inspect.get_annotations(owner).get(name, type(found)))}"


def _raises(method: Any) -> Iterator[str]:
    """What the docstring says about exceptions, as lines under the signature."""
    text = " ".join((inspect.getdoc(method) or "").split())
    for sentence in re.findall(r"\b[Rr]aises [^.]*(?:\.\w[^.]*)*\.(?= |$)", text):
        lines = textwrap.wrap(sentence[0].upper() + sentence[1:], _WIDTH - 6)
        yield from (f"    # {line}" for line in lines)


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
    kind = parameter.kind
    stars = "**" if kind is inspect.Parameter.VAR_KEYWORD else "*" if kind is inspect.Parameter.VAR_POSITIONAL else ""
    value = "..." if inspect.isfunction(parameter.default) else repr(parameter.default)
    default = "" if parameter.default is inspect.Parameter.empty else f" = {value}"
    return f"{stars}{parameter.name}: {_annotation(parameter.annotation)}{default}"


def _annotation(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text).replace("NoneType", "None")
    # Type variables, and the arguments of a function that is passed on.
    text = re.sub(r"~_(\w+)", r"\1", text)
    # Versions of Python write an optional type in different ways.
    return re.sub(r"^Optional\[(.*)\]$", r"\1 | None", text)
