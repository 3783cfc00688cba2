"""Reads the values in a pickle without unpickling it: nothing that a pickle names is imported or called.

`pickletools` splits the pickle into opcodes, and this module builds plain values from them. Where a pickle would create
an object, there is a `PickledObject` with its class name and state; a call of a function stays a `PickledObject`
without a state.
"""

import pickletools
from dataclasses import dataclass
from typing import Any

_MAX_OPCODES = 2_000_000
_PUSHED = frozenset(
    {"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE", "BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1"}
    | {"LONG4", "BINFLOAT", "FLOAT", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "SHORT_BINSTRING", "BINSTRING"}
)
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, Any] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple, "EMPTY_SET": list}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_IGNORED = frozenset({"PROTO", "FRAME", "STOP"})


@dataclass(slots=True)
class PickledObject:
    """An object in a pickle, by the name of its class; it was not created."""

    class_name: str
    state: Any = None


class _Mark:
    """The start of a group of values on the stack."""


_MARK = _Mark()


def read_pickled(data: bytes) -> Any:
    """Return the value in a pickle; raises ValueError for a damaged one or an opcode that no plain value needs."""
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if count > _MAX_OPCODES:
                raise ValueError("it has too many values")
            if not _push(stack, opcode.name, argument) and not _use_memo(stack, memo, opcode.name, argument):
                _combine(stack, opcode.name, argument)
    except (IndexError, KeyError, TypeError, AttributeError, OverflowError, UnicodeError) as error:
        raise ValueError(f"the pickle is damaged: {type(error).__name__}") from error
    if len(stack) != 1:
        raise ValueError("the pickle is damaged")
    return stack[0]


def _push(stack: list[Any], name: str, argument: Any) -> bool:
    if name in _PUSHED:
        stack.append(argument)
    elif name in _CONSTANTS:
        stack.append(_CONSTANTS[name])
    elif name in _EMPTY:
        stack.append(_EMPTY[name]())
    elif name == "MARK":
        stack.append(_MARK)
    else:
        return name in _IGNORED
    return True


def _use_memo(stack: list[Any], memo: dict[int, Any], name: str, argument: Any) -> bool:
    if name == "MEMOIZE":
        memo[len(memo)] = stack[-1]
    elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
        memo[argument] = stack[-1]
    elif name in ("BINGET", "LONG_BINGET", "GET"):
        stack.append(memo[argument])
    else:
        return False
    return True


def _combine(stack: list[Any], name: str, argument: Any) -> None:
    if name == "GLOBAL":
        stack.append(PickledObject(str(argument).replace(" ", ".")))
    elif name == "STACK_GLOBAL":
        attribute, module = stack.pop(), stack.pop()
        stack.append(PickledObject(f"{module}.{attribute}"))
    elif name in ("NEWOBJ", "REDUCE"):
        stack.pop()
        stack.append(PickledObject(_class_name(stack.pop())))
    elif name == "BUILD":
        state = stack.pop()
        if isinstance(stack[-1], PickledObject):
            stack[-1].state = state
    elif name in _TUPLES:
        number = _TUPLES[name]
        stack[-number:] = [tuple(stack[-number:])]
    elif name == "TUPLE":
        stack.append(tuple(_pop_group(stack)))
    elif name in ("APPEND", "APPENDS", "ADDITEMS"):
        values = [stack.pop()] if name == "APPEND" else _pop_group(stack)
        stack[-1].extend(values)
    elif name in ("SETITEM", "SETITEMS"):
        values = [stack.pop(-2), stack.pop()] if name == "SETITEM" else _pop_group(stack)
        stack[-1].update(zip(values[::2], values[1::2], strict=True))
    else:
        raise ValueError(f"the pickle has {name}, which no plain value needs")


def _class_name(value: Any) -> str:
    return value.class_name if isinstance(value, PickledObject) else ""


def _pop_group(stack: list[Any]) -> list[Any]:
    """Remove and return the values after the last mark."""
    group: list[Any] = []
    while (value := stack.pop()) is not _MARK:
        group.append(value)
    group.reverse()
    return group
