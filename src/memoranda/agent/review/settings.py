"""Settings of background reviews."""

from memoranda.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ReviewSettings:
    """`nudge_interval` is in user turns; 0 means never. `deadline_seconds` covers all steps of a review."""

    nudge_interval: int = 10
    max_steps: int = 8
    deadline_seconds: float = 120.0
    shutdown_seconds: float = 2.0
    tries: int = 3
