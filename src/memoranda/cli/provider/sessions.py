"""The commands that run a session with the external memory: `provider ask`, `call`, `run` and `test`.

`ask` and `call` show what the external memory tells a model, and what is withheld from it; `run` runs one of the
provider's own commands; `test` starts the provider and tries recall and delivery.
"""

import argparse
import io
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from memoranda.api.memory import Memory
from memoranda.api.session import Session
from memoranda.cli.completion import complete_provider
from memoranda.cli.context import EXIT_REFUSED, Invocation, common_options, memory_options, printable
from memoranda.cli.provider.output import (
    CommandOutput,
    find_provider,
    inspect_in_home,
    open_outbox,
    owned_home,
    provider_command,
    require_in_use,
    require_one,
    stdout_to_stderr,
)
from memoranda.cli.terminal_text import bold, dim, terminal_line
from memoranda.errors import ProviderError
from memoranda.external.guarded_call import CallResult, PendingCall
from memoranda.external.health import write_status
from memoranda.external.loading.loader import PluginCommands, load_commands, run_guarded
from memoranda.external.loading.setup import read_settings
from memoranda.external.manager import MemoryManager
from memoranda.external.provider import MemoryProvider, has_own
from memoranda.home import config
from memoranda.safety.fence import sanitize_context
from memoranda.safety.withheld_passages import WithheldPassage
from memoranda.support.home import Home
from memoranda.support.lazy_dataclass import dataclass
from memoranda.upkeep.forgetting.started_provider import TEST_SECONDS, StartedProvider

# A library that runs in this process takes up to half a minute to load on a busy machine.
_ASK_SECONDS = 60.0
_provider_option = click.option("--provider", "provider_name", default="", help="Only this provider.")
_withheld_option = click.option(
    "--withheld", "show_withheld", is_flag=True, help="Also print what is withheld from models."
)
_RUN_POLL_SECONDS = 0.2
SESSION = "memoranda-provider-test"
_DELIVERY_SECONDS = 10.0
_RETRY_SECONDS = 60.0
_TEST_POLL_SECONDS = 0.05


@click.command()
@click.argument("words", nargs=-1, required=True)
@_provider_option
@_withheld_option
@memory_options
@provider_command
def ask(invocation: Invocation, words: tuple[str, ...], provider_name: str, show_withheld: bool) -> CommandOutput:
    """Ask the providers in use what they recall about a question, as before a turn, but wait up to a minute."""
    with provider_session(invocation, provider_name) as session:
        recalled = session.external.recall_for_person(" ".join(words), session.id, provider_name)
    data = {"success": True, "recalled": recalled.value}
    return _output(data, recalled.value or "Nothing was recalled.", recalled.passages, show_withheld)


@click.command()
@click.argument("tool")
@click.argument("arguments", default="{}")
@_provider_option
@_withheld_option
@memory_options
@provider_command
def call(invocation: Invocation, tool: str, arguments: str, provider_name: str, show_withheld: bool) -> CommandOutput:
    """Call a tool of a provider in use as a model does. ARGUMENTS is a JSON object."""
    try:
        given = json.loads(arguments)
    except ValueError as error:
        raise ProviderError(f"The arguments are not JSON: {error}.") from error
    if not isinstance(given, dict):
        raise ProviderError('The arguments must be a JSON object, such as \'{"query": "tea"}\'.')
    with provider_session(invocation, provider_name) as session:
        answer = session.external.answer_tool(tool, given, provider_name)
    text = json.dumps(answer.json, ensure_ascii=False, indent=2)
    return _output(answer.json, text, answer.withheld, show_withheld, ok=answer.json["success"] is True)


@click.command()
@click.argument("name", required=False, shell_complete=complete_provider)
@memory_options
@provider_command
def retry(invocation: Invocation, name: str | None) -> CommandOutput:
    """Deliver now what a provider has refused or missed, instead of after the next pause."""
    home = owned_home(invocation)
    names = require_in_use(home, name)
    with open_outbox(home) as outbox:
        for each in names:
            outbox.catch_up(each)
        before = {each: outbox.backlog(each) for each in names}
        for each in names:
            outbox.retry_failed(each)
        with provider_session(invocation, name or "") as session:
            session.external.deliver(_RETRY_SECONDS)
        after = {each: outbox.backlog(each) for each in names}
    lines, data = [], dict[str, Any]()
    for each, left in after.items():
        waiting = left.waiting + left.parked
        delivered = max(0, before[each].waiting + before[each].parked - waiting)
        rest = f", {waiting} not yet: {left.last_error or 'they wait for their turn'}" if waiting else ""
        lines.append(terminal_line(f"{each}: {delivered} delivered{rest}"))
        data[each] = {"delivered": delivered, "waiting": left.waiting, "parked": left.parked, "error": left.last_error}
    is_done = not any(after.values())
    return CommandOutput("\n".join(lines), {"success": is_done, "providers": data}, is_done)


