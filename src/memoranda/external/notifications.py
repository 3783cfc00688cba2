"""Notifications for a provider: each event of a conversation becomes a row of the record, and a job in the outbox."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from memoranda.errors import StorageError
from memoranda.external.active_provider import ActiveProvider
from memoranda.external.delivery import HOOKS, Delivery, ProviderQueue, turn_job
from memoranda.external.guarded_call import PendingCall
from memoranda.external.health import HealthTracker
from memoranda.external.message_text import plain_text
from memoranda.external.outbox.jobs import NewJob
from memoranda.external.provider import Message
from memoranda.support.lazy_dataclass import dataclass

_log = logging.getLogger(__name__)

_WRITE_ACTIONS = ("add", "replace", "remove")


@dataclass(slots=True)
class ProviderState:
    """Shared by the manager, which changes it, and the notifier, which reads it."""

    active: ActiveProvider | None = None
    attaching: PendingCall | None = None
    delivery: Delivery | None = None
    closed: bool = False

    @property
    def expected(self) -> bool:
        """Whether a provider is being loaded; notifications are queued for it meanwhile."""
        return self.active is None and self.attaching is not None and not self.attaching.done

    @property
    def ready(self) -> ActiveProvider | None:
        """The provider that can be called now."""
        return self.active if self.active is not None and self.active.ready and not self.closed else None

    def wake_delivery(self) -> None:
        if self.delivery is not None:
            self.delivery.wake()


class ProviderNotifier:
    """Queues what happens in a conversation. No method waits for the provider or raises because of it.

    Methods return True when the notification is durable. A hook that the provider does not implement is not queued.
    The same `key` is never queued twice.
    """

    def __init__(
        self, queue: ProviderQueue, state: ProviderState, health: HealthTracker, clean: Callable[[str], str]
    ) -> None:
        self._queue = queue
        self._state = state
        self._health = health
        self._clean = clean

    def turn_recorded(self, question: str, session_id: str = "") -> None:
        """Note that a turn was completed and is in the record, where the delivery thread finds it."""
        if self._state.closed:
            return
        self._queue.turn_recorded()
        self._state.wake_delivery()
        self.prefetch_next(question, session_id)

    def turn_finished(
        self,
        user: object,
        assistant: object,
        session_id: str = "",
        messages: list[Message] | None = None,
        *,
        key: str = "",
        prefetch: bool = True,
    ) -> bool:
        """Queue a completed turn that is in no record; without a question or an answer it must have messages.

        With `prefetch` the provider also prepares recall for the next turn.
        """
        question, answer = self._clean(plain_text(user)).strip(), self._clean(plain_text(assistant)).strip()
        if not (question and answer) and not messages:
            return False
        session_id = session_id or self._queue.session_id
        queued = self._put(turn_job(session_id, question, answer, messages, key))
        if prefetch:
            self.prefetch_next(question, session_id)
        return queued

    def memory_written(
        self, action: str, target: str, content: str | None, metadata: Mapping[str, Any] | None = None, *, key: str = ""
    ) -> bool:
        """Queue a write to curated memory: add, replace or remove."""
        if action not in _WRITE_ACTIONS:
            return False
        session_id = str((metadata or {}).get("session_id") or "") or self._queue.session_id
        args = {"action": action, "target": target, "content": content or ""}
        return self._put(NewJob("memory_write", session_id, args, {"metadata": dict(metadata or {})}, key))

    def session_ended(
        self, messages: list[Message], session_id: str = "", *, key: str = "", recorded: bool = False
    ) -> bool:
        """Queue the end of a session with messages; it is delivered after everything that happened in the session.

        Messages that are `recorded` are read from the record when it is delivered.
        """
        session_id = session_id or self._queue.session_id
        args = {} if recorded else {"messages": messages}
        return bool(messages) and self._put(NewJob("session_end", session_id, args, {"session_id": session_id}, key))

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
        """Queue a new session id, or a rewind, and drop at once what was recalled for the conversation."""
        if not new_session_id or not self._queue.provider:
            return False
        if self._state.active is not None:
            self._state.active.recall.drop()
        self._queue.session_id = new_session_id
        facts |= {"parent_session_id": parent_session_id, "reset": reset} | ({"rewound": True} if rewound else {})
        return self._put(NewJob("session_switch", new_session_id, {"new_session_id": new_session_id}, facts, key))

    def delegated(
        self, task: str, result: str, *, child_session_id: str = "", session_id: str = "", key: str = "", **facts: Any
    ) -> bool:
        """Queue the result of a delegate that has finished."""
        session_id = session_id or self._queue.session_id
        facts |= {"child_session_id": child_session_id, "session_id": session_id}
        return self._put(NewJob("delegation", session_id, {"task": task, "result": result}, facts, key))

    def prefetch_next(self, question: str, session_id: str = "") -> None:
        """Have the provider prepare recall for the next turn, without waiting."""
        provider = self._state.ready
        if provider is not None and provider.implements("queue_prefetch"):
            provider.recall.warm_up(self._clean(question), session_id or self._queue.session_id)

    def _put(self, job: NewJob) -> bool:
        hook = HOOKS[job.kind]
        # In this order: a provider that becomes active in between must not make the job disappear.
        expected, provider = self._state.expected, self._state.active
        if self._state.closed or not (expected or (provider is not None and provider.implements(hook))):
            return False
        # A transcript is large, so it is not queued for a provider that does not accept it.
        if provider is not None and "messages" in job.facts and not provider.calls.accepts(hook, "messages"):
            job = replace(job, facts={name: value for name, value in job.facts.items() if name != "messages"})
        try:
            self._queue.put(job)
        except (StorageError, RecursionError) as error:
            _log.error("A notification for %s could not be recorded and is lost: %s", self._queue.provider, error)
            self._health.record_failure("outbox", str(error))
            return False
        self._state.wake_delivery()
        return True
