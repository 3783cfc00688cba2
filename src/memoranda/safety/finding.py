"""`Finding`: one suspicious part of a text, as the scanner reports it."""

from enum import StrEnum

from memoranda.support.lazy_dataclass import dataclass


class Severity(StrEnum):
    """How certain and how serious a finding is: `high` should be refused, a person should look at `medium`."""

    HIGH = "high"
    MEDIUM = "medium"


@dataclass(frozen=True, slots=True)
class Finding:
    """A suspicious part of a text; `span` counts code points of the original text."""

    id: str
    severity: Severity
    span: tuple[int, int]
    message: str
