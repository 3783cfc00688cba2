"""What the scanner reports: one value per suspicious place."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How sure and how grave: `high` should be refused, `medium` deserves a look by a person."""

    HIGH = "high"
    MEDIUM = "medium"


@dataclass(frozen=True, slots=True)
class Finding:
    """A suspicious place; `span` counts code points of the text as it was given."""

    id: str
    severity: Severity
    span: tuple[int, int]
    message: str
