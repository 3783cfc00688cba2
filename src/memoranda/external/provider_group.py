"""The providers of one session: one manager each, asked at the same time under one deadline.

Every provider has its own manager, and with it its own queue, delivery thread, health and deadlines. So one that hangs
or is down delays nothing of another: neither recall, deliveries, start nor end.

A tool keeps its own name unless another provider has a tool of that name: then both get the name of their provider in
front. A name that was given once stays for as long as the session runs, even if a provider that is late brings a tool
of the same name: a request to a model begins with its tools, so a changed name would invalidate the cached prefix. The
order of the tools stays for the same reason.
"""

import hashlib
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from memoranda.external.combined_recall import RecalledPart, combine_recall
from memoranda.external.guarded_call import PendingCall
from memoranda.external.manager import MemoryManager
from memoranda.external.provider import Message
from memoranda.external.settings import CORE_TOOLS
from memoranda.external.tool_answer import ToolAnswer, failure
from memoranda.support.tool import Tool

_log = logging.getLogger(__name__)

_MAX_CHARS = 64
_UNUSABLE = re.compile(r"[^A-Za-z0-9_-]")

_Value = TypeVar("_Value")

# A manager keeps its own deadline; this is how much later its result may arrive here.
_GRACE_SECONDS = 0.1


class ToolOwner(NamedTuple):
    """A tool of a provider, under the provider's own name for it."""

    provider: str
    tool: str


class ToolNames:
    """Gives each tool a name; `reserved` are names that no tool may have."""

    def __init__(self, reserved: Collection[str] = ()) -> None:
        self._reserved = frozenset(reserved)
        self._lock = threading.Lock()
        self._owners: dict[str, ToolOwner] = {}
        self._names: dict[ToolOwner, str] = {}

    def assign(self, offered: Collection[ToolOwner]) -> dict[ToolOwner, str]:
        """The names of the offered tools, in the order in which the names were given: new ones are at the end."""
        counts = Counter(owner.tool for owner in offered)
        with self._lock:
            for owner in offered:
                if owner not in self._names:
                    plain = counts[owner.tool] == 1 and owner.tool not in self._owners
                    name = owner.tool if plain else self._unused(prefixed_name(owner))
                    self._names[owner], self._owners[name] = name, owner
            return {owner: name for owner, name in self._names.items() if owner in offered}

    def owner(self, name: str) -> ToolOwner | None:
        """The tool that was given a name."""
        return self._owners.get(name)

    def _unused(self, name: str) -> str:
        number, unused = 1, name
        while unused in self._owners or unused in self._reserved:
            number += 1
            unused = f"{name[: _MAX_CHARS - 4]}_{number}"
        return unused


def prefixed_name(owner: ToolOwner) -> str:
    """The name of a tool with its provider in front, in the characters and the length that every API accepts."""
    name = _UNUSABLE.sub("_", f"{owner.provider}_{owner.tool}")
    if len(name) <= _MAX_CHARS:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: _MAX_CHARS - len(digest) - 1]}_{digest}"


def find_owner(name: str, provider: str, offered: Sequence[ToolOwner]) -> ToolOwner | None:
    """The tool that an earlier session knew under a name: of that provider, or of the first that has it.

    `provider` is empty for a session that was recorded when there was only one.
    """
    candidates = [owner for owner in offered if provider in ("", owner.provider)]
    exact = [owner for owner in candidates if owner.tool == name]
    return next(iter([*exact, *(owner for owner in candidates if prefixed_name(owner) == name)]), None)


