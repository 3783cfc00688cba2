"""What the agent proposed and a person decides: pending, approve, reject."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from memoranda.cli.context import Invocation, common_options
from memoranda.cli.opening import open_store
from memoranda.curated.outcome import Receipt
from memoranda.curated.proposals import Proposal, encode_operation
from memoranda.curated.settings import FILE_NAMES
from memoranda.curated.store import MemoryStore
from memoranda.curated.tool import describe


@click.command()
@common_options
def pending() -> None:
    """List what the agent proposed and nobody has decided yet (memory.write_approval: propose)."""
    invocation = Invocation.current()
    waiting = open_store(invocation).proposals.all()
    text = "\n".join(_show(proposal) for proposal in waiting) or "Nothing is waiting for approval."
    invocation.say(text, [_as_data(proposal) for proposal in waiting])


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Approve whatever is waiting.")
@common_options
def approve(ids: tuple[str, ...], everything: bool) -> None:
    """Carry proposals out. Each is checked again; one that no longer fits stays pending, with the reason."""
    invocation = Invocation.current()
    store = open_store(invocation)
    results = []
    for proposal in _chosen(invocation, store, ids, everything):
        outcome = store.apply(proposal.target, proposal.operations, proposal.origin, note="approved by a person")
        if isinstance(outcome, Receipt):
            store.proposals.done(proposal)
        results.append({"id": proposal.id} | describe(outcome, store))
    _report(invocation, "approved", results)


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Reject whatever is waiting.")
@common_options
def reject(ids: tuple[str, ...], everything: bool) -> None:
    """Turn proposals down. Their text is kept until 'memoranda memory purge'."""
    invocation = Invocation.current()
    store = open_store(invocation)
    results: list[dict[str, Any]] = []
    for proposal in _chosen(invocation, store, ids, everything):
        store.proposals.reject(proposal)
        results.append({"id": proposal.id, "success": True, "message": "Nothing was saved."})
    _report(invocation, "rejected", results)


def _chosen(invocation: Invocation, store: MemoryStore, ids: Sequence[str], everything: bool) -> list[Proposal]:
    if everything == bool(ids):
        raise click.UsageError("Name the proposals by id, or say --all.")
    if everything:
        return store.proposals.all()
    chosen = []
    for name in ids:
        proposal = store.proposals.get(name)
        if proposal is None:
            invocation.refuse(f"No proposal {name} is waiting. 'memoranda memory pending' lists them.")
        chosen.append(proposal)
    return chosen


def _report(invocation: Invocation, verb: str, results: list[dict[str, Any]]) -> None:
    lines = [
        f"{result['id']} {verb}. {result['message']}"
        if result["success"]
        else f"{result['id']} is still pending: {result['error']}"
        for result in results
    ]
    if all(result["success"] for result in results):
        invocation.say("\n".join(lines) or "Nothing is waiting for approval.", results)
    else:
        invocation.refuse("\n".join(lines), {"results": results})


def _show(proposal: Proposal) -> str:
    when = proposal.at[:19].replace("T", " ")
    session = f", session {proposal.session}" if proposal.session else ""
    lines = [f"{proposal.id}  {when}  {FILE_NAMES[proposal.target]}, by {proposal.actor}{session}"]
    for operation in proposal.operations:
        fields = encode_operation(operation)
        old = f" {fields['old_text']!r} →" if "old_text" in fields else ""
        lines.append(f"    {fields['action']}{old} {fields.get('content', '')}".rstrip())
    return "\n".join(lines)


def _as_data(proposal: Proposal) -> dict[str, Any]:
    return asdict(proposal) | {"operations": [encode_operation(item) for item in proposal.operations]}


COMMANDS = (pending, approve, reject)
