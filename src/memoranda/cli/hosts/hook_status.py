"""`memoranda hook status`: shows what recent prompts received, and why others received nothing."""

from collections import Counter
from datetime import datetime
from typing import Any

import click

from memoranda.cli.context import Invocation, memory_options, printable
from memoranda.cli.hosts.helper_files import running_helpers
from memoranda.cli.hosts.helper_report import describe_helpers, helper_as_json
from memoranda.home.config import known_secrets
from memoranda.integrations.hooks.log import read_calls
from memoranda.safety.redaction import Redactor
from memoranda.search.recall_log import ERROR, LATE, RUNNING, STOPPED, hook_calls_path

_EPILOG = """\b
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


@click.command("status", epilog=_EPILOG)
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many calls to list.")
@click.option(
    "--why", is_flag=False, flag_value=_LATEST, metavar="[ID]", help="Explain one call; without ID, the latest prompt."
)
@memory_options
def status(limit: int, why: str | None) -> None:
    """List recent calls of the hooks: what each prompt received, or why it received nothing.

    Prompts are stored without anything that could be a secret. Calls that record a session are not listed; their
    problems are in logs/hooks.log.
    """
    invocation = Invocation.current()
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
    lines = [_format_list(shown, counts), *(describe_helpers(home, helpers) if shown or helpers else [])]
    invocation.respond("\n".join(lines), data)


def _find_call(calls: list[dict[str, Any]], name: str) -> dict[str, Any] | None:
    if name == _LATEST:
        return next((call for call in calls if call.get("event") == _PROMPT), None)
    return next((call for call in calls if call["id"].startswith(name)), None)


def _format_list(calls: list[dict[str, Any]], counts: Counter[str]) -> str:
    if not calls:
        return "No hook has been called yet. 'memoranda install claude-code' adds the hooks to a host."
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
    ]
    where = f"session {candidate.get('session_id')}, message {candidate.get('message_id')}"
    return f"  {verdict}: {where}: {', '.join(measured)}"


def _too_low(candidate: dict[str, Any], floor: dict[str, Any], name: str) -> str:
    return " (too low)" if candidate.get(name, 0) < floor.get(name, 0) else ""


def _percent(share: Any) -> str:
    return f"{share:.0%}" if isinstance(share, int | float) else "?"
