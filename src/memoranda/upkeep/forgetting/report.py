"""What a caller wants to forget, and the answer: where it was, what was done there, and what is left."""

from dataclasses import asdict, field
from typing import Any, Literal

from memoranda.errors import SessionError
from memoranda.support.lazy_dataclass import dataclass

Subject = Literal["text", "session", "entry", "user"]
Action = Literal["redact", "remove", "keep"]


@dataclass(frozen=True, slots=True)
class ForgetPlace:
    """One place that has what is to be forgotten.

    `area` is the part of the home (curated memory, record, outbox …), `where` the file, the session or the service, and
    `count` how many times it is there. `action`: its passages are marked as forgotten, it is removed as a whole, or it
    is kept, because of `note`.
    """

    area: str
    where: str
    count: int
    action: Action
    note: str = ""


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """What was found, and after forgetting what is left. `complete` says that nothing is left in the home."""

    subject: Subject
    found: tuple[ForgetPlace, ...]
    left: tuple[ForgetPlace, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    files_read: int = 0
    bytes_read: int = 0
    dry_run: bool = False
    warning: str = ""
    """Why a person should look at the counts first: the text is very short, or it is in very many places."""
    at_services: tuple[str, ...] = field(default=())
    """What external services said about the deletion."""

    @property
    def count(self) -> int:
        return sum(place.count for place in self.found)

    @property
    def complete(self) -> bool:
        return not self.dry_run and not self.left and not self.problems

    def as_data(self) -> dict[str, Any]:
        return asdict(self) | {"count": self.count, "complete": self.complete}


@dataclass(frozen=True, slots=True)
class ForgetSubject:
    """Exactly one of the four is set. `whole_words` belongs to a text."""

    text: str | None = None
    session: str | None = None
    entry: str | None = None
    user: str | None = None
    whole_words: bool = False

    def __post_init__(self) -> None:
        if sum(given is not None for given in (self.text, self.session, self.entry, self.user)) != 1:
            raise SessionError("Name exactly one of text, session, entry and user to forget.")

    def __str__(self) -> str:
        if self.user is not None:
            return f"everything of user {self.user}"
        if self.session is not None:
            return f"the conversation {self.session}"
        return f"the entry {self.entry}" if self.entry is not None else "the text"
