"""Settings of the agent: the limits of a turn and of delegated work."""

from memoranda.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Limits of a turn; when one is reached, the model must answer with what it has."""

    max_steps: int = 40
    """How many times the model may call tools before it must answer."""
    turn_seconds: float | None = None
    """How long a whole turn may take; None means no limit, for a person who can interrupt the turn."""
    call_seconds: float = 300.0
    """How long one call of the model may take, with all its retries."""
    keep_interrupted: bool = True
    """Whether the part of an answer that was shown before the user interrupted it is recorded."""
    result_chars: int = 60_000
    """How many characters of a tool's result the model sees."""


@dataclass(frozen=True, slots=True)
class DelegationSettings:
    """Limits of delegated work."""

    max_depth: int = 1
    """How many levels of delegates there may be; 0 offers no delegation."""
    max_steps: int = 20
    turn_seconds: float = 300.0
