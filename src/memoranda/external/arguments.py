"""Fits a call to a method's signature: a provider gets the arguments and facts that it accepts, and nothing else."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a method: which it accepts by position, which by name, and whether it accepts any others."""

    positional: tuple[str, ...]
    named: frozenset[str]
    any_positional: bool
    any_named: bool

    def accepts(self, name: str) -> bool:
        """Whether the method accepts a fact of this name."""
        return self.any_named or name in self.named


@dataclass(frozen=True, slots=True)
class BoundArguments:
    """Arguments as a method accepts them, and the names of those that it does not accept."""

    positional: tuple[Any, ...]
    named: dict[str, Any]
    dropped: tuple[str, ...]


def parameters_of(method: Callable[..., Any]) -> Parameters | None:
    """The parameters of a bound method; None when it has no readable signature."""
    try:
        parameters = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):
        return None
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return Parameters(
        positional=tuple(parameter.name for parameter in parameters if parameter.kind in by_position),
        named=frozenset(parameter.name for parameter in parameters if parameter.kind in by_name),
        any_positional=any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters),
        any_named=any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters),
    )


def bind_arguments(parameters: Parameters, args: Mapping[str, Any], facts: Mapping[str, Any]) -> BoundArguments:
    """Pass `args` in their order and `facts` by name, as far as the method accepts them."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    dropped: list[str] = []
    for name, value in args.items():
        if len(positional) < len(parameters.positional) or parameters.any_positional:
            positional.append(value)
        elif parameters.accepts(name):
            named[name] = value
        else:
            dropped.append(name)
    filled = set(parameters.positional[: len(positional)])
    free = set(parameters.positional[len(positional) :])
    for name, value in facts.items():
        if name not in filled and (name in parameters.named or (parameters.any_named and name not in free)):
            named[name] = value
    return BoundArguments(tuple(positional), named, tuple(dropped))


def bind_hermes_arguments(parameters: Parameters, args: Mapping[str, Any], facts: Mapping[str, Any]) -> BoundArguments:
    """Bind arguments for a provider that may predate `metadata`.

    `metadata` is passed by name; else in the next free position, whatever that parameter is called; and its values also
    go to parameters of the same names, because older hooks accepted `session_id` and others one by one.
    """
    bound = bind_arguments(parameters, args, facts)
    metadata = facts.get("metadata")
    if not isinstance(metadata, dict):
        return bound
    filled = set(parameters.positional[: len(bound.positional)])
    spread = parameters.named & metadata.keys() - filled - bound.named.keys()
    named = bound.named | {name: metadata[name] for name in spread}
    if "metadata" in named:
        return BoundArguments(bound.positional, named, bound.dropped)
    free = [name for name in parameters.positional[len(bound.positional) :] if name not in named]
    if not free:
        return BoundArguments(bound.positional, named, (*bound.dropped, "metadata"))
    if free[0] in parameters.named:
        return BoundArguments(bound.positional, named | {free[0]: metadata}, bound.dropped)
    return BoundArguments((*bound.positional, metadata), named, bound.dropped)
