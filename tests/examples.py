"""How many examples a property tries: all of them in a full run, a few in the everyday one."""

from hypothesis.internal.conjecture import providers

_MIN_EXAMPLES = 5
_EVERYDAY_SHARE = 6


class _Run:
    full = False


def use_all_examples() -> None:
    """Make every property that is defined from now on try all of its examples; `pytest --full` calls this."""
    _Run.full = True


def draw_no_constants_of_the_sources() -> None:
    """Keep Hypothesis from reading all loaded modules for values to try.

    That takes as long as loading them, and more in a fresh clone; and which modules are loaded, so which examples a
    property tries, would depend on the tests that ran before.
    """
    providers._get_local_constants = lambda: providers._local_constants


def is_full_run() -> bool:
    """Whether all examples are wanted."""
    return _Run.full


def examples(count: int) -> int:
    """Return `count` in a full run and about a sixth of it otherwise."""
    return count if _Run.full else max(_MIN_EXAMPLES, count // _EVERYDAY_SHARE)
