"""The options with which a session is opened."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from memoranda.errors import SessionError
from memoranda.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from memoranda.agent.compression.trigger import ContextEngine


class GatewayFacts(TypedDict, total=False):
    """What a gateway knows about a conversation; the provider receives it in `initialize`.

    `platform` also selects the toolsets; `user_id` is another name for the session's `user`.
    """

    platform: str
    agent_context: str
    agent_identity: str
    agent_workspace: str
    parent_session_id: str
    user_id: str
    user_name: str
    chat_id: str
    chat_name: str
    chat_type: str
    thread_id: str
    gateway_session_key: str
    session_title: str


GATEWAY_FACTS = tuple(GatewayFacts.__annotations__)
# The field of a session's row that stores facts.
GATEWAY = "gateway"
# The facts that describe the conversation and have no column; the others describe the process that serves it.
_STORED_FACTS = ("platform", "user_name", "chat_id", "chat_name", "chat_type", "thread_id", "gateway_session_key")


# No person talks in these sessions, so providers store nothing of them, unless the caller passes an agent_context.
_READING_SOURCES = frozenset({"cron", "subagent"})


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The options of `Memory.session`; `parent` is the session that this one works for or branches off."""

    source: str
    user: str | None = None
    model: str = ""
    directory: Path | None = None
    instructions: str = ""
    parent: str | None = None
    relation: str | None = None
    platform: str = ""
    """The platform whose toolsets the session has, when it is not its source."""
    external: bool = True
    """Whether the session uses the external memory, if one is configured."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """The gateway facts that the caller passed; empty ones are left out."""
    context_engine: "ContextEngine | None" = None

    def facts_to_store(self, row: Mapping[str, Any] | None) -> dict[str, str]:
        """The facts of the conversation, where its row has others: for a process that opens it without them."""
        passed = {name: self.facts[name] for name in _STORED_FACTS if name in self.facts}
        stored = _stored_facts(row)
        merged = {**stored, **passed}
        return {} if merged == stored else merged

    def provider_facts(self, row: Mapping[str, Any] | None, profile: str) -> dict[str, Any]:
        """The facts with which the provider is started; `row` is that of a resumed session, with what it stored."""
        stored = _stored_facts(row)
        known = {
            **stored,
            "parent_session_id": self.parent or (row or {}).get("parent_session_id"),
            "session_title": (row or {}).get("title"),
            **{name: value for name, value in self.facts.items() if name not in ("platform", "user_id")},
        }
        return {
            "agent_identity": profile,
            "agent_context": self.source if self.source in _READING_SOURCES else "primary",
            **{name: value for name, value in known.items() if value},
            "platform": self.platform or stored.get("platform") or self.source,
            "user_id": self.user or "",
        }


def _stored_facts(row: Mapping[str, Any] | None) -> dict[str, str]:
    stored = (row or {}).get(GATEWAY)
    return clean_facts(stored) if isinstance(stored, Mapping) else {}


def choose_user(user: str | None, facts: GatewayFacts) -> str | None:
    """The user of a session by either of its names; raises SessionError when they name two users."""
    other = facts.get("user_id")
    if user is not None and other is not None and user != other:
        raise SessionError(f"user and user_id name two users, {user!r} and {other!r}. Pass one of them.")
    return other if user is None else user


def clean_facts(facts: Mapping[str, Any]) -> dict[str, str]:
    """The facts as text, without those that are missing; chat platforms often have numbers as ids."""
    return {name: str(value) for name, value in facts.items() if value is not None and value != ""}
