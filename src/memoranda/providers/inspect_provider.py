"""What a command may know of a provider: loaded and asked under the guard and the deadlines of a session.

Whatever the provider does (raise, hang, answer with garbage) is a problem in words here, and nothing more.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoranda.errors import ProviderError
from memoranda.providers.discovery import DiscoveredProvider
from memoranda.providers.guarded_call import PendingCall
from memoranda.providers.loader import load
from memoranda.providers.provider import MemoryProvider
from memoranda.providers.settings import ProviderSettings
from memoranda.providers.setup import ConfigField, fields_of


@dataclass(frozen=True, slots=True)
class Inspection:
    """A provider that was loaded, and the fields of its schema."""

    provider: MemoryProvider
    fields: list[ConfigField]


def inspect_provider(
    candidate: DiscoveredProvider,
    home: Path,
    saved: Mapping[str, Any],
    export_secrets: Callable[[Collection[str]], None],
    limits: ProviderSettings,
) -> Inspection:
    """Load a provider and read its schema; its secrets are where it looks for them then. Raises ProviderError."""

    def find() -> Inspection:
        provider = load(candidate, home, saved)
        fields = fields_of(provider)
        export_secrets([field.env_var for field in fields if field.env_var])
        return Inspection(provider, fields)

    found: Inspection = run_guarded(find, f"The provider {candidate.name} cannot be used", limits.start_seconds)
    return found


def is_ready(provider: MemoryProvider, limits: ProviderSettings) -> bool:
    """Whether a provider says that it has what it needs. Raises ProviderError when it says nothing of use."""
    failing = "It does not say whether it is ready"
    return run_guarded(lambda: provider.is_available() is True, failing, limits.call_seconds) is True


def run_guarded(call: Callable[[], Any], failing: str, within: float) -> Any:
    """What somebody else's code answers within some seconds; raises ProviderError, beginning with `failing`."""
    answer = PendingCall(call, "memoranda-look").wait(within)
    if answer is None:
        raise ProviderError(f"{failing}: no answer within {within:g} s.")
    if not answer.ok:
        reason = answer.error if answer.error.endswith((".", "…")) else f"{answer.error}."
        raise ProviderError(reason if reason.startswith("The ") else f"{failing}: {reason}")
    return answer.value
