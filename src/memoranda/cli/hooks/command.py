"""`memoranda hook`, which a host runs at its events, and `memoranda hook status`, which lists the results.

`memoranda.__main__` answers the calls of an installed hook before click is loaded. This module handles the other
calls: the help, calls that people type, and malformed arguments. The status shows what recent prompts received, and why
others received nothing.
"""

import os
from collections import Counter
from datetime import datetime
from typing import Any

import click

from memoranda.cli.context import Invocation, memory_options, printable
from memoranda.cli.hooks.call import run
from memoranda.cli.hooks.helper_files import describe_helpers, helper_as_json, running_helpers
from memoranda.cli.hooks.process import HookOptions
from memoranda.cli.hosts.found_hosts import inspect_installed_hosts
from memoranda.home.config import known_secrets
from memoranda.integrations.hooks.events import HOSTS
from memoranda.integrations.hooks.log import read_calls
from memoranda.safety.redaction import Redactor
from memoranda.search.recall_log import ERROR, LATE, RUNNING, STOPPED, hook_calls_path
from memoranda.support.home import Home

_STATUS_EPILOG = """\b
Examples:
  memoranda hook status
  memoranda hook status --why              the latest prompt
  memoranda hook status --why 1f03ab9c2    one call of the list
"""
_LATEST = "latest"
_PROMPT = "UserPromptSubmit"
_MAX_PROMPT_CHARS = 60
_KINDS = {
    "question": "a question",
    "asks_about_the_past": "about the past",
    "personal": "personal",
    "points_at_something": "pointing at something",
    "how_to": "asking how something is done",
}
_SUMMARY_ORDER = ("given", "nothing", LATE, ERROR, STOPPED, RUNNING)
_EPILOG = """\b
Examples:
  memoranda hook claude-code SessionStart < payload.json
  memoranda hook status
  memoranda hook status --why

\b
'memoranda install claude-code' writes this command into the host's settings. To see what a prompt would receive:
  echo '{"prompt": "How did we fix the build?"}' | memoranda hook claude-code UserPromptSubmit
"""
_IGNORE_UNKNOWN = {"ignore_unknown_options": True, "allow_extra_args": True}


class _SilentCommand(click.Command):
    """A command that exits silently with code 0 on invalid options, because any other code would stop the host."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError:
            raise click.exceptions.Exit(0) from None


class _HookGroup(_SilentCommand, click.Group):
    """Accepts any first word as a subcommand, so that an unknown host does not fail either."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        return name, self.commands.get(name, _event_command(name)), args[1:]


