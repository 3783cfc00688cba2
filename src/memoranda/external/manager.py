"""The manager: the only connection between a conversation and one external memory.

Curated memory always exists and is not a provider. Of what the provider does, only recalled text and answers of its
tools reach the conversation, within a deadline and a size limit. Notifications (turns, memory writes, session
boundaries) become rows of the record, and jobs in the outbox. Several providers have one manager each
(`provider_group`). The methods have the names that the design gives them.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from memoranda.errors import StorageError
from memoranda.external.active_provider import ActiveProvider, accept_provider
from memoranda.external.delivery import HOOKS, Delivery, ProviderQueue, turn_job
from memoranda.external.guarded_call import CallResult, PendingCall
from memoranda.external.health import HealthTracker, ProviderHealth
from memoranda.external.message_text import plain_text, replace_surrogates
from memoranda.external.outbox.jobs import Backlog, NewJob
from memoranda.external.outbox.outbox import Outbox
from memoranda.external.outbox.recorded_turns import PRIMARY
from memoranda.external.provider import MemoryProvider, Message
from memoranda.external.settings import Mode, ProviderSettings
from memoranda.external.tool_answer import ToolAnswer, failure
from memoranda.safety.redaction import Redactor
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import JsonObject, Tool

_log = logging.getLogger(__name__)

# Seconds for which the outbox may be locked; the delivery thread tries again.
LOCK_TIMEOUT = 0.5
_WRITE_ACTIONS = ("add", "replace", "remove")

FindProvider = Callable[[], tuple[MemoryProvider, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """The state of external memory; `provider` is empty when there is only curated memory."""

    provider: str
    ready: bool
    mode: Mode
    tools: tuple[str, ...]
    health: ProviderHealth
    backlog: Backlog


class MemoryManager:
    """External memory for one conversation at a time. No method raises because of a provider, and none waits long.

    Methods that queue a notification return True when it is durable, and never queue the same `key` twice. A hook that
    the provider does not implement is not queued.

    `name` is the configured name of the provider, known before it is loaded. `clean` removes recalled text from what is
    captured; `redactor` knows the credentials that no error may show. `outbox` is given where it is on a server, or
    the record is open already.
    """

    def __init__(
        self,
        home: Path,
        settings: ProviderSettings | None = None,
        *,
        outbox: Outbox | None = None,
        name: str = "",
        clean: Callable[[str], str] = lambda text: text,
        redactor: Redactor | None = None,
    ) -> None:
        self.home = home
        self._name = name
        self._redactor = redactor
        self.settings = settings or ProviderSettings()
        self._clean: Callable[[str], str] = lambda text: replace_surrogates(clean(text))
        self._health = HealthTracker()
        self._outbox = outbox or Outbox(home, self.settings, wait=LOCK_TIMEOUT)
        self._queue = ProviderQueue(self._outbox, self._clean)
        self._lock = threading.Lock()
        self._active: ActiveProvider | None = None
        self._attaching: PendingCall | None = None
        self._delivery: Delivery | None = None
        self._closed = False

    # The provider

    @property
    def name(self) -> str:
        """The name of the provider; empty before one is added, unless it was configured."""
        return self._name

    @property
    def provider(self) -> MemoryProvider | None:
        return None if self._active is None else self._active.provider

    def add_provider(self, provider: MemoryProvider) -> bool:
        """Accept a provider. False, with a warning, when there is one already or it cannot be used as it is."""
        if self._active is not None:
            kind = type(provider).__name__
            _log.warning("A manager has one memory provider: %s stays, %s is refused.", self._name, kind)
            return False
        active = accept_provider(
            provider,
            self._name,
            self.settings,
            self._health,
            clean=self._clean,
            redactor=self._redactor,
        )
        if active is None:
            return False
        self._name = active.name
        self._active = active
        return True

    def begin(
        self,
        find: FindProvider,
        session_id: str,
        *,
        started: Callable[[CallResult], None] = lambda result: None,
        **facts: Any,
    ) -> PendingCall:
        """Find a provider, add it and start it, all in the background; notifications are queued for it meanwhile.

        `find` returns the provider and more facts to start it with. `started` is called when the provider is
        ready, or will not be.
        """
        self._address_queue(session_id, facts)
        self._attaching = PendingCall(
            partial(self._find_and_start, find, session_id, facts),
            f"memoranda-{self._name}-start",
            lambda result: self._report_start(result, started),
            redactor=self._redactor,
        )
        return self._attaching

    def was_late(self, late: bool) -> None:
        """Record whether the provider was too late for the start of the session."""
        self._health.record_start(late=late)

    def initialize_all(self, session_id: str, **facts: Any) -> bool:
        """Start the provider, and deliver what it missed. False when it is not ready yet; the start is retried."""
        active = self._active
        if active is None or self._closed:
            return False
        if self._delivery is not None:
            return active.ready
        self._address_queue(session_id, facts)
        facts.setdefault("hermes_home", str(self.home))
        ready = active.startup.begin(session_id, facts)
        with self._lock:
            if self._closed:
                # The session ended while the provider started; its shutdown came before there was anything to close.
                if active.implements("shutdown"):
                    active.calls.call_in_background("shutdown")
                return False
            self._delivery = Delivery(self._queue, active, self.settings)
            self._delivery.wake()
        return ready

    def shutdown_all(self) -> bool:
        """Deliver what can be delivered within the limit and close; the rest is delivered at the next start.

        True when nothing is left undelivered.
        """
        with self._lock:
            if self._closed:
                return True
            self._closed = True
        limit = self.settings.shutdown_seconds
        deadline = time.monotonic() + limit
        # In threads, because even the disk may block.
        delivered = PendingCall(lambda: self._deliver_remaining(limit), "memoranda-shutdown").wait(limit * 0.8)
        closed = True
        active = self._active
        if active is not None:
            if active.implements("shutdown"):
                closed = active.calls.call("shutdown", within=max(0.05, deadline - time.monotonic())).ok
            active.calls.close()
        PendingCall(self._outbox.close, "memoranda-shutdown").wait(max(0.05, deadline - time.monotonic()))
        return delivered is not None and delivered.value is True and closed

    # A turn

    def build_system_prompt(self) -> str:
        """The provider's static text for the system prompt, as it was when the provider was started."""
        active = self._ready
        return "" if active is None else active.prompt_block

    def on_turn_start(self, turn_number: int, message: str, session_id: str = "", **facts: Any) -> None:
        """Notify the provider that a turn begins."""
        active = self._ready
        if active is not None and active.implements("on_turn_start"):
            facts = {"session_id": session_id or self._queue.session_id, **facts}
            active.begin_turn(turn_number, self._clean(message), facts)

    def prefetch_all(self, query: str, session_id: str = "", *, within: float | None = None) -> str:
        """What the provider remembers about a query; empty when it remembers nothing or misses the deadline."""
        active = self._ready
        if active is None:
            return ""
        return active.recall.before_turn(self._clean(query), session_id or self._queue.session_id, within)

    @property
    def recall_reason(self) -> str:
        """Why the latest recall gave nothing; empty if it gave something."""
        active = self._active
        return "it has not started yet" if active is None else active.recall.reason

    def before_turn(self, turn_number: int, message: str, session_id: str = "", **facts: Any) -> str:
        """Call `on_turn_start` and `prefetch_all` within the one deadline that a turn has."""
        active = self._active
        if active is None:
            return ""
        deadline = time.monotonic() + active.recall.settings.recall_seconds
        self.on_turn_start(turn_number, message, session_id, **facts)
        return self.prefetch_all(message, session_id, within=deadline - time.monotonic())

    def on_pre_compress(self, messages: list[Message], *, session_id: str = "") -> str:
        """What the provider wants a summary of these messages to contain."""
        active = self._ready
        if active is None or not active.implements("on_pre_compress"):
            return ""
        facts = {"session_id": session_id or self._queue.session_id}
        return active.ask_text("on_pre_compress", {"messages": messages}, facts, self.settings.recall_chars)

    # Notifications

    def turn_recorded(self, question: str, session_id: str = "") -> None:
        """Note that a turn was completed and is in the record, where the delivery thread finds it."""
        if self._closed:
            return
        self._queue.turn_recorded()
        self._wake_delivery()
        self.queue_prefetch_all(question, session_id)

    def sync_all(
        self,
        user_content: object,
        assistant_content: object,
        session_id: str = "",
        messages: list[Message] | None = None,
        *,
        key: str = "",
    ) -> bool:
        """Queue a completed turn that is in no record; without a question or an answer it must have messages.

        The caller follows it with `queue_prefetch_all`.
        """
        question = self._clean(plain_text(user_content)).strip()
        answer = self._clean(plain_text(assistant_content)).strip()
        if not (question and answer) and not messages:
            return False
        return self._put(turn_job(session_id or self._queue.session_id, question, answer, messages, key))

    def on_memory_write(
        self, action: str, target: str, content: str | None, metadata: Mapping[str, Any] | None = None, *, key: str = ""
    ) -> bool:
        """Queue a write to curated memory: add, replace or remove."""
        if action not in _WRITE_ACTIONS:
            return False
        session_id = str((metadata or {}).get("session_id") or "") or self._queue.session_id
        args = {"action": action, "target": target, "content": content or ""}
        return self._put(NewJob("memory_write", session_id, args, {"metadata": dict(metadata or {})}, key))

    def on_session_end(
        self, messages: list[Message], session_id: str = "", *, key: str = "", recorded: bool = False
    ) -> bool:
        """Queue the end of a session with messages; it is delivered after everything that happened in the session.

        Messages that are `recorded` are read from the record when it is delivered.
        """
        session_id = session_id or self._queue.session_id
        args = {} if recorded else {"messages": messages}
        return bool(messages) and self._put(NewJob("session_end", session_id, args, {"session_id": session_id}, key))

    def on_session_switch(
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
        if self._active is not None:
            self._active.recall.drop()
        self._queue.session_id = new_session_id
        facts |= {"parent_session_id": parent_session_id, "reset": reset} | ({"rewound": True} if rewound else {})
        return self._put(NewJob("session_switch", new_session_id, {"new_session_id": new_session_id}, facts, key))

    def on_delegation(
        self, task: str, result: str, *, child_session_id: str = "", session_id: str = "", key: str = "", **facts: Any
    ) -> bool:
        """Queue the result of a delegate that has finished."""
        session_id = session_id or self._queue.session_id
        facts |= {"child_session_id": child_session_id, "session_id": session_id}
        return self._put(NewJob("delegation", session_id, {"task": task, "result": result}, facts, key))

    def queue_prefetch_all(self, query: str, session_id: str = "") -> None:
        """Have the provider prepare recall for the next turn, without waiting."""
        active = self._ready
        if active is not None and active.implements("queue_prefetch"):
            active.recall.warm_up(self._clean(query), session_id or self._queue.session_id)

    # Tools

    def tools_for(self, platform_toolsets: Collection[str] | None = None) -> list[Tool]:
        """The provider's tools, where the platform has the memory toolset, as the provider last reported them."""
        active = self._active
        has_toolset = platform_toolsets is None or "memory" in platform_toolsets
        if active is None or not active.ready or not has_toolset:
            return []
        return active.tools.for_model(lambda name, args: self.answer_tool(name, args).json)

    def get_all_tool_schemas(self) -> list[JsonObject]:
        """The provider's tools, each as `{"name", "description", "parameters"}`."""
        return [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in self.tools_for()
        ]

    def answer_tool(self, name: str, args: Mapping[str, Any]) -> ToolAnswer:
        """Call a tool of the provider; its `json` is always an object with a `success` key.

        Its texts are screened as recalled text is, because a model may see them; the answer also has the passages that
        were withheld, for a person.
        """
        active = self._ready
        if active is None:
            return ToolAnswer(failure(f"No memory provider has a tool {name!r}."))
        return active.tools.call(name, args, self._queue.session_id)

    def handle_tool_call(self, tool_name: str, args: Mapping[str, Any], **facts: Any) -> str:
        """Call a tool of the provider, and return its answer as JSON text.

        Callers may pass facts; the provider gets the session of this manager and no others.
        """
        return json.dumps(self.answer_tool(tool_name, args).json, ensure_ascii=False)

    # Status

    def drain(self, timeout: float, *, only_due: bool = False) -> bool:
        """Wait until everything is delivered, at most `timeout` seconds; `only_due` does not wait for retries."""
        try:
            delivery = self._delivery
            if delivery is None:
                return not self._name or self._queue.flushed
            return delivery.drain(timeout, only_due=only_due)
        except StorageError as error:
            self._report_outbox_failure(error)
            return False

    def backlog(self) -> Backlog:
        """Counts of the jobs that wait for the provider; of all providers when none is configured."""
        try:
            return self._outbox.backlog(self._name or None)
        except StorageError as error:
            return Backlog(last_error=str(error))

    def retry_failed(self) -> int:
        """Retry parked and failed deliveries now; returns their number."""
        if self._active is None:
            return 0
        count = self._outbox.retry_failed(self._name)
        self._wake_delivery()
        return count

    def status(self) -> ProviderStatus:
        """Everything that is known about the provider, without calling it."""
        active = self._active
        if active is None:
            return ProviderStatus("", False, self.settings.mode, (), self._health.snapshot(), self.backlog())
        tools = active.tools.names if active.ready else ()
        mode = active.recall.settings.mode
        return ProviderStatus(active.name, active.ready, mode, tools, self._health.snapshot(), self.backlog())

    # Private parts

    @property
    def _ready(self) -> ActiveProvider | None:
        """The provider that can be called now."""
        return self._active if self._active is not None and self._active.ready and not self._closed else None

    def _wake_delivery(self) -> None:
        if self._delivery is not None:
            self._delivery.wake()

    def _put(self, job: NewJob) -> bool:
        hook = HOOKS[job.kind]
        # In this order: a provider that becomes active in between must not make the job disappear.
        expected = self._active is None and self._attaching is not None and not self._attaching.done
        provider = self._active
        if self._closed or not (expected or (provider is not None and provider.implements(hook))):
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
        self._wake_delivery()
        return True

    def _deliver_remaining(self, limit: float) -> bool:
        """Deliver for half of the limit, finish the last delivery in another quarter; True when nothing is left."""
        started_at = time.monotonic()
        if self._attaching is not None and not self._health.snapshot().late_start:
            self._attaching.wait(limit / 2)
        active, delivery = self._active, self._delivery
        if active is None or delivery is None:
            self._queue.flush()
            self._outbox.release()
            return not self._name or not self.backlog()
        delivery.closing = True
        try:
            # A provider that is not ready would not receive anything within the limit.
            remaining = limit / 2 - (time.monotonic() - started_at)
            delivery.drain(max(remaining, 0.0) if active.ready else 0.0, only_due=True)
            self._queue.flush()
        finally:
            finished = delivery.stop(limit * 0.75 - (time.monotonic() - started_at))
        return finished and delivery.drain(0.0)

    def _address_queue(self, session_id: str, facts: Mapping[str, Any]) -> None:
        """Set the provider, scope and session of queued jobs, even before the provider is loaded."""
        self._queue.session_id = session_id
        self._queue.provider, self._queue.scope = self._name, str(facts.get("user_id") or "")
        self._queue.context = str(facts.get("agent_context") or PRIMARY)

    def _find_and_start(self, find: FindProvider, session_id: str, facts: Mapping[str, Any]) -> bool:
        try:
            self._queue.flush()
        except StorageError as error:
            self._report_outbox_failure(error)
        provider, more = find()
        return self.add_provider(provider) and self.initialize_all(session_id, **{**facts, **more})

    def _report_start(self, result: CallResult, started: Callable[[CallResult], None]) -> None:
        started(result)
        if not result.ok:
            _log.warning("The session continues without the memory provider %s: %s", self._name, result.error)
            self._health.record_failure("load", result.error)

    def _report_outbox_failure(self, error: Exception) -> None:
        _log.error("External memory failed in outbox: %s", error)
        self._health.record_failure("outbox", str(error))
