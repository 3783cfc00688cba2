"""A provider that is started without a session: for a test call of a command, and for forgetting."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from memoranda.errors import ProviderError
from memoranda.external.guarded_call import GuardedProvider
from memoranda.external.health import HealthTracker, write_status
from memoranda.external.loading.discovery import find_by_name
from memoranda.external.loading.loader import inspect_provider
from memoranda.external.loading.setup import read_settings
from memoranda.external.provider import MemoryProvider, has_own, server_facts
from memoranda.home import config
from memoranda.safety.redaction import Redactor
from memoranda.support.home import Home

_SESSION = "memoranda-provider-command"
TEST_SECONDS = 60.0


class StartedProvider:
    """Calls hooks of a started provider under deadlines; whatever goes wrong becomes a ProviderError.

    `health` has their failures.
    """

    def __init__(self, home: Home, name: str, provider: MemoryProvider) -> None:
        self.health = HealthTracker()
        self._calls = GuardedProvider(provider, name, self.health, Redactor(config.known_secrets(home)))

    def call(self, hook: str, args: Mapping[str, Any], seconds: float, **facts: Any) -> Any:
        # Not `call`, which also logs a failure: the command reports it.
        pending = self._calls.start(hook, args, facts)
        result = None if pending is None else pending.wait(seconds)
        error = f"No answer within {seconds:g} s." if result is None else result.error
        if result is None or error:
            self.health.record_failure(hook, error)
            raise ProviderError(error)
        return result.value

    def close(self) -> None:
        self._calls.close()


@contextmanager
def start_provider(
    home: Home, name: str, provider: MemoryProvider, user: str = "", server_url: str = ""
) -> Iterator[StartedProvider]:
    """Start a loaded provider for a user of the home, and shut it down at the end; raises ProviderError.

    `server_url` is the store of a fleet that has the user.
    """
    settings = config.load(home).external
    started = StartedProvider(home, name, provider)
    facts = {
        "hermes_home": str(home.root),
        "platform": "cli",
        "user_id": user,
        "agent_identity": home.profile,
        "agent_context": "primary",
        **server_facts(provider, server_url or config.server_url(home)),
    }
    try:
        started.call("initialize", {"session_id": _SESSION}, settings.start_seconds, **facts)
        yield started
    finally:
        if has_own(provider, "shutdown"):
            started.call("shutdown", {}, settings.shutdown_seconds)
        started.close()


def load_provider(home: Home, name: str) -> MemoryProvider:
    """Load a provider with its settings and secrets; raises ProviderError."""
    found = find_by_name(home.root, name)
    if found is None:
        raise ProviderError(f"There is no memory provider {name}. 'memoranda provider list' shows all of them.")
    return inspect_provider(
        found,
        home.root,
        read_settings(home.root, name),
        lambda names: config.export_secrets(home, names),
        config.load(home).external,
    ).provider


def call_service(home: Home, name: str, provider: MemoryProvider) -> str:
    """What the provider's service answers to a test call; empty if it has none. Raises ProviderError.

    The outcome replaces the health of the last session, which had other settings.
    """
    if not has_own(provider, "test_connection"):
        return ""
    with start_provider(home, name, provider) as started:
        try:
            return str(started.call("test_connection", {}, TEST_SECONDS) or "")
        finally:
            write_status(home.root, name, started.health.snapshot())
