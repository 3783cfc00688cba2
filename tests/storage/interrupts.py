"""An interrupt where Python lets one in: when a function begins, and when a call into C returns.

The ends of loops, where it also comes, are left out.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def interrupted_at(moment: int, work: Callable[[], object]) -> bool:
    """Do some work and interrupt it at its so-manieth moment; False when it was over before, or took no notice."""
    left = moment

    def look(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        left -= event in ("call", "c_return")
        if left == 0:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(look)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


def moments(work: Callable[[], object]) -> int:
    """How many such moments there are in some work."""
    seen = 0

    def look(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal seen
        seen += event in ("call", "c_return")

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    return seen