@click.group(cls=_HookGroup, epilog=_EPILOG, invoke_without_command=True, context_settings=_IGNORE_UNKNOWN)
@memory_options
@click.pass_context
def command(context: click.Context) -> None:
    """Answer an event of a host (claude-code, codex, gemini-cli ...), or show what its prompts received.

    The host sends its payload on standard input. SessionStart returns the memory. UserPromptSubmit returns earlier
    conversations that are relevant to the prompt, if there are any. Stop, SubagentStop, PreCompact and SessionEnd
    record the session. The exit code is always 0, because any other code would stop the host; errors are in
    logs/hooks.log in the home, and 'memoranda hook status' shows the result of each call.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _event_command(host: str) -> click.Command:
    @click.command(host, cls=_SilentCommand, context_settings=_IGNORE_UNKNOWN, short_help=f"Answer an event of {host}.")
    @click.argument("event", default="")
    @click.option("--wait", is_flag=True, help="Answer and import before exiting, however long it takes.")
    @click.option("--transcript", default="", hidden=True)
    @click.option("--session", default="", hidden=True)
    @click.option("--ended", default="", hidden=True)
    @memory_options
    def answer(invocation: Invocation, event: str, wait: bool, transcript: str, session: str, ended: str) -> None:
        options = HookOptions(host, event, wait=wait, transcript=transcript)
        options.home, options.profile, options.user = invocation.home, invocation.profile, invocation.user
        options.session, options.ended = session, ended
        if not run(options):
            # The thread that is late only reads, and the next update of the index continues where this one stopped.
            os._exit(0)

    answer.help = f"Answer an EVENT of {host}; the host sends its payload on standard input."
    return answer


@click.command("status", epilog=_STATUS_EPILOG)
@click.option(
    "-n", "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many calls to list."
)
@click.option(
    "--why", is_flag=False, flag_value=_LATEST, metavar="[ID]", help="Explain one call; without ID, the latest prompt."
)
@memory_options
def status(invocation: Invocation, limit: int, why: str | None) -> None:
    """List recent calls of the hooks: what each prompt received, or why it received nothing.

    Prompts are stored without anything that could be a secret. Calls that record a session are not listed; their
    problems are in logs/hooks.log.
    """
    home = invocation.locate_home()
    redactor = Redactor(known_secrets(home))
    calls = [redactor.value(call)[0] for call in read_calls(home.root)]
    if why is not None:
        call = _find_call(calls, why)
        if call is None:
            problem = "The log has no prompt yet." if why == _LATEST else f"The log has no call {why!r}."
            invocation.fail(f"{problem} 'memoranda hook status' lists the calls.")
        invocation.respond(_explain(call), call)
        return
    shown = calls[:limit]
    counts = Counter(call["outcome"] for call in shown)
    helpers = running_helpers(home)
    data = {
        "calls": shown,
        "counts": dict(counts),
        "log": str(hook_calls_path(home.root)),
        "helpers": [helper_as_json(helper) for helper in helpers],
    }
    lines = [
        _format_list(shown, counts) if shown else _explain_none(home),
        *(describe_helpers(home, helpers) if shown or helpers else []),
    ]
    invocation.respond("\n".join(lines), data)


def _find_call(calls: list[dict[str, Any]], name: str) -> dict[str, Any] | None:
    if name == _LATEST:
        return next((call for call in calls if call.get("event") == _PROMPT), None)
    return next((call for call in calls if call["id"].startswith(name)), None)


def _explain_none(home: Home) -> str:
    hosts = ", ".join(status.host.title for status in inspect_installed_hosts(home))
    if hosts:
        return f"No hook has been called yet. Memoranda is installed in {hosts}: start a new session there."
    return "No hook has been called yet. 'memoranda install claude-code' adds the hooks to a host."


def _format_list(calls: list[dict[str, Any]], counts: Counter[str]) -> str:
    summary = ", ".join(f"{counts[outcome]} {outcome}" for outcome in _SUMMARY_ORDER if counts[outcome])
    lines = [f"The last {len(calls)} calls: {summary}." if len(calls) > 1 else f"One call: {summary}."]
    lines += [_format_row(call) for call in calls]
    return "\n".join([*lines, "Explain one: memoranda hook status --why ID"])


def _format_row(call: dict[str, Any]) -> str:
    prompt = printable(str(call.get("prompt", "")))
    if call.get("event") != _PROMPT:
        prompt = f"({call.get('event', '')})"
    if len(prompt) > _MAX_PROMPT_CHARS:
        prompt = f"{prompt[: _MAX_PROMPT_CHARS - 1]}…"
    reason = printable(str(call.get("reason", "")))
    return f"{printable(call['id'])}  {_format_time(call['at'])}  {call['outcome']:8} {prompt}  [{reason}]"


def _format_time(at: float) -> str:
    try:
        return f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"


def _explain(call: dict[str, Any]) -> str:
    host, event = str(call.get("host", "")), str(call.get("event", ""))
    lines = [f"{call['id']}  {_format_time(call['at'])}  {host} {event}"]
    if call.get("prompt"):
        lines.append(f"Prompt: {call['prompt']}")
    lines.append(f"Result: {call['outcome']}: {call.get('reason', '')}.")
    if isinstance(floor := call.get("floor"), dict):
        kinds = ", ".join(text for name, text in _KINDS.items() if floor.get(name)) or "a task"
        lines.append(
            f"Floor: the prompt is {kinds}; a message with its neighbours needs {floor.get('words')} of the words that"
            f" name its subject, and {floor.get('points')} points."
        )
    candidates = call.get("candidates")
    for candidate in candidates if isinstance(candidates, list) else []:
        lines.append(_explain_candidate(candidate, call.get("floor") or {}))
    if call.get("words"):
        lines.append(f"Words: {', '.join(map(str, call['words']))}.")
    if call.get("found_nowhere"):
        lines.append(f"In no conversation: {', '.join(map(str, call['found_nowhere']))}.")
    if call.get("note"):
        lines.append(str(call["note"]))
    if "ms" in call:
        helper = f", with the helper (process {call['helper']})" if call.get("helper") else ""
        lines.append(f"It took {call['ms']} ms and {call.get('cpu_ms')} ms of CPU{helper}.")
    return "\n".join(map(printable, lines))


def _explain_candidate(candidate: dict[str, Any], floor: dict[str, Any]) -> str:
    verdict = "cleared" if candidate.get("clears") else "below the floor"
    measured = [
        f"{_percent(candidate.get('share'))} of the weight",
        f"{candidate.get('words')} words{_too_low(candidate, floor, 'words')}",
        f"{candidate.get('points')} points{_too_low(candidate, floor, 'points')}",
        *(["but of another owner than the prompt names"] if candidate.get("of_another") else []),
    ]
    where = f"session {candidate.get('session_id')}, message {candidate.get('message_id')}"
    return f"  {verdict}: {where}: {', '.join(measured)}"


def _too_low(candidate: dict[str, Any], floor: dict[str, Any], name: str) -> str:
    return " (too low)" if candidate.get(name, 0) < floor.get(name, 0) else ""


def _percent(share: Any) -> str:
    return f"{share:.0%}" if isinstance(share, int | float) else "?"


for _host in HOSTS:
    command.add_command(_event_command(_host))
command.add_command(status)
