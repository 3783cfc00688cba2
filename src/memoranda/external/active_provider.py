"""A provider that a manager has accepted, with the parts that call it: recall, tools and startup."""

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

from memoranda.external.guarded_call import GuardedProvider, PendingCall
from memoranda.external.health import HealthTracker
from memoranda.external.provider import MemoryProvider, own_members
from memoranda.external.recall import Recall
from memoranda.external.settings import ProviderSettings
from memoranda.external.startup import ProviderStartup
from memoranda.external.tools import ProviderTools
from memoranda.safety.redaction import Redactor

_log = logging.getLogger(__name__)


class ActiveProvider:
    """One provider behind guarded calls. It can be called once `startup.ready` is true."""

    def __init__(
        self,
        provider: MemoryProvider,
        calls: GuardedProvider,
        implemented: frozenset[str],
        settings: ProviderSettings,
        health: HealthTracker,
        tools: ProviderTools,
    ) -> None:
        self.provider = provider
        self.calls = calls
        self.tools = tools
        self.recall = Recall(calls, settings, health)
        self.startup = ProviderStartup(calls, settings, self._read_static_parts)
        self.prompt_block = ""
        self._implemented = implemented
        self._settings = settings

    @property
    def name(self) -> str:
        return self.calls.name

    @property
    def ready(self) -> bool:
        return self.startup.ready

    def implements(self, hook: str) -> bool:
        """Whether the provider has its own version of a hook; the contract's default is not worth a call."""
        return hook in self._implemented

    def ask_text(self, hook: str, args: Mapping[str, Any], facts: Mapping[str, Any], max_chars: int) -> str:
        """Call a hook that returns text; empty when it fails or is late."""
        result = self.calls.call(hook, args, facts, within=self._settings.call_seconds)
        return self.calls.as_text(hook, result, max_chars) if result.ok else ""

    def begin_turn(self, turn_number: int, message: str, facts: Mapping[str, Any]) -> None:
        """Notify the provider that a turn begins, within half of the turn's deadline; the other half is for recall."""
        within = min(self._settings.call_seconds, self.recall.settings.recall_seconds / 2)
        self.calls.call("on_turn_start", {"turn_number": turn_number, "message": message}, facts, within=within)

    def _read_static_parts(self) -> None:
        """Read limits, tools and prompt block, once, when the provider has started."""
        if self.implements("limits"):
            result = self.calls.call("limits", within=self._settings.call_seconds)
            if result.ok and isinstance(result.value, Mapping):
                self.recall.settings = self.tools.settings = self._settings.narrowed(result.value)
        self.tools.refresh()
        if self.implements("system_prompt_block"):
            self.prompt_block = self.ask_text("system_prompt_block", {}, {}, self._settings.prompt_chars)


def accept_provider(
    provider: MemoryProvider,
    name: str,
    settings: ProviderSettings,
    health: HealthTracker,
    *,
    reserved_tools: Collection[str],
    clean: Callable[[str], str],
    redactor: Redactor | None,
) -> ActiveProvider | None:
    """Make a provider active; None, with a warning in the log, when its name is unusable or it is not available.

    `name` replaces the provider's own name where it is configured under another one.
    """
    description = PendingCall(lambda: (provider.name, own_members(provider)), "memoranda-provider-name")
    result = description.wait(settings.call_seconds)
    own_name, implemented = result.value if result and result.ok else (None, frozenset())
    if not isinstance(own_name, str) or not own_name.strip() or own_name == "builtin":
        _log.warning("A memory provider cannot be called %r; %s is refused.", own_name, type(provider).__name__)
        return None
    calls = GuardedProvider(provider, name or own_name, health, redactor)
    available = calls.call("is_available", within=settings.call_seconds)
    if not available.ok or available.value is not True:
        reason = available.error
        if not reason and "explain_unavailable" in implemented:
            reason = str(calls.call("explain_unavailable", within=settings.call_seconds).value or "")
        _log.warning("Memory provider %s is not available: %s", calls.name, reason or "is_available() returned False.")
        return None
    tools = ProviderTools(calls, settings, reserved_tools, clean)
    return ActiveProvider(provider, calls, implemented, settings, health, tools)
