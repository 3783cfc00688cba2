"""The outcome of migrating one entry or skill of a Hermes home."""

from dataclasses import dataclass
from typing import Literal

from memoranda.support.origin import Origin

# A person started the import, so it needs no further approval.
ORIGIN = Origin("import", explicit=True)
Kind = Literal["memory", "user", "skill"]
Status = Literal[
    "new",  # it is, or would be, migrated
    "there",  # it is already here
    "gone",  # it was here, and has been removed since
    "conflict",  # something else has its name here
    "unreadable",  # the file itself, by its path
    "left",  # it does not fit, or may not be stored; it is written to a file
]


@dataclass(frozen=True, slots=True)
class MigrationOutcome:
    """One entry by its text or one skill by its name, with its status and the reason."""

    kind: Kind
    name: str
    status: Status
    reason: str = ""
