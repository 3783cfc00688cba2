"""Lets the doctor call `check` and `repair` of providers: no provider is started, and no unused plugin is imported.

The doctor asks the providers in use, wherever they are installed, and every bundled provider that has files in the home
(discovery knows their names). Plugins and installed packages that are not in use never run.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from memoranda.errors import ProviderError
from memoranda.external.guarded_call import GuardedProvider
from memoranda.external.health import HealthTracker
from memoranda.external.loading.discovery import DiscoveredProvider, discover, find_by_name
from memoranda.external.loading.inspect_provider import run_guarded
from memoranda.external.loading.loader import load
from memoranda.external.loading.setup import read_settings
from memoranda.external.provider import MemoryProvider, has_own
from memoranda.support.health_issues import HealthIssue

# A check may read a whole database, and a repair may rewrite it.
_CHECK_SECONDS = 300.0
_REPAIR_SECONDS = 3_600.0


def check_providers(home: Path, in_use: Sequence[str]) -> Iterator[HealthIssue]:
    """Yield what the providers of a home report about their own files. Nothing that a provider does is raised."""
    chosen = [found for name in in_use if (found := find_by_name(home, name)) is not None]
    for found in chosen:
        yield from _check_provider(found, home)
    for found in discover(home).values():
        if found.has_data(home) and found not in chosen:
            yield from _check_provider(found, home)


def check_provider_tables(setting: Path, url: str) -> Iterator[HealthIssue]:
    """Check what bundled providers have on a server; `setting` is the file that names the server."""
    # A provider is imported only where it has something.
    from memoranda.external.holographic.shared_health import check_shared_facts  # noqa: PLC0415

    yield from check_shared_facts(setting, url)


def _check_provider(found: DiscoveredProvider, home: Path) -> Iterator[HealthIssue]:
    failure = f"has the provider {found.name}, which cannot be checked"
    try:
        provider: MemoryProvider = run_guarded(lambda: _load(found, home), failure, _CHECK_SECONDS)
        if not has_own(provider, "check"):
            return
        guarded = GuardedProvider(provider, found.name, HealthTracker())
        result = guarded.call("check", {"hermes_home": str(home)}, within=_CHECK_SECONDS)
        guarded.close()
        if not result.ok or not isinstance(result.value, list | tuple):
            reason = result.error or f"its check answered with {type(result.value).__name__} instead of a list"
            raise ProviderError(reason)
        # Guarded too: the reports are the provider's objects.
        yield from run_guarded(
            lambda: [_as_issue(guarded, dict(report), home) for report in result.value], failure, _CHECK_SECONDS
        )
    except ProviderError as error:
        problem = str(error).removeprefix(f"{failure}: ").rstrip(".")
        yield HealthIssue("warning", home, f"{failure}: {problem}", "'memoranda provider test' says more about it")


def _load(found: DiscoveredProvider, home: Path) -> MemoryProvider:
    try:
        settings = read_settings(home, found.name)
    except ProviderError:
        # The check of the settings files reports this one.
        settings = {}
    return load(found, home, settings)


def _as_issue(guarded: GuardedProvider, report: dict[str, Any], home: Path) -> HealthIssue:
    """An issue of the doctor; fills in what a report leaves out."""
    severity = report.get("severity")
    return HealthIssue(
        severity if severity in ("error", "note") else "warning",
        Path(str(report.get("path") or home)),
        str(report.get("problem") or f"has a problem that the provider {guarded.name} does not describe"),
        str(report.get("remedy") or "'memoranda provider test' may say more about it"),
        partial(_repair, guarded, report, home) if report.get("repairable") is True else None,
    )


def _repair(guarded: GuardedProvider, report: dict[str, Any], home: Path) -> str:
    result = guarded.call("repair", {"issue": report, "hermes_home": str(home)}, within=_REPAIR_SECONDS)
    guarded.close()
    if not result.ok:
        raise ProviderError(f"The provider {guarded.name} could not repair it: {result.error}")
    return result.value if isinstance(result.value, str) else ""
