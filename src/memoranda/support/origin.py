"""The origin of a change: who asked for it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """Who asked for a change: the actor in one word, the session, and whether a person asked explicitly.

    `sources` are what may have suggested the change and is not trusted: tools whose results the turn read, providers
    that recalled text into it.
    """

    actor: str = "agent"
    session: str = ""
    explicit: bool = False
    sources: tuple[str, ...] = ()


PERSON = Origin(actor="person", explicit=True)