class ProviderGroup:
    """Combines the managers of a session, in the order in which their providers are configured."""

    def __init__(self, managers: Sequence[MemoryManager]) -> None:
        self.managers = tuple(managers)
        self._names = ToolNames(CORE_TOOLS)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(manager.name for manager in self.managers)

    def build_system_prompt(self) -> list[RecalledPart]:
        return [RecalledPart(manager.name, manager.build_system_prompt()) for manager in self.managers]

    def before_turn(self, turn_number: int, message: str, session_id: str, max_chars: int) -> list[RecalledPart]:
        """Notify all providers that a turn begins, and return what they recall, within the one deadline of a turn."""
        parts = self._ask_all(
            lambda manager: manager.before_turn(turn_number, message, session_id),
            lambda manager: manager.settings.recall_seconds,
        )
        return combine_recall(parts, max_chars)

    def recall_reason(self) -> str:
        """Why the latest recall of the providers gave nothing, in one line; empty if all of them gave something."""
        reasons = [(manager.name, manager.recall_reason) for manager in self.managers]
        return "; ".join(f"{name}: {reason}" for name, reason in reasons if reason)

    def recall(self, query: str, session_id: str, max_chars: int, provider: str = "") -> list[RecalledPart]:
        """What the providers recall about a query, within one deadline; `provider` limits it to one of them."""
        parts = self._ask_all(
            lambda manager: manager.prefetch_all(query, session_id) if provider in ("", manager.name) else "",
            lambda manager: manager.settings.recall_seconds,
        )
        return combine_recall(parts, max_chars)

    def on_pre_compress(self, messages: list[Message]) -> list[RecalledPart]:
        """What each provider wants a summary of these messages to contain."""
        return self._ask_all(
            lambda manager: manager.on_pre_compress([dict(message) for message in messages]),
            lambda manager: manager.settings.call_seconds,
        )

    def shutdown(self) -> None:
        """Close all providers at the same time; each has its own limit."""
        in_parallel(
            [manager.shutdown_all for manager in self.managers],
            max((manager.settings.shutdown_seconds for manager in self.managers), default=0.0) * 1.5,
        )

    # Tools

    def tools_for(self, platform_toolsets: Collection[str] | None = None) -> list[Tool]:
        """The tools of all providers; those of the same name get the names of their providers in front."""
        offered = self._offered(platform_toolsets)
        return [replace(offered[owner], name=name) for owner, name in self._names.assign(offered).items()]

    def find_tool(self, name: str, provider: str, platform_toolsets: Collection[str] | None = None) -> Tool | None:
        """The tool that an earlier session knew under a name, callable under that name."""
        offered = self._offered(platform_toolsets)
        owner = find_owner(name, provider, list(offered))
        return None if owner is None else replace(offered[owner], name=name)

    def provider_of(self, name: str) -> str:
        """The provider whose tool was given a name; empty for an unknown one."""
        owner = self._names.owner(name)
        return owner.provider if owner else ""

    def answer_tool(self, name: str, args: Mapping[str, Any], provider: str = "") -> ToolAnswer:
        """Call a tool by the name that it was given, or by its own name; `provider` limits it to one provider."""
        offered = list(self._offered(None))
        self._names.assign(offered)
        owner = (None if provider else self._names.owner(name)) or find_owner(name, provider, offered)
        manager = next((each for each in self.managers if owner is not None and each.name == owner.provider), None)
        if owner is None or manager is None:
            return ToolAnswer(failure(f"No memory provider has a tool {name!r}."))
        return manager.answer_tool(owner.tool, args)

    def _offered(self, platform_toolsets: Collection[str] | None) -> dict[ToolOwner, Tool]:
        return {
            ToolOwner(manager.name, tool.name): tool
            for manager in self.managers
            for tool in manager.tools_for(platform_toolsets)
        }

    def _ask_all(
        self, ask: Callable[[MemoryManager], str], limit: Callable[[MemoryManager], float]
    ) -> list[RecalledPart]:
        seconds = max((limit(manager) for manager in self.managers), default=0.0) + _GRACE_SECONDS
        answers = in_parallel([partial(ask, manager) for manager in self.managers], seconds)
        return [RecalledPart(name, answer or "") for name, answer in zip(self.names, answers, strict=True)]


def in_parallel(calls: Sequence[Callable[[], _Value]], seconds: float) -> list[_Value | None]:
    """The values of calls that run at the same time; None for one that fails or takes longer than `seconds`.

    A single call runs in this thread, without a limit of its own.
    """
    if len(calls) == 1:
        return [calls[0]()]
    deadline = time.monotonic() + seconds
    running = [PendingCall(call, "memoranda-provider-group") for call in calls]
    results = [pending.wait(deadline - time.monotonic()) for pending in running]
    for result in results:
        if result is not None and not result.ok:
            _log.warning("External memory failed: %s", result.error)
    return [result.value if result is not None and result.ok else None for result in results]
