"""Trying a provider out: `test`."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from memoranda import config
from memoranda.cli.context import Invocation, common_options
from memoranda.cli.provider.output import (
    CommandOutput,
    active_provider,
    find_provider,
    inspect_in_home,
    owned_home,
    provider_command,
)
from memoranda.cli.terminal_text import dim, terminal_line
from memoranda.errors import ProviderError
from memoranda.providers.manager import MemoryManager
from memoranda.providers.provider import has_own
from memoranda.providers.setup import read_settings
from memoranda.providers.status_file import write_status
from memoranda.safety.fence import sanitize_context

SESSION = "memoranda-provider-test"
_DELIVERY_SECONDS = 10.0
_MOMENT = 0.05


@dataclass(slots=True)
class _Steps:
    """What was tried: its name, whether it worked, and how long it took."""

    done: list[tuple[str, bool, float]] = field(default_factory=list)

    def step(self, what: str, run: Callable[[], Any]) -> bool:
        begin = time.monotonic()
        worked = bool(run())
        self.done.append((what, worked, time.monotonic() - begin))
        return worked


@click.command()
@common_options
@provider_command
def test(invocation: Invocation) -> CommandOutput:
    """Start the provider, ask it something, tell it a turn, and say what worked.

    Nothing is queued for it, and what waits for it stays where it is. A turn that it was told stays with it: it is
    marked as a test, and said.
    """
    home = owned_home(invocation)
    name = active_provider(home)
    if not name:
        raise ProviderError("No provider is in use. 'memoranda provider setup' chooses one.")
    provider = inspect_in_home(home, find_provider(home, name), read_settings(home.root, name)).provider
    settings = config.load(home).external
    steps = _Steps()
    left: list[str] = []
    # An outbox of its own, which goes with the test.
    with TemporaryDirectory(prefix="memoranda-test-") as scratch:
        manager = MemoryManager(Path(scratch), settings, clean=sanitize_context)
        if steps.step("is available", lambda: manager.add_provider(provider)) and steps.step(
            "starts", lambda: _starts(manager, str(home.root), settings.start_seconds)
        ):
            steps.step("answers a recall in time", lambda: _recalls(manager))
            if has_own(provider, "sync_turn") and steps.step("takes a turn", lambda: _takes_a_turn(manager)):
                left.append(f"a turn of the session {SESSION}, which the provider was told")
        steps.step("shuts down", manager.shutdown)
        health = manager.status().health
    write_status(home.root, name, health)
    return _told(steps, health.phase, health.last_error, left)


def _starts(manager: MemoryManager, home: str, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    ready = manager.initialize(SESSION, platform="cli", hermes_home=home)
    while not ready and time.monotonic() < deadline:
        time.sleep(_MOMENT)
        ready = manager.status().ready
    return ready


def _recalls(manager: MemoryManager) -> bool:
    manager.recall("What do you remember?", SESSION)
    health = manager.status().health
    return health.healthy or health.phase != "prefetch"


def _takes_a_turn(manager: MemoryManager) -> bool:
    told = manager.notify.turn_finished("This is a test of Memoranda.", "It is a test, and can be forgotten.", SESSION)
    return told and manager.drain(_DELIVERY_SECONDS)


def _told(steps: _Steps, phase: str, error: str, left: list[str]) -> CommandOutput:
    lines = [
        f"{'ok    ' if worked else 'FAILED'}  {what}  {dim(f'{1000 * took:.0f} ms')}"
        for what, worked, took in steps.done
    ]
    error = terminal_line(error)
    if error:
        lines.append(f"Last error in {phase}: {error}")
    lines += [f"Left behind: {each}." for each in left]
    worked = all(each for _, each, _ in steps.done)
    failed = [what for what, each, _ in steps.done if not each]
    data = {
        "success": worked,
        "steps": [{"step": what, "ok": each, "seconds": round(took, 4)} for what, each, took in steps.done],
        "last_error": error or None,
        "left": left,
    }
    if not worked:
        data["error"] = f"Failed: {', '.join(failed)}. {error}".strip()
    return CommandOutput("\n".join(lines), data, worked)


COMMANDS = (test,)
