"""One turn of a session: the user's message is durable before anything else happens, the answer when it is done."""

import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

from memoranda.api.checked_calls import NotAsync, require_answer
from memoranda.errors import ModelReplyError, SessionError
from memoranda.external.external_memory import with_recall
from memoranda.external.message_text import plain_text

if TYPE_CHECKING:
    from memoranda.agent.model_messages import AnswerStream
    from memoranda.api.session_parts.state import SessionState
    from memoranda.models.model import OnText
    from memoranda.storage.engine import HeldLock
    from memoranda.types import ChatMessage


class Turn(NotAsync):
    """One turn: the user's message is durable when it begins, the answer when `done` returns.

    A turn that is left without `done`, by an error or a break, is interrupted: what was recorded stays. Until it is
    done, left or dropped, no other turn of the conversation can begin.
    """

    def __init__(
        self,
        session: "SessionState",
        text: Any,
        *,
        lock: "HeldLock",
        record: Callable[[Sequence[Mapping[str, Any]]], list[int]],
        external_id: str | None = None,
    ) -> None:
        """`lock` is that of the conversation's turns; `record` records messages in one commit and returns their ids.

        A message with the `external_id` of another one is not recorded again.
        """
        self.interrupted = True
        self._lock: HeldLock | None = lock
        self._shown: AnswerStream | None = None
        self._thread = threading.get_ident()
        self._session = session
        self._record = record
        self._external = session.external
        question = {"role": "user", "content": text, **self._external.mark()}
        (self.message_id,) = record([question if external_id is None else {**question, "external_id": external_id}])
        # Read back from the record: what redaction removed there must not reach an external memory either.
        self._question = session.recorded_message(self.message_id).get("content")
        self._query = plain_text(self._question)
        self._recalled = session.recall(self._query, self.message_id)

    @property
    def messages(self) -> "list[ChatMessage]":
        """The conversation so far in the form that chat APIs accept, without the system prompt.

        What an external memory recalled, what changed in curated memory since the prompt was built, and the last work
        for a prompt that asks to continue, is fenced into this copy of the user's message; the record never has it.
        """
        messages = with_recall(self._session.conversation(), self._recalled, self._question)
        return cast("list[ChatMessage]", messages)

    def record(self, /, role: str, content: Any = None, **fields: Any) -> int:
        """Record a step of the turn, such as a tool call or its result, before the next step starts.

        A call is `record("assistant", text, tool_calls=[…])`, its result `record("tool", result, tool_call_id=…)`.
        Raises SessionError when the turn is done or was left: another one may have begun.
        """
        if not self.is_open:
            raise SessionError(
                "This turn has ended, so nothing can be added to it. session.turn() begins the next one."
            )
        return self._record_step({"role": role, "content": content, **fields})

    def done(self, reply: str | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> list[int]:
        """Record the answer: text, a message, or several messages in one commit.

        A turn is done once. Raises SessionError the second time.
        """
        if not self.interrupted:
            raise SessionError("This turn is done, and its answer is recorded. session.turn() begins the next one.")
        require_answer(reply)
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
        self.interrupted, self._shown = False, None
        self._external.finish_turn(self._query, self._session.id)
        self.close()
        return ids

    def stream(self, chunks: Iterable[str]) -> Generator[str, None, None]:
        """Yield an answer while the model writes it, without recalled memory that it repeats, then record it as `done`.

        When the caller stops reading or the model fails, what was yielded so far is recorded with a note that the
        answer is not complete, and the turn is interrupted. Raises ModelReplyError when the model wrote nothing.
        """
        pieces: list[str] = []
        answer = self.begin_stream(pieces.append)
        try:
            for chunk in chunks:
                answer.feed(chunk)
                yield from _drain(pieces)
            answer.finish()
            yield from _drain(pieces)
        except BaseException as error:
            self.break_off(failed=isinstance(error, Exception))
            raise
        self.done_streaming(answer.written)

    def begin_stream(self, on_text: "OnText") -> "AnswerStream":
        """Begin an answer that is shown piece by piece; a turn that is left in its middle records what was shown."""
        from memoranda.agent.model_messages import AnswerStream

        self._shown = AnswerStream(on_text)
        return self._shown

    def break_off(self, *, failed: bool = False) -> None:
        """Record once what was shown of an incomplete answer, unless the settings say not to; or the model `failed`."""
        answer, self._shown = self._shown, None
        if answer is None:
            return
        from memoranda.agent.model_messages import FAILED_ANSWER, PARTIAL_ANSWER, partial_answer

        if answer.shown.strip() and self._session.services.config.agent.keep_interrupted:
            self._record_step(partial_answer(answer.shown, FAILED_ANSWER if failed else PARTIAL_ANSWER))

    def _record_step(self, step: Mapping[str, Any]) -> int:
        return self._record([{**step, **self._external.mark(self.message_id)}])[0]

    def done_streaming(self, written: str) -> list[int]:
        """Record a streamed answer; raises ModelReplyError when the model wrote nothing."""
        self._shown = None
        if not written.strip():
            raise ModelReplyError("The model's answer is empty, and the turn is not done. Ask the model again.")
        return self.done(written)

    def close(self) -> None:
        """Leave the turn, so that the next one can begin; without `done` before, it is interrupted."""
        lock, self._lock = self._lock, None
        if lock is None:
            return
        try:
            # The program may keep the stream that it stopped reading.
            self.break_off()
        finally:
            lock.release()

    @property
    def is_open(self) -> bool:
        """Whether the turn was neither done nor left, so that no other turn of the conversation can begin."""
        return self._lock is not None

    @property
    def is_open_in_this_thread(self) -> bool:
        """Whether this thread began the turn and has not left it: waiting for its end would never end."""
        return self._lock is not None and self._thread == threading.get_ident()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the turn. Every step is recorded already; an interrupted turn is not delivered to the provider."""
        self.close()


def _drain(pieces: list[str]) -> Iterator[str]:
    while pieces:
        yield pieces.pop(0)
