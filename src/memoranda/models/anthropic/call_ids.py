"""Makes the ids of tool calls acceptable to Anthropic: unique in a request, with allowed characters only.

Some models name every first call "call_0", and so do imported histories. The record keeps the original ids; in a
request, a repeated id gets a number, and so does the id in its result. The new id depends only on the messages before
the call, so it is the same in every later request.
"""

import re
from typing import Any

_INVALID = re.compile(r"[^a-zA-Z0-9_-]")


class CallIds:
    """The call ids of one request; the caller asks for them in the order in which the messages are sent."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._repetitions: dict[str, int] = {}
        self._unanswered: dict[str, list[str]] = {}

    def for_calls(self, originals: list[Any]) -> list[str]:
        """The ids for the calls of one message."""
        call_ids = [self._make_unique(_acceptable(original)) for original in originals]
        # The results that follow answer these calls, not earlier calls with the same id.
        self._unanswered |= {str(original): [] for original in originals}
        for original, call_id in zip(originals, call_ids, strict=True):
            self._unanswered[str(original)].append(call_id)
        return call_ids

    def for_result(self, original: Any) -> str:
        """The id of the call that a result answers: the first call with this id that has no result yet."""
        unanswered = self._unanswered.get(str(original))
        if not unanswered:
            return _acceptable(original)
        return unanswered.pop(0) if len(unanswered) > 1 else unanswered[0]

    def _make_unique(self, call_id: str) -> str:
        unused = call_id
        while unused in self._used:
            self._repetitions[call_id] = self._repetitions.get(call_id, 1) + 1
            unused = f"{call_id}_{self._repetitions[call_id]}"
        self._used.add(unused)
        return unused


def _acceptable(original: Any) -> str:
    return _INVALID.sub("_", str(original or "none"))
