"""Inspects a provider for a command: loads it and reads its schema, under the deadlines of a session.

Whatever the provider does (raise, hang, return garbage) becomes a ProviderError.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoranda.errors import ProviderError
from memoranda.external.guarded_call import PendingCall
from memoranda.external.loading.discovery import DiscoveredProvider
from memoranda.external.loading.loader import load
from memoranda.external.loading.setup import ConfigField, fields_of
from memoranda.external.provider import MemoryProvider, has_own
from memoranda.external.settings import ProviderSettings


@dataclass(frozen=True, slots=True)
class Inspection:
    """A loaded provider, and the fields of its configuration schema."""

    provider: MemoryProvider
    fields: list[ConfigField]


def inspect_provider(
    found: DiscoveredProvider,
    home: Path,
    saved: Mapping[str, Any],
    export_secrets: Callable[[Collection[str]], Mapping[str, str]],
    limits: ProviderSettings,
) -> Inspection:
    """Load a provider, read its schema, and export its secrets to the environment. Raises ProviderError."""

    def load_and_describe() -> Inspection:
        provider = load(found, home, saved)
        fields = fields_of(provider)
        provider.receive_secrets(export_secrets([field.env_var for field in fields if field.env_var]))
        return Inspection(provider, fields)

    failure = f"The provider {found.name} cannot be used"
    inspection: Inspection = run_guarded(load_and_describe, failure, limits.start_seconds, "provider.start_seconds")
    return inspection


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a provider reports that it is available, and if not, what is missing, where the provider says so."""

    ready: bool
    reason: str = ""


def check_ready(provider: MemoryProvider, limits: ProviderSettings) -> Readiness:
    """Ask a provider whether it is available. Raises ProviderError when it fails to answer."""

    def ask() -> Readiness:
        if provider.is_available() is True:
            return Readiness(True)
        return Readiness(False, str(provider.explain_unavailable()) if has_own(provider, "explain_unavailable") else "")

    failure = "It does not say whether it is ready"
    readiness: Readiness = run_guarded(ask, failure, limits.call_seconds, "provider.call_seconds")
    return readiness


def run_guarded(call: Callable[[], Any], failure: str, timeout: float, setting: str = "") -> Any:
    """Run a provider's code in a thread and return its value; raises ProviderError, which begins with `failure`.

    `setting` is the name of the setting that holds the timeout, for the error.
    """
    result = PendingCall(call, "memoranda-inspect").wait(timeout)
    if result is None:
        remedy = f" 'memoranda config set {setting} SECONDS' allows more time." if setting else ""
        raise ProviderError(f"{failure}: no answer within {timeout:g} s.{remedy}")
    if not result.ok:
        reason = result.error if result.error.endswith((".", "…")) else f"{result.error}."
        raise ProviderError(reason if reason.startswith("The ") else f"{failure}: {reason}")
    return result.value
