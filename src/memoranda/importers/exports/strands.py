"""A conversation whose messages were edited or answered anew is a tree; here it becomes lines that can be read."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of messages, and the number of the strand that it leaves; the first is the one that people see."""

    nodes: tuple[str, ...]
    leaves: int | None


def split_branches(parents: Mapping[str, str | None], current: str | None) -> list[Branch]:
    """Every node of a tree once: the line that ends in `current`, then for each other end what it has of its own."""
    inner = set(parents.values())
    ends = [node for node in parents if node not in inner]
    first = current if current in parents else ends[-1] if ends else next(iter(parents), None)
    found: list[Branch] = []
    placed: dict[str, int] = {}
    # Whatever hangs in a circle has no end; it comes last.
    for end in [*([first] if first is not None else []), *ends, *parents]:
        line: dict[str, None] = {}
        node: str | None = end
        while node is not None and node in parents and node not in placed and node not in line:
            line[node] = None
            node = parents[node]
        if line:
            leaves = placed.get(node) if node is not None else None
            placed.update(dict.fromkeys(line, len(found)))
            found.append(Branch(tuple(reversed(line)), leaves))
    return found
