"""How many examples a property tries: all of them in a full run, a few in the everyday one."""

_MIN_EXAMPLES = 5
_EVERYDAY_SHARE = 6


class _Run:
    full = False


def use_all_examples() -> None:
    """Make every property that is defined from now on try all of its examples; `pytest --full` calls this."""
    _Run.full = True


def is_full_run() -> bool:
    """Whether all examples are wanted."""
    return _Run.full


def examples(count: int) -> int:
    """Return `count` in a full run and about a sixth of it otherwise."""
    return count if _Run.full else max(_MIN_EXAMPLES, count // _EVERYDAY_SHARE)
