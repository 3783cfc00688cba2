"""`memoranda remember` and `memoranda memory …` at a service."""

import sys
from collections.abc import Mapping
from typing import Any

from memoranda.api.client import RemoteMemory
from memoranda.api.client.curated import find_entry
from memoranda.cli.context import Invocation
from memoranda.cli.memory.history import format_change_and_edits
from memoranda.cli.remote.refusals import refuse_options
from memoranda.cli.terminal_text import terminal_line
from memoranda.memory.curated.settings import FILE_NAMES, TARGETS, Target


def remember(
    invocation: Invocation, memory: RemoteMemory, *, words: tuple[str, ...], target: Target, allow: tuple[str, ...]
) -> None:
    add(invocation, memory, text="-" if words == ("-",) else " ".join(words), target=target, allow=allow)


def add(invocation: Invocation, memory: RemoteMemory, *, text: str, target: Target, allow: tuple[str, ...]) -> None:
    refuse_options(invocation, {"allow": allow})
    answer = memory.remember(_read_text(text), target)
    if not answer["success"]:
        invocation.fail(answer["error"], dict(answer))
    _report(invocation, answer)


def replace(
    invocation: Invocation,
    memory: RemoteMemory,
    *,
    old_text: str,
    text: str,
    target: Target,
    allow: tuple[str, ...],
) -> None:
    refuse_options(invocation, {"allow": allow})
    entry = find_entry(memory.curated.view(target), old_text)
    _report(invocation, memory.curated.replace(target, entry["id"], _read_text(text)))


def remove(invocation: Invocation, memory: RemoteMemory, *, old_text: str, target: Target) -> None:
    entry = find_entry(memory.curated.view(target), old_text)
    _report(invocation, memory.curated.remove(target, entry["id"]))


def list_entries(invocation: Invocation, memory: RemoteMemory, *, target: Target | None) -> None:
    views = {name: memory.curated.view(name) for name in ([target] if target else TARGETS)}
    texts = [_format_entries(FILE_NAMES[name], view) for name, view in views.items()]
    invocation.respond("\n\n".join(texts), views)


def log(invocation: Invocation, memory: RemoteMemory, *, target: Target | None, limit: int) -> None:
    changes = memory.curated.log(limit=limit, target=target)
    invocation.respond("\n".join(map(format_change_and_edits, changes)) or "No changes yet.", changes)


def undo(invocation: Invocation, memory: RemoteMemory, *, number: int | None) -> None:
    if number is None:
        invocation.fail("Name the change to undo; 'memoranda memory log' lists them.")
    _report(invocation, memory.curated.undo(number))


def _report(invocation: Invocation, receipt: Mapping[str, Any]) -> None:
    lines = [str(receipt["message"])]
    if receipt.get("change"):
        lines += [f"change {receipt['change']} · {invocation.url}", "The agent sees it from its next session on."]
    invocation.respond("\n".join(map(terminal_line, lines)), {"success": True} | dict(receipt))


def _format_entries(name: str, view: Mapping[str, Any]) -> str:
    lines = [f"{name}  {view['used']:,} of {view['limit']:,} characters"]
    for number, entry in enumerate(view["entries"], start=1):
        first, *rest = entry["text"].split("\n")
        lines += [f"{number:>3}  {terminal_line(first)}", *(f"     {terminal_line(line)}" for line in rest)]
    return "\n".join(lines if view["entries"] else [*lines, "  (no entries yet)"])


def _read_text(argument: str) -> str:
    return sys.stdin.read() if argument == "-" else argument