@contextmanager
def provider_session(invocation: Invocation, provider: str) -> Iterator[Session]:
    """Start the providers for a session that is never recorded."""
    home = config.locate_home(invocation.home, invocation.profile)
    home.refuse_if_foreign()
    with Memory(home, _wait_longer(config.load(home)), invocation.user) as memory:
        in_use = memory.config.providers
        if not in_use:
            raise ProviderError("No provider is in use. 'memoranda provider setup' chooses one.")
        if provider and provider not in in_use:
            raise ProviderError(f"{provider} is not in use; in use: {', '.join(in_use)}.")
        session = memory.session(source="cli")
        try:
            yield session
        finally:
            session.external.close()


def _wait_longer(settings: config.Config) -> config.Config:
    """The configuration with more time than a turn has: a person wants the answer, also while a library is loading."""
    external = settings.external
    external = replace(
        external,
        recall_seconds=max(external.recall_seconds, _ASK_SECONDS),
        begin_seconds=max(external.begin_seconds, external.start_seconds),
    )
    return replace(settings, external=external)


def _output(
    data: dict[str, Any], text: str, passages: Sequence[WithheldPassage], show_withheld: bool, *, ok: bool = True
) -> CommandOutput:
    lines = [printable(line) for line in text.split("\n")]
    if show_withheld:
        data = data | {
            "withheld_passages": [{"findings": passage.findings, "text": passage.text} for passage in passages]
        }
        lines += ["", bold("Withheld from models") if passages else "Nothing was withheld."]
        for passage in passages:
            lines += [f"  {', '.join(passage.findings)}:"]
            lines += [f"    {printable(line)}" for line in passage.text.split("\n")]
    elif passages:
        lines.append("A part is withheld from models; --withheld prints it.")
    return CommandOutput("\n".join(lines), data, ok)


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--provider", "provider_name", help="The provider, where several are in use.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@common_options
def run(invocation: Invocation, provider_name: str | None, arguments: tuple[str, ...]) -> None:
    """Run one of the provider's own commands. '-- --help' lists them.

    With --json, "output" contains what the command prints.
    """
    try:
        name, commands, parser = _load_commands(invocation, provider_name)
    except ProviderError as error:
        invocation.fail(terminal_line(str(error)))
    printed = io.StringIO()
    if invocation.as_json:
        with stdout_to_stderr(), redirect_stdout(printed):
            result = _run(name, commands, parser, arguments)
        code = result.value if result.ok else EXIT_REFUSED
        data = {"success": result.ok and code == 0, "exit_code": code, "output": printed.getvalue()}
        invocation.respond("", data if result.ok else data | {"error": terminal_line(result.error)})
    else:
        result = _run(name, commands, parser, arguments)
        if not result.ok:
            invocation.fail(f"{name} failed: {terminal_line(result.error)}")
        code = result.value
    sys.exit(code)


def _load_commands(invocation: Invocation, chosen: str | None) -> tuple[str, PluginCommands, argparse.ArgumentParser]:
    home = owned_home(invocation)
    name = require_one(home, chosen, "--provider NAME")
    found = find_provider(home, name)
    seconds, setting = config.load(home).external.start_seconds, "provider.start_seconds"
    parser = argparse.ArgumentParser(prog="memoranda provider run --")
    with stdout_to_stderr():
        commands: PluginCommands = run_guarded(
            lambda: load_commands(found, home.root), f"The commands of {name} cannot be used", seconds, setting
        )
        run_guarded(lambda: commands.register(parser), f"The commands of {name} cannot be used", seconds, setting)
    return name, commands, parser


def _run(
    name: str, commands: PluginCommands, parser: argparse.ArgumentParser, arguments: tuple[str, ...]
) -> CallResult:
    """Return the exit code of a command, or an error. It has no time limit; the user can interrupt it."""

    def call() -> int:
        try:
            parsed = parser.parse_args(list(arguments))
            handler: Any = getattr(parsed, "func", None) or commands.handler
            if handler is None:
                raise ProviderError(f"{name} does not say how its commands are run.")
            code = handler(parsed)
        except SystemExit as request:
            code = request.code
            if isinstance(code, str):
                print(code, file=sys.stderr)
                return EXIT_REFUSED
        return code if isinstance(code, int) and not isinstance(code, bool) else 0

    pending = PendingCall(call, f"memoranda-{name}-run")
    while (result := pending.wait(_RUN_POLL_SECONDS)) is None:
        pass
    return result


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
        steps.step("shuts down", manager.shutdown_all)
        service.close()
        health, called = manager.status().health, service.health.snapshot()
    write_status(home.root, name, health if called.healthy else called)
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
    ready = manager.initialize_all(SESSION, platform="cli", hermes_home=home)
    while not ready and time.monotonic() < deadline:
        time.sleep(_TEST_POLL_SECONDS)
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
    manager.prefetch_all("What do you remember?", SESSION)
    health = manager.status().health
    return health.healthy or health.phase != "prefetch"


def _accepts_turn(manager: MemoryManager) -> bool:
    queued = manager.sync_all("This is a test of Memoranda.", "It is a test, and can be forgotten.", SESSION)
    # A turn that the provider refuses is parked, or waits for its next attempt.
    return queued and manager.drain(_DELIVERY_SECONDS, only_due=True) and not manager.backlog().parked


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
