"""The origin of a change, as it is written into files: who asked for it, and when."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol

from memoranda.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """Who asked for a change: the actor in one word, the session, and whether a person asked explicitly.

    `sources` are what may have suggested the change and is not trusted: tools whose results the turn read, providers
    that recalled text into it. `message` is the id of the user's message that the change followed.
    """

    actor: str = "agent"
    session: str = ""
    explicit: bool = False
    sources: tuple[str, ...] = ()
    message: int | None = None


class SourcesOf(Protocol):
    """Says which untrusted text may have suggested texts that are to be written; nothing for the user's own words."""

    def __call__(self, texts: Sequence[str], *, latest: bool = False) -> tuple[str, ...]:
        """With `latest` only the user's latest message counts: for what replaces, removes or ends something."""


PERSON = Origin(actor="person", explicit=True)
MEMORANDA = Origin("memoranda")
"""The origin of the lines that settle what a killed writer left."""


def utc_timestamp() -> str:
    """Now, in UTC and ISO 8601 with microseconds: sortable as text."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def utc_time(seconds: float) -> str:
    """A time in seconds since 1970, in UTC and ISO 8601."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
