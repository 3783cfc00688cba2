"""What can be set about compression, and what follows from it for a context window."""

from dataclasses import dataclass

_LEAST_TARGET = 200
# A summary takes at most this share of a window, and of what a compressed context may have.
_OF_WINDOW = 0.05
_OF_TARGET = 0.4


@dataclass(frozen=True, slots=True)
class CompressionSettings:
    """`threshold` is the share of the window at which a context is compressed, `target_ratio` what is left of that."""

    enabled: bool = True
    threshold: float = 0.75
    target_ratio: float = 0.2
    protect_first: int = 3
    protect_last: int = 6
    summary_tokens: int = 4_000
    deadline_seconds: float = 120.0

    def limit(self, window: int, reserved: int = 0) -> int:
        """From how many tokens on a context is compressed; `reserved` is what an answer may take of the window."""
        room = window - reserved if 0 < reserved < window else window
        return max(1, int(room * self.threshold))

    def target(self, window: int) -> int:
        """How many tokens the messages should have afterwards."""
        return max(_LEAST_TARGET, int(self.limit(window) * self.target_ratio))

    def summary_room(self, window: int) -> int:
        """How many tokens of that the summary may take."""
        return int(min(self.summary_tokens, max(window * _OF_WINDOW, _LEAST_TARGET), self.target(window) * _OF_TARGET))
