"""The method names of a memory manager that agents and plugins written for Hermes call.

Each method delegates to one of the manager's own. A manager has at most one provider, so "all" is that one.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from memoranda.external.notifications import ProviderNotifier
from memoranda.external.provider import Message
from memoranda.support.tool import JsonObject, Tool


class _Manager(Protocol):
    """The methods of `MemoryManager` that the names delegate to."""

    @property
    def notify(self) -> ProviderNotifier: ...
    def initialize(self, session_id: str, **facts: Any) -> bool: ...
    def shutdown(self) -> bool: ...
    def recall(self, query: str, session_id: str = "") -> str: ...
    def tools_for(self) -> list[Tool]: ...


class HookNames:
    """The base of `MemoryManager`. Like its methods, none of these raises because of a provider."""

    def initialize_all(self: _Manager, session_id: str, **facts: Any) -> bool:
        """Start the provider; `hermes_home` is added when it is missing. False when the provider is not ready yet."""
        return self.initialize(session_id, **facts)

    def shutdown_all(self: _Manager) -> bool:
        """Deliver what can be delivered within the limit, and close."""
        return self.shutdown()

    def prefetch_all(self: _Manager, query: str, *, session_id: str = "") -> str:
        """What the provider remembers about a query, within the deadline of a turn."""
        return self.recall(query, session_id)

    def queue_prefetch_all(self: _Manager, query: str, *, session_id: str = "") -> None:
        """Have the provider prepare recall for the next turn, without waiting."""
        self.notify.prefetch_next(query, session_id)

    def sync_all(
        self: _Manager,
        user_content: object,
        assistant_content: object,
        *,
        session_id: str = "",
        messages: list[Message] | None = None,
    ) -> bool:
        """Queue a completed turn; True when it is durable. The caller follows it with `queue_prefetch_all`."""
        return self.notify.turn_finished(user_content, assistant_content, session_id, messages, prefetch=False)

    def get_all_tool_schemas(self: _Manager) -> list[JsonObject]:
        """The provider's tools, each as `{"name", "description", "parameters"}`."""
        return [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in self.tools_for()
        ]

    def on_session_end(self: _Manager, messages: list[Message], *, session_id: str = "") -> bool:
        """Queue the end of a session; True when it is durable."""
        return self.notify.session_ended(messages, session_id)

    def on_session_switch(
        self: _Manager, new_session_id: str, *, parent_session_id: str = "", reset: bool = False, **facts: Any
    ) -> bool:
        """Queue a new session id; True when it is durable."""
        return self.notify.session_switched(new_session_id, parent_session_id=parent_session_id, reset=reset, **facts)

    def on_memory_write(
        self: _Manager, action: str, target: str, content: str, metadata: Mapping[str, Any] | None = None
    ) -> bool:
        """Queue a write to curated memory; True when it is durable."""
        return self.notify.memory_written(action, target, content, metadata)

    def on_delegation(self: _Manager, task: str, result: str, *, child_session_id: str = "", **facts: Any) -> bool:
        """Queue the result of a delegate; True when it is durable."""
        return self.notify.delegated(task, result, child_session_id=child_session_id, **facts)
