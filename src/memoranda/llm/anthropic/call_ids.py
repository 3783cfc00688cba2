"""Names of tool calls as Anthropic takes them: each once in a request, and of characters that it knows.

Some models call every first call "call_0", and so do histories that came in from elsewhere. The record keeps what was
said; in a request a later call of the same name is numbered, and its result with it. What a call is named depends on
nothing but what stands before it, so it is named the same in every later request.
"""

import re
from typing import Any

_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")


class CallIds:
    """The names of the calls in one request, given in the order in which they are sent."""

    def __init__(self) -> None:
        self._sent: set[str] = set()
        self._repeated: dict[str, int] = {}
        self._unanswered: dict[str, list[str]] = {}

    def of_calls(self, given: list[Any]) -> list[str]:
        """Names for the calls of one message."""
        names = [self._unused(_acceptable(each)) for each in given]
        # Results that follow are of these calls, and of none before that had the same name.
        self._unanswered |= {str(each): [] for each in given}
        for each, name in zip(given, names, strict=True):
            self._unanswered[str(each)].append(name)
        return names

    def of_result(self, given: Any) -> str:
        """The name of the call that a result belongs to: the first of that name that has none yet."""
        waiting = self._unanswered.get(str(given))
        if not waiting:
            return _acceptable(given)
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    def _unused(self, name: str) -> str:
        unused = name
        while unused in self._sent:
            self._repeated[name] = self._repeated.get(name, 1) + 1
            unused = f"{name}_{self._repeated[name]}"
        self._sent.add(unused)
        return unused


def _acceptable(given: Any) -> str:
    """A name without characters that the service refuses."""
    return _REFUSED.sub("_", str(given or "none"))
