"""One turn of a session: the user's message is durable before anything else happens, the answer when it is done."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from memoranda.errors import SessionError
from memoranda.providers.external_memory import with_recall
from memoranda.providers.message_text import plain_text

if TYPE_CHECKING:
    from memoranda.agent.session_views import TurnSession


class Turn:
    """One turn: the user's message is durable when it begins, the answer when `done` returns.

    A turn that is left without `done`, by an error or a break, is interrupted: what was recorded stays.
    """

    def __init__(
        self, session: "TurnSession", text: Any, *, record: Callable[[Sequence[Mapping[str, Any]]], list[int]]
    ) -> None:
        """`record` records messages in one commit and returns their ids."""
        self.interrupted = True
        self._session = session
        self._record = record
        self._external = session.external
        (self.message_id,) = record([{"role": "user", "content": text, **self._external.mark()}])
        self._query, self._recalled = "", session.note_of_changes()
        # Read back from the record: what redaction removed there must not reach an external memory either.
        self._question = session.recorded_message(self.message_id).get("content")
        if self._external.active:
            self._query = plain_text(self._question)
            recalled = self._external.begin_turn(self._query, session.id)
            self._recalled = "\n\n".join(filter(None, (self._recalled, recalled)))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation so far in the form that chat APIs accept, without the system prompt.

        What an external memory recalled, and what changed in curated memory since the prompt was built, is fenced into
        this copy of the user's message; the record never contains it.
        """
        return with_recall(self._session.conversation(), self._recalled, self._question)

    def record(self, role: str, content: Any = None, **fields: Any) -> int:
        """Record a step of the turn, such as a tool call or its result, before the next step starts."""
        step = {"role": role, "content": content, **fields, **self._external.mark(self.message_id)}
        return self._record([step])[0]

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
            {**message, **self._external.mark(self.message_id, done=index == last)}
            for index, message in enumerate(reply)
        ]
        ids = self._record(answer)
        self.interrupted = False
        self._external.finish_turn(self._query, self._session.id)
        return ids

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: every step is recorded already, and an interrupted turn is not delivered to the provider."""
