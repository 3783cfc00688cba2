"""The origin of a change: who asked for it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """Who asked for a change: the actor in one word, the session, and whether a person asked explicitly."""

    actor: str = "agent"
    session: str = ""
    explicit: bool = False


PERSON = Origin(actor="person", explicit=True)
