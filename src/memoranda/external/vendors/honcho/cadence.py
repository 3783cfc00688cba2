"""When recall asks Honcho again: every turn, every few turns, or rarely while the answers are empty."""

from memoranda.external.vendors.honcho.client import REASONING_LEVELS
from memoranda.storage.files.fork_lock import ForkLock

_MAX_BACKOFF = 8
# A message of this many characters deserves one level, or two levels, more of reasoning.
_LONG_QUERY_CHARS = (120, 400)


class Cadence:
    """Counts the turns of each session between two refreshes. Thread-safe.

    `every` is the number of turns between refreshes. Answers that were empty widen it, up to eight times.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._lock = ForkLock()
        self._next: dict[str, int] = {}
        self._empty: dict[str, int] = {}

    def take(self, session_id: str, turn: int) -> bool:
        """Whether a refresh is due in this turn; if so, the next one is due `every` turns later."""
        with self._lock:
            if turn < self._next.get(session_id, 0):
                return False
            pause = min(self._every + self._empty.get(session_id, 0), _MAX_BACKOFF * self._every)
            self._next[session_id] = turn + pause
            return True

    def answered(self, session_id: str, *, empty: bool) -> None:
        """Report whether the refresh brought something."""
        with self._lock:
            self._empty[session_id] = self._empty.get(session_id, 0) + 1 if empty else 0

    def failed(self, session_id: str) -> None:
        """Report that the refresh failed: the next turn tries again."""
        with self._lock:
            self._next.pop(session_id, None)

    def reset(self) -> None:
        """Forget all sessions, so that the next turn of each refreshes."""
        with self._lock:
            self._next.clear()
            self._empty.clear()


def reasoning_level(query: str, base: str, cap: str, *, heuristic: bool) -> str:
    """The level for a question: `base`, and with `heuristic` one or two more for a long one, but not above `cap`."""
    level = REASONING_LEVELS.index(base)
    if heuristic:
        raised = level + sum(len(query) >= chars for chars in _LONG_QUERY_CHARS)
        level = max(level, min(raised, REASONING_LEVELS.index(cap)))
    return REASONING_LEVELS[level]


def pass_levels(depth: int, base: str) -> list[str]:
    """The level of each pass of a dialectic of this depth; a first pass before others is cheap."""
    return {1: [base], 2: ["minimal", base], 3: ["minimal", base, "low"]}[depth]
