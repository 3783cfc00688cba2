"""What a caller wants to forget: a text, a conversation, an entry of curated memory, or a user."""

from dataclasses import dataclass

from memoranda.errors import SessionError


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
