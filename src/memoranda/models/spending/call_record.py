"""The record of one model call in the ledger."""

import uuid
from dataclasses import astuple, dataclass, field, fields

from memoranda.models.model import Usage

OK, RUNNING, INTERRUPTED = "ok", "running", "interrupted"


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A row of `calls`; the fields are its columns. `estimated`: Memoranda counted the tokens, not the service."""

    purpose: str
    at: float
    background: bool = False
    session_id: str = ""
    user_id: str = ""
    provider: str = ""
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False
    cost_usd: float | None = None
    seconds: float = 0.0
    outcome: str = OK
    most_tokens: int = 0
    most_usd: float = 0.0
    until: float | None = None
    key: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def usage(self) -> Usage:
        return Usage(*(getattr(self, column.name) for column in fields(Usage)))

    def values(self) -> tuple[object, ...]:
        """The values of the columns; flags are numbers there."""
        return tuple(int(value) if isinstance(value, bool) else value for value in astuple(self))


COLUMNS = tuple(column.name for column in fields(CallRecord))
# A reserved call has a row already, which is then completed.
UPSERT = (
    f"INSERT INTO calls ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
    " ON CONFLICT (key) DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in COLUMNS if name != "key")
)
