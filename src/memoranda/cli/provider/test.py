"""`memoranda provider test`: starts the provider and tries recall and delivery."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from memoranda.cli.completers import complete_provider
from memoranda.cli.context import Invocation, common_options
from memoranda.cli.provider.output import (
    CommandOutput,
    find_provider,
    inspect_in_home,
    owned_home,
    provider_command,
    require_in_use,
)
from memoranda.cli.terminal_text import bold, dim, terminal_line
from memoranda.errors import ProviderError
from memoranda.external.health import write_status
from memoranda.external.loading.loader import run_guarded
from memoranda.external.loading.setup import read_settings
from memoranda.external.manager import MemoryManager
from memoranda.external.provider import MemoryProvider, has_own
from memoranda.home import config
from memoranda.safety.fence import sanitize_context
from memoranda.support.home import Home
from memoranda.upkeep.forgetting.started_provider import TEST_SECONDS, StartedProvider

SESSION = "memoranda-provider-test"
_DELIVERY_SECONDS = 10.0
_POLL_SECONDS = 0.05


@dataclass(slots=True)
class _Steps:
    """The results of the test's steps: name, whether it worked, and seconds. `diagnosis` is what the service said."""

    results: list[tuple[str, bool, float]] = field(default_factory=list)
    diagnosis: str = ""

    def step(self, name: str, run: Callable[[], Any]) -> bool:
        started = time.monotonic()
        worked = bool(run())
        self.results.append((name, worked, time.monotonic() - started))
        return worked


@click.command()
@click.argument("name", required=False, shell_complete=complete_provider)
@common_options
@provider_command
def test(invocation: Invocation, name: str | None) -> CommandOutput:
    """Start each provider in use, or one, recall, deliver a turn, and report what worked.

    The test uses its own outbox, so waiting deliveries are not touched. A turn that the provider receives stays with
    it unless it can be deleted: it is marked as a test, and the report names it.
    """
    home = owned_home(invocation)
    reports = {each: _test_or_fail(home, each) for each in require_in_use(home, name)}
    if len(reports) == 1:
        return next(iter(reports.values()))
    text = "\n\n".join(f"{bold(each)}\n{report.text}" for each, report in reports.items())
    worked = all(report.ok for report in reports.values())
    data: dict[str, Any] = {"success": worked, "providers": {each: report.data for each, report in reports.items()}}
    if not worked:
        data["error"] = f"Failed: {', '.join(each for each, report in reports.items() if not report.ok)}."
    return CommandOutput(text, data, worked)


def _test_or_fail(home: Home, name: str) -> CommandOutput:
    """Test one provider; one that cannot be loaded is a failed test."""
    try:
        return _test_provider(home, name)
    except ProviderError as error:
        return CommandOutput(terminal_line(str(error)), {"success": False, "error": str(error)}, ok=False)


def _test_provider(home: Home, name: str) -> CommandOutput:
    provider = inspect_in_home(home, find_provider(home, name), read_settings(home.root, name)).provider
    settings = config.load(home).external
    steps = _Steps()
    leftovers: list[str] = []
    service = StartedProvider(home, name, provider)
    # Its own outbox, which is deleted after the test.
    with TemporaryDirectory(prefix="memoranda-test-") as scratch:
        manager = MemoryManager(Path(scratch), settings, clean=sanitize_context)
        if (
            steps.step("is available", lambda: _is_available(manager, provider, steps))
            and steps.step("starts", lambda: _starts(manager, str(home.root), settings.start_seconds))
            # Without the service, the other steps would only wait until they fail for the same reason.
            and (
                not has_own(provider, "test_connection")
                or steps.step("its service answers a test call", lambda: _call_service(service, steps))
            )
        ):
            steps.step("answers a recall in time", lambda: _recalls(manager))
            if has_own(provider, "sync_turn") and steps.step("accepts a turn", lambda: _accepts_turn(manager)):
                leftovers += _forget_turn(provider, service)
        steps.step("shuts down", manager.shutdown)
        service.close()
        health = manager.status().health
    write_status(home.root, name, health)
    return _report(steps, health.phase, health.last_error, leftovers)


def _is_available(manager: MemoryManager, provider: MemoryProvider, steps: _Steps) -> bool:
    """Give the provider to the manager; what an unavailable one lacks is shown below the steps."""
    if manager.add_provider(provider):
        return True
    if has_own(provider, "explain_unavailable"):
        failure, limit = "It does not say what is missing", manager.settings.call_seconds
        steps.diagnosis = str(run_guarded(provider.explain_unavailable, failure, limit))
    return False


def _starts(manager: MemoryManager, home: str, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    ready = manager.initialize(SESSION, platform="cli", hermes_home=home)
    while not ready and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        ready = manager.status().ready
    return ready


def _call_service(service: StartedProvider, steps: _Steps) -> bool:
    """Call the service; what it answers, or what is wrong, is shown below the steps."""
    try:
        steps.diagnosis = str(service.call("test_connection", {}, TEST_SECONDS) or "")
    except ProviderError as error:
        steps.diagnosis = str(error)
        return False
    return True


def _forget_turn(provider: MemoryProvider, service: StartedProvider) -> list[str]:
    """Delete the turn of the test, where the service allows it; returns what stays there."""
    turn = f"a turn of the session {SESSION}, which the provider has received"
    if not has_own(provider, "forget"):
        return [turn]
    try:
        report = service.call("forget", {"session_ids": [SESSION]}, TEST_SECONDS)
    except ProviderError as error:
        return [f"{turn} ({error})"]
    return [turn] if report.get("remaining") else []


def _recalls(manager: MemoryManager) -> bool:
    manager.recall("What do you remember?", SESSION)
    health = manager.status().health
    return health.healthy or health.phase != "prefetch"


def _accepts_turn(manager: MemoryManager) -> bool:
    queued = manager.notify.turn_finished(
        "This is a test of Memoranda.", "It is a test, and can be forgotten.", SESSION
    )
    # A turn that the provider refuses is parked, and does not wait any more.
    return queued and manager.drain(_DELIVERY_SECONDS) and not manager.backlog().parked


def _report(steps: _Steps, phase: str, error: str, leftovers: list[str]) -> CommandOutput:
    lines = [
        f"{'ok    ' if worked else 'FAILED'}  {name}  {dim(f'{1000 * took:.0f} ms')}"
        for name, worked, took in steps.results
    ]
    if steps.diagnosis:
        lines.append(terminal_line(steps.diagnosis))
    error = terminal_line(error)
    if error:
        lines.append(f"Last error in {phase}: {error}")
    lines += [f"Left behind: {leftover}." for leftover in leftovers]
    worked = all(ok for _, ok, _ in steps.results)
    failed = [name for name, ok, _ in steps.results if not ok]
    data = {
        "success": worked,
        "steps": [{"step": name, "ok": ok, "seconds": round(took, 4)} for name, ok, took in steps.results],
        "service": steps.diagnosis or None,
        "last_error": error or None,
        "left": leftovers,
    }
    if not worked:
        data["error"] = f"Failed: {', '.join(failed)}. {error}".strip()
    return CommandOutput("\n".join(lines), data, worked)


COMMANDS = (test,)
