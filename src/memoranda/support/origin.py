"""Who wants a change."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wants a change: an actor in one word, the session, and whether a person asked for it."""

    actor: str = "agent"
    session: str = ""
    explicit: bool = False


PERSON = Origin(actor="person", explicit=True)
