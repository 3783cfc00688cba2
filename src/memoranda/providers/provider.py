"""What an external memory is to Memoranda: one class, four members that it must have, and hooks that it may have.

Names, order of arguments and keywords are those of the design documents. Every hook takes `**facts`, so that it can be
told more one day without breaking a provider that is written today; a provider that leaves them out is given what it
takes and nothing else (see `memoranda.providers.guarded_call`).

A provider may be called from several threads: recall, deliveries and tools each have their own. Deliveries
(`sync_turn`, `on_memory_write`, `on_session_end`, `on_session_switch`, `on_delegation`) come one at a time, in the
order of their session and at least once; after a crash one may come again, with the same `idempotency_key`. Raise to
have a delivery tried again later. A hook may be a coroutine: those of one provider run in one event loop of its own.
"""

# A hook that does nothing by default is meant.
# ruff: noqa: B027

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

Facts = Any
Message = dict[str, Any]


class MemoryProvider(ABC):
    """One external memory. Nothing that it does, or fails to do, reaches the conversation except what it recalls."""

    @property
    @abstractmethod
    def name(self) -> str:
        """A short name for configuration and logs, such as `holographic`."""

    @abstractmethod
    def is_available(self) -> bool:
        """Whether configuration and dependencies are there. No network, and quick."""

    @abstractmethod
    def initialize(self, session_id: str, **facts: Facts) -> None:
        """Get ready, once per start; there is a deadline, and nobody waits for it long.

        Facts: hermes_home (the home, as text), secrets (the values of the variables that the schema names, as far as
        they are known), platform, agent_context, user_id …
        """

    @abstractmethod
    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Tools for the model: `{"name", "description", "parameters"}` each. Asked after `initialize`."""

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **facts: Facts) -> str:
        """Answer one of the tools, as JSON text. Facts: session_id."""
        raise NotImplementedError(f"Provider {self.name!r} has no tool {tool_name!r}.")

    def system_prompt_block(self) -> str:
        """Static text for the system prompt; empty for none."""
        return ""

    def prefetch(self, query: str, *, session_id: str = "", **facts: Facts) -> str:
        """What is remembered about a question, as plain text; empty when nothing is. There is a deadline."""
        return ""

    def queue_prefetch(self, query: str, *, session_id: str = "", **facts: Facts) -> None:
        """Warm up for the next turn, after this one."""

    def sync_turn(
        self,
        user_content: str,
        assistant_content: str,
        *,
        session_id: str = "",
        messages: list[Message] | None = None,
        **facts: Facts,
    ) -> None:
        """Keep a finished turn. `messages` is its transcript with tool calls. Facts: idempotency_key."""

    def on_turn_start(self, turn_number: int, message: str, **facts: Facts) -> None:
        """A turn begins. Facts: session_id, and what the caller knows (model, platform, remaining_tokens …)."""

    def on_session_end(self, messages: list[Message], **facts: Facts) -> None:
        """A session is really over. Facts: session_id, idempotency_key."""

    def on_session_switch(
        self,
        new_session_id: str,
        *,
        parent_session_id: str = "",
        reset: bool = False,
        rewound: bool = False,
        **facts: Facts,
    ) -> None:
        """The conversation goes on under another id, or was taken back. Facts: reason, idempotency_key."""

    def on_pre_compress(self, messages: list[Message], **facts: Facts) -> str:
        """Text for whoever summarises these messages, which are about to leave the context; there is a deadline."""
        return ""

    def on_memory_write(
        self, action: str, target: str, content: str, metadata: dict[str, Any] | None = None, **facts: Facts
    ) -> None:
        """Built-in memory was written: add, replace or remove in memory or user. `metadata` may have old_text."""

    def on_delegation(self, task: str, result: str, *, child_session_id: str = "", **facts: Facts) -> None:
        """A sub-agent of this session is done. Facts: session_id, idempotency_key."""

    def shutdown(self) -> None:
        """Close what is open. May be called more than once, and without `initialize`."""

    def get_config_schema(self) -> list[dict[str, Any]]:
        """Fields that setup asks for: `{"key", "description", "secret", "required", "default", "env_var", …}` each."""
        return []

    def save_config(self, values: dict[str, Any], hermes_home: str, **facts: Facts) -> None:
        """Write what setup asked for, secrets left out, into the provider's own file in the home."""

    def post_setup(self, hermes_home: str, config: dict[str, Any], **facts: Facts) -> None:
        """A setup of the provider's own; a provider that has it is asked nothing by the common one."""

    def get_status_config(self, provider_config: dict[str, Any], **facts: Facts) -> dict[str, Any]:
        """What the status should show of the provider's configuration; never secrets."""
        return dict(provider_config)

    def backup_paths(self) -> list[str]:
        """Absolute paths outside the home that belong into a backup. Works before `initialize`, without network."""
        return []

    def check(self, hermes_home: str, **facts: Facts) -> list[dict[str, Any]]:
        """Report problems with the provider's own files in a home, for `memoranda doctor`.

        An issue is `{"severity", "path", "problem", "remedy", "repairable"}`; severity is error, warning or note. The
        doctor calls this without `initialize`, also on a damaged home. Files only, no network.
        """
        return []

    def repair(self, issue: dict[str, Any], hermes_home: str, **facts: Facts) -> str:
        """Repair an issue that `check` reported as repairable, and return what was done. Keep what is replaced.

        The doctor calls this only when the user asks for repairs. Raise to say why it is not possible.
        """
        return ""

    def limits(self) -> Mapping[str, Any]:
        """Tighter limits than the user's, if any: mode, recall_chars, every_n_turns, recall_seconds.

        Nothing can be widened: fewer characters, a longer cadence, a shorter deadline, one half of `hybrid`.
        """
        return {}


def has_own(provider: object, member: str) -> bool:
    """Whether a provider does something of its own there, rather than what the contract does by default."""
    own = getattr(provider, member, None)
    return own is not None and getattr(own, "__func__", own) is not getattr(MemoryProvider, member, None)


def own_members(provider: object) -> frozenset[str]:
    """The members of the contract that a provider implements itself."""
    members = (member for member in vars(MemoryProvider) if not member.startswith("_"))
    return frozenset(member for member in members if has_own(provider, member))
