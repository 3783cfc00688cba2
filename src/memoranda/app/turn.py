"""One exchange of a session: the question is on disk before anything else happens, the answer before it ends."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from memoranda.errors import SessionError
from memoranda.providers.external_memory import with_recall
from memoranda.providers.text import plain_text

if TYPE_CHECKING:
    from memoranda.app.session import Session


class Turn:
    """One exchange: the user's words are on disk when it begins, the answer when `done` returns.

    Left without `done`, by an error or a break, the turn is an interrupted one: what was recorded stays.
    """

    def __init__(self, session: "Session", text: Any) -> None:
        self.interrupted = True
        self._session = session
        self._external = session.external
        (self.message_id,) = session.record_all([{"role": "user", "content": text, **self._external.mark()}])
        self._asked, self._recalled = "", session.note_of_changes()
        # As it was recorded: what was kept out of the record is kept from an external memory too.
        self._question = session.recorded(self.message_id).get("content")
        if self._external.active:
            self._asked = plain_text(self._question)
            recalled = self._external.begin_turn(self._asked, session.id)
            self._recalled = "\n\n".join(filter(None, (self._recalled, recalled)))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation so far as chat APIs take it, without the system prompt.

        What an external memory recalled, and what changed in curated memory since the prompt was frozen, is fenced into
        this copy of the user's message; the record never has it.
        """
        return with_recall(self._session.conversation(), self._recalled, self._question)

    def record(self, role: str, content: Any = None, **fields: Any) -> int:
        """Record a step of the turn, such as a tool call or its result, before the next one is taken."""
        step = {"role": role, "content": content, **fields, **self._external.mark(self.message_id)}
        return self._session.record_all([step])[0]

    def done(self, reply: str | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> list[int]:
        """Record the answer: text, a message, or several messages in one commit. A turn is done once."""
        if not self.interrupted:
            raise SessionError("This turn is done, and its answer is recorded. session.turn() begins the next one.")
        if isinstance(reply, str):
            reply = [{"role": "assistant", "content": reply}]
        elif isinstance(reply, Mapping):
            reply = [{"role": "assistant", **reply}]
        last = len(reply) - 1
        answer = [
            {**message, **self._external.mark(self.message_id, done=place == last)}
            for place, message in enumerate(reply)
        ]
        ids = self._session.record_all(answer)
        self.interrupted = False
        self._external.finish_turn(self._asked, self._session.id)
        return ids

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing waits to be saved; a turn that is not done is not handed to an external memory."""
