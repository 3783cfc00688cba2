"""Things that may still be written to: what was changed a moment ago is looked at once more later.

A message has one external id, and what was taken in under it stays. Of a message that is rewritten while it grows, the
record would keep the first half; so its end is awaited as long as somebody may be at work on it, and no longer.
"""

import time

_SETTLED_AFTER = 120.0


def is_settling(changed: float) -> bool:
    """Whether something was changed so lately that it may not be finished."""
    return time.time() - changed < _SETTLED_AFTER


def when_changed(changed: float) -> float:
    """The time of a change as an item says it: for what is settling always another one, so that it is read again."""
    return time.time() if is_settling(changed) else changed
