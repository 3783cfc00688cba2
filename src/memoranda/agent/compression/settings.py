"""Settings of compression, and the token limits that follow from them for a context window."""

from memoranda.support.lazy_dataclass import dataclass

_MIN_TARGET = 200
# A summary uses at most these shares of the window and of the compressed context.
_MAX_WINDOW_SHARE = 0.05
_MAX_TARGET_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class CompressionSettings:
    """A context is compressed at the share `threshold` of the window, to the share `target_ratio` of that."""

    enabled: bool = True
    threshold: float = 0.75
    target_ratio: float = 0.2
    protect_first: int = 3
    protect_last: int = 6
    summary_tokens: int = 4_000
    deadline_seconds: float = 120.0

    def limit(self, window: int, reserved: int = 0) -> int:
        """The tokens at which a context is compressed; `reserved` are the tokens kept for an answer."""
        room = window - reserved if 0 < reserved < window else window
        return max(1, int(room * self.threshold))

    def target(self, window: int) -> int:
        """The tokens that the messages should have after compression."""
        return max(_MIN_TARGET, int(self.limit(window) * self.target_ratio))

    def summary_room(self, window: int) -> int:
        """The part of the target's tokens that the summary may use."""
        return int(
            min(
                self.summary_tokens,
                max(window * _MAX_WINDOW_SHARE, _MIN_TARGET),
                self.target(window) * _MAX_TARGET_SHARE,
            )
        )
