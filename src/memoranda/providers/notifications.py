"""What a provider is told: each thing that happens in a conversation, as a job for the outbox."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from memoranda.providers.delivery import Delivery
from memoranda.providers.jobs import NewJob
from memoranda.providers.outbox_writer import OutboxWriter, turn_job
from memoranda.providers.provider import Message
from memoranda.providers.text import plain_text

_WRITES = ("add", "replace", "remove")


class ProviderNotifier:
    """The part of the manager that tells; nothing here waits for a provider."""

    _clean: Callable[[str], str]
    _queue: OutboxWriter
    _delivery: Delivery | None
    _name: str
    _session_id: str
    _closed: bool

    @abstractmethod
    def _tell(self, new: NewJob) -> bool:
        """Queue something; True when it is durable."""

    @abstractmethod
    def _warm_up(self, question: str, session_id: str) -> None:
        """Let the provider get ready for the next turn."""

    @abstractmethod
    def _drop_recall(self) -> None:
        """Forget what was recalled and not used."""

    def _of(self, session_id: str) -> str:
        return session_id or self._session_id

    def turn_recorded(self, question: str, session_id: str = "") -> None:
        """A turn was completed, and is in the record: it is found there, and queued, in the background."""
        if self._closed:
            return
        self._queue.turn_recorded()
        if self._delivery is not None:
            self._delivery.wake()
        self._warm_up(self._clean(question), self._of(session_id))

    def turn_finished(
        self,
        user: object,
        assistant: object,
        session_id: str = "",
        messages: list[Message] | None = None,
        *,
        key: str = "",
    ) -> bool:
        """Hand over a completed turn that is in no record; without a question or an answer it must have messages.

        True when it is durable in the outbox. The same `key` is never queued twice.
        """
        question, answer = self._clean(plain_text(user)).strip(), self._clean(plain_text(assistant)).strip()
        if not (question and answer) and not messages:
            return False
        session_id = self._of(session_id)
        queued = self._tell(turn_job(session_id, question, answer, messages, key))
        self._warm_up(question, session_id)
        return queued

    def memory_written(
        self, action: str, target: str, content: str | None, metadata: Mapping[str, Any] | None = None, *, key: str = ""
    ) -> bool:
        """Mirror a write to built-in memory that was committed: add, replace or remove."""
        if action not in _WRITES:
            return False
        session_id = self._of(str((metadata or {}).get("session_id") or ""))
        args = {"action": action, "target": target, "content": content or ""}
        return self._tell(NewJob("memory_write", session_id, args, {"metadata": dict(metadata or {})}, key))

    def session_ended(self, messages: list[Message], session_id: str = "", *, key: str = "") -> bool:
        """A session is over; the provider hears of it after everything that happened in it, if anything did."""
        session_id = self._of(session_id)
        new = NewJob("session_end", session_id, {"messages": messages}, {"session_id": session_id}, key)
        return bool(messages) and self._tell(new)

    def session_switched(
        self,
        new_session_id: str,
        *,
        parent_session_id: str = "",
        reset: bool = False,
        rewound: bool = False,
        key: str = "",
        **facts: Any,
    ) -> bool:
        """The conversation goes on under another id, or was taken back: what was recalled for it is dropped at once."""
        if not new_session_id or not self._name:
            return False
        self._drop_recall()
        self._session_id = self._queue.session_id = new_session_id
        facts |= {"parent_session_id": parent_session_id, "reset": reset} | ({"rewound": True} if rewound else {})
        return self._tell(NewJob("session_switch", new_session_id, {"new_session_id": new_session_id}, facts, key))

    def delegated(
        self, task: str, result: str, *, child_session_id: str = "", session_id: str = "", key: str = "", **facts: Any
    ) -> bool:
        """A sub-agent of a session is done."""
        session_id = self._of(session_id)
        facts |= {"child_session_id": child_session_id, "session_id": session_id}
        return self._tell(NewJob("delegation", session_id, {"task": task, "result": result}, facts, key))
