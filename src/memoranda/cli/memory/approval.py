"""`memoranda memory pending`, `approve` and `reject`: decide on the changes that the agent proposed."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from memoranda.cli.context import Invocation, memory_options, printable
from memoranda.cli.open_home import open_curated_memory
from memoranda.cli.terminal_text import format_sources
from memoranda.memory.curated.approval_queue import Proposal, encode_operation
from memoranda.memory.curated.settings import file_name
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.tool import describe

_NOTHING_PENDING = "Nothing is waiting for approval."


@click.command()
@memory_options
def pending() -> None:
    """List the proposals that await a decision.

    The agent proposes everything with memory.write_approval: propose. Otherwise it proposes what untrusted text may
    have suggested and would change what the agent does (memory.untrusted_writes). An import proposes what another
    program showed to its agent in every prompt.
    """
    invocation = Invocation.current()
    store = open_curated_memory(invocation)
    proposals = store.proposals.all()
    text = "\n".join(_format_proposal(store, proposal) for proposal in proposals) or _NOTHING_PENDING
    invocation.respond(text, [_as_data(store, proposal) for proposal in proposals])


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Approve all pending proposals.")
@memory_options
def approve(ids: tuple[str, ...], everything: bool) -> None:
    """Apply proposals. Each is checked again; one that no longer fits stays pending, with the reason."""
    invocation = Invocation.current()
    store = open_curated_memory(invocation)
    results = []
    for proposal in _select_proposals(invocation, store, ids, everything):
        results.append({"id": proposal.id} | describe(store.approve(proposal), store))
    _report(invocation, "approved", results)


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Reject all pending proposals.")
@memory_options
def reject(ids: tuple[str, ...], everything: bool) -> None:
    """Reject proposals. Their text is kept until 'memoranda memory purge'."""
    invocation = Invocation.current()
    store = open_curated_memory(invocation)
    results: list[dict[str, Any]] = []
    for proposal in _select_proposals(invocation, store, ids, everything):
        store.proposals.reject(proposal)
        results.append({"id": proposal.id, "success": True, "message": "Nothing was saved."})
    _report(invocation, "rejected", results)


def _select_proposals(
    invocation: Invocation, store: MemoryStore, ids: Sequence[str], everything: bool
) -> list[Proposal]:
    if everything == bool(ids):
        raise click.UsageError("Name the proposals by id, or use --all.")
    if everything:
        return store.proposals.all()
    selected = []
    for name in dict.fromkeys(ids):
        proposal = store.proposals.get(name)
        if proposal is None:
            invocation.fail(f"There is no pending proposal {name}. 'memoranda memory pending' lists them.")
        selected.append(proposal)
    return selected


def _report(invocation: Invocation, verb: str, results: list[dict[str, Any]]) -> None:
    lines = [
        f"{result['id']} {verb}. {result['message']}"
        if result["success"]
        else f"{result['id']} is still pending: {result['error']}"
        for result in results
    ]
    if all(result["success"] for result in results):
        invocation.respond("\n".join(lines) or _NOTHING_PENDING, results)
    else:
        invocation.fail("\n".join(lines), {"results": results})


def _format_proposal(store: MemoryStore, proposal: Proposal) -> str:
    time = printable(proposal.at[:19].replace("T", " "))
    session = f", session {printable(proposal.session)}" if proposal.session else ""
    sources = format_sources(proposal.sources)
    author = f"{file_name(proposal.target)}, by {printable(proposal.actor)}{session}{sources}"
    lines = [f"{proposal.id}  {time}  {author}"]
    lines += [f"    - {store.visible_text(proposal.target, text)}" for text in proposal.replaced if text is not None]
    for operation in proposal.operations:
        if "content" in (fields := encode_operation(operation)):
            lines.append(f"    + {store.visible_text(proposal.target, fields['content'])}")
    return "\n".join(lines)


def _as_data(store: MemoryStore, proposal: Proposal) -> dict[str, Any]:
    operations = [
        {
            name: text if name == "action" else store.visible_text(proposal.target, text)
            for name, text in encode_operation(item).items()
        }
        for item in proposal.operations
    ]
    replaced = [None if text is None else store.visible_text(proposal.target, text) for text in proposal.replaced]
    return asdict(proposal) | {"operations": operations, "replaced": replaced}
