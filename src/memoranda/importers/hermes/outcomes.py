"""What becomes of something that a Hermes home has beside its sessions."""

from dataclasses import dataclass
from typing import Literal

from memoranda.support.origin import Origin

# A person asked for the import, so it needs no further approval.
ORIGIN = Origin("import", explicit=True)
Kind = Literal["memory", "user", "skill"]
Status = Literal[
    "new",  # it is, or would be, taken over
    "there",  # it is here already
    "gone",  # it was here, and has been removed since
    "conflict",  # something else of its name is here
    "unreadable",  # the file itself, by its path
    "left",  # there is no room for it, or it may not be stored; it is written down beside
]


@dataclass(frozen=True, slots=True)
class MigrationOutcome:
    """One entry by its text or one skill by its name, what becomes of it, and why."""

    kind: Kind
    name: str
    status: Status
    reason: str = ""
