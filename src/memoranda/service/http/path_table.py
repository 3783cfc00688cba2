"""Finds what answers a path: a table by the parts of paths, so that the number of routes costs nothing."""

from collections.abc import Mapping
from typing import Generic, TypeVar

_T = TypeVar("_T")


class _Node(Generic[_T]):
    __slots__ = ("literal", "target", "variable")

    def __init__(self) -> None:
        self.literal: dict[str, _Node[_T]] = {}
        self.variable: _Node[_T] | None = None
        self.target: tuple[tuple[str, ...], _T] | None = None
        """The names of the variable parts, and what answers the path that ends here."""


class PathTable(Generic[_T]):
    """Paths such as `/v1/sessions/{session_id}` and what belongs to each. A literal part precedes a variable one."""

    def __init__(self) -> None:
        self._root: _Node[_T] = _Node()

    def add(self, path: str, target: _T) -> None:
        """Add a path; the first one stays if two have the same parts, whatever the names of the variable ones are."""
        node, names = self._root, []
        for part in path.split("/"):
            if part.startswith("{"):
                names.append(part[1:-1])
                node.variable = node.variable or _Node()
                node = node.variable
            else:
                node = node.literal.setdefault(part, _Node())
        if node.target is None:
            node.target = (tuple(names), target)

    def find(self, path: str) -> tuple[_T, Mapping[str, str]] | None:
        """What belongs to a path as it was sent, and the variable parts by name; None if nothing does."""
        values: list[str] = []
        found = _find(self._root, path.split("/"), 0, values)
        if found is None or found.target is None:
            return None
        names, target = found.target
        return target, dict(zip(names, values, strict=True))


def _find(node: _Node[_T], parts: list[str], index: int, values: list[str]) -> _Node[_T] | None:
    """The node of the remaining parts; `values` are then the variable parts, in order."""
    if index == len(parts):
        return node if node.target is not None else None
    part = parts[index]
    literal = node.literal.get(part)
    if literal is not None and (found := _find(literal, parts, index + 1, values)) is not None:
        return found
    if node.variable is None or not part:
        return None
    values.append(part)
    found = _find(node.variable, parts, index + 1, values)
    if found is None:
        values.pop()
    return found
