"""The contract of an external memory: one class with four required members, and hooks.

Every hook accepts `**facts`, so that later versions can pass more without breaking a provider of today; a provider that
leaves them out gets what its signature accepts and nothing else (see `memoranda.external.guarded_call`).

A provider is called from several threads: recall, deliveries and tools each have their own. Deliveries (`sync_turn`,
`on_memory_write`, `on_session_end`, `on_session_switch`, `on_delegation`) arrive one at a time, in the order of their
session and at least once; after a crash one may be repeated, with the same `idempotency_key`. Raise to have a delivery
retried: a PermanentProviderError parks it, a TemporaryProviderError may say when. A hook may be a coroutine; those of
one provider run in one event loop.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

# Hooks that do nothing by default are intended.
# ruff: noqa: B027


Facts = Any
Message = dict[str, Any]
SERVER_URL = "server_url"
"""The fact with the URL of the server that has the record; only bundled providers get it, because of its password."""


class MemoryProvider(ABC):
    """One external memory. Only recalled text and answers of its tools reach the conversation."""

    @property
    @abstractmethod
    def name(self) -> str:
        """A short name for configuration and logs, such as `holographic`."""

    @abstractmethod
    def is_available(self) -> bool:
        """Whether configuration and dependencies are complete. Fast, without network."""

    def explain_unavailable(self) -> str:
        """What is missing and how to get it, as a sentence, after `is_available` returned False; empty if unknown."""
        return ""

    def receive_secrets(self, values: Mapping[str, str]) -> None:
        """Get the known values of the variables that the schema names, before `is_available` is called."""

    @abstractmethod
    def initialize(self, session_id: str, **facts: Facts) -> None:
        """Open what the provider needs, once per session, under a deadline.

        Facts: hermes_home (the home, as text), secrets (the known values of the variables that the schema names),
        embedder (a `TextEmbedder`, if the home has a local sentence encoder), platform, agent_context, user_id …
        """

    @abstractmethod
    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Tools for the model: a list of `{"name", "description", "parameters"}`. Called after `initialize`."""

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **facts: Facts) -> str:
        """Run one of the tools and return JSON text. Facts: session_id."""
        raise NotImplementedError(f"Provider {self.name!r} has no tool {tool_name!r}.")

    def system_prompt_block(self) -> str:
        """Static text for the system prompt; empty for none."""
        return ""

    def prefetch(self, query: str, *, session_id: str = "", **facts: Facts) -> str:
        """Return what is remembered about a query, as plain text; empty for nothing. Under a deadline.

        Facts: seconds (how long the turn waits for the answer), max_chars (how much of it the turn gets).
        """
        return ""

    def queue_prefetch(self, query: str, *, session_id: str = "", **facts: Facts) -> None:
        """Prepare recall for the next turn, after this one."""

    def sync_turn(
        self,
        user_content: str,
        assistant_content: str,
        *,
        session_id: str = "",
        messages: list[Message] | None = None,
        **facts: Facts,
    ) -> None:
        """Store a completed turn. `messages` is its transcript with tool calls.

        Facts, as for every delivery: idempotency_key; attempt (1 at first, more if an earlier delivery may have
        arrived, so a service can be asked for the key before it is sent again); timestamp (when it was recorded);
        agent_context (of the session that it belongs to, which need not be the session of `initialize`).
        """

    def on_turn_start(self, turn_number: int, message: str, **facts: Facts) -> None:
        """A turn begins. Facts: session_id, and more from the caller (model, platform, remaining_tokens …)."""

    def on_session_end(self, messages: list[Message], **facts: Facts) -> None:
        """A session has ended. Facts: session_id, idempotency_key."""

    def on_session_switch(
        self,
        new_session_id: str,
        *,
        parent_session_id: str = "",
        reset: bool = False,
        rewound: bool = False,
        **facts: Facts,
    ) -> None:
        """The conversation continues under another id, or was rewound. Facts: reason, idempotency_key."""

    def on_pre_compress(self, messages: list[Message], **facts: Facts) -> str:
        """Return text for the summary of messages that are about to leave the context. Under a deadline."""
        return ""

    def on_memory_write(
        self, action: str, target: str, content: str, metadata: dict[str, Any] | None = None, **facts: Facts
    ) -> None:
        """Curated memory was written: add, replace or remove in memory or user. `metadata` may have old_text."""

    def on_delegation(self, task: str, result: str, *, child_session_id: str = "", **facts: Facts) -> None:
        """A delegate of this session has finished. Facts: session_id, idempotency_key."""

    def shutdown(self) -> None:
        """Close what is open. May be called more than once, and without `initialize`."""

    def get_config_schema(self) -> list[dict[str, Any]]:
        """The fields that setup asks for: `{"key", "description", "secret", "required", "default", "env_var", …}`."""
        return []

    def save_config(self, values: dict[str, Any], hermes_home: str, **facts: Facts) -> None:
        """Write the answers of setup, without secrets, to the provider's own file in the home."""

    def post_setup(self, hermes_home: str, config: dict[str, Any], **facts: Facts) -> None:
        """The provider's own setup, which replaces the questions of the common one."""

    def get_status_config(self, provider_config: dict[str, Any], **facts: Facts) -> dict[str, Any]:
        """The part of the configuration that the status shows; never secrets."""
        return dict(provider_config)

    def backup_paths(self) -> list[str]:
        """Absolute paths outside the home that belong in a backup. Called before `initialize`; no network."""
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

    def test_connection(self, **facts: Facts) -> str:
        """Make one cheap call to the service and return a sentence about what answered; empty if there is none.

        `memoranda provider setup` and `provider test` call this after `initialize`. Raise to say what is wrong and what
        a person can do about it.
        """
        return ""

    def forget(self, session_ids: list[str] | None = None, **facts: Facts) -> Mapping[str, Any]:
        """Delete what the service received from this home for the user of `initialize`; None: of all sessions.

        Return `{"deleted": [...], "remaining": [...]}`, lists of descriptions; `remaining` is what the service does not
        allow to be deleted. Can be repeated after a failure.
        """
        raise NotImplementedError(f"Provider {self.name!r} cannot delete what it has received.")

    def forget_text(self, matches: Callable[[str], bool], **facts: Facts) -> Mapping[str, Any]:
        """Delete every text of the user of `initialize` for which `matches` is true; answer as `forget` does.

        Implement it where texts can be listed. Otherwise what was received of the sessions with the text is deleted.
        """
        raise NotImplementedError(f"Provider {self.name!r} cannot search what it has received.")

    def limits(self) -> Mapping[str, Any]:
        """Limits that are tighter than the user's: mode, recall_chars, every_n_turns, recall_seconds.

        A limit can only be narrowed: fewer characters, a longer cadence, a shorter deadline, one half of `hybrid`.
        With `turns_per_delivery`, `sync_turn` gets up to so many turns of a session in one call, the rest when it ends:
        the questions and the answers are joined, and `messages` has all of them in order.
        """
        return {}


def server_facts(provider: object, server_url: str) -> dict[str, str]:
    """The facts about the server for `initialize`, if the provider is one of ours and the record is on a server."""
    is_bundled = type(provider).__module__.startswith(__name__.rpartition(".")[0] + ".")
    return {SERVER_URL: server_url} if server_url and is_bundled else {}


def has_own(provider: object, member: str) -> bool:
    """Whether a provider implements a member itself instead of inheriting the contract's default."""
    own = getattr(provider, member, None)
    return own is not None and getattr(own, "__func__", own) is not getattr(MemoryProvider, member, None)


def own_members(provider: object) -> frozenset[str]:
    """The members of the contract that a provider implements itself."""
    members = (member for member in vars(MemoryProvider) if not member.startswith("_"))
    return frozenset(member for member in members if has_own(provider, member))


class TextEmbedder(Protocol):
    """Turns texts into vectors on this machine. Several threads may call it."""

    @property
    def name(self) -> str:
        """Identifies the model; vectors of different names cannot be compared. Raises MemorandaError."""

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """One vector of length 1 per text, as little-endian floats of 32 bits. Raises MemorandaError."""
