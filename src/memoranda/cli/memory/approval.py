"""`memoranda memory pending`, `approve` and `reject`: decide on the changes that the agent proposed."""

from collections.abc import Iterable, Sequence

import click

from memoranda.cli.context import Invocation, memory_options, printable
from memoranda.cli.open_home import open_curated_memory
from memoranda.cli.terminal_text import format_sources, to_local_time
from memoranda.memory.curated.change_history import proposal_data
from memoranda.memory.curated.settings import file_name
from memoranda.memory.curated.tool import describe
from memoranda.support.tool import JsonObject

REJECTED: JsonObject = {"success": True, "message": "Nothing was saved."}
_NOTHING_PENDING = "Nothing is waiting for approval."


@click.command()
@memory_options
def pending(invocation: Invocation) -> None:
    """List the proposals that await a decision.

    The agent proposes everything with memory.write_approval: propose. Otherwise it proposes what untrusted text may
    have suggested and would change what the agent does (memory.untrusted_writes). An import proposes what another
    program showed to its agent in every prompt.
    """
    store = open_curated_memory(invocation)
    respond(invocation, [proposal_data(store, proposal) for proposal in store.proposals.all()])


def respond(invocation: Invocation, proposals: Sequence[JsonObject]) -> None:
    """Shows the proposals that await a decision."""
    invocation.respond("\n".join(map(_format_proposal, proposals)) or _NOTHING_PENDING, proposals)


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Approve all pending proposals.")
@memory_options
def approve(invocation: Invocation, ids: tuple[str, ...], everything: bool) -> None:
    """Apply proposals. Each is checked again; one that no longer fits stays pending, with the reason."""
    store = open_curated_memory(invocation)
    known = {proposal.id: proposal for proposal in store.proposals.all()}
    chosen = select_ids(invocation, known, ids, everything)
    report(invocation, "approved", [{"id": name} | describe(store.approve(known[name]), store) for name in chosen])


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Reject all pending proposals.")
@memory_options
def reject(invocation: Invocation, ids: tuple[str, ...], everything: bool) -> None:
    """Reject proposals. Their text is kept until 'memoranda memory purge'."""
    store = open_curated_memory(invocation)
    known = {proposal.id: proposal for proposal in store.proposals.all()}
    chosen = select_ids(invocation, known, ids, everything)
    for name in chosen:
        store.proposals.reject(known[name])
    report(invocation, "rejected", [{"id": name} | REJECTED for name in chosen])


def select_ids(invocation: Invocation, known: Iterable[str], ids: Sequence[str], everything: bool) -> list[str]:
    """The proposals that the arguments name; one that is not known ends the command before anything is decided."""
    if everything == bool(ids):
        raise click.UsageError("Name the proposals by id, or use --all.")
    pending = list(known)
    for name in ids:
        if name not in pending:
            invocation.fail(f"There is no pending proposal {name}. 'memoranda memory pending' lists them.")
    return pending if everything else list(dict.fromkeys(ids))


def report(invocation: Invocation, verb: str, results: list[JsonObject]) -> None:
    """Shows what became of each proposal; one that is still pending ends the command with an error."""
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


def _format_proposal(proposal: JsonObject) -> str:
    session = f", session {printable(proposal['session'])}" if proposal["session"] else ""
    sources = format_sources(proposal["sources"])
    author = f"{file_name(proposal['target'])}, by {printable(proposal['actor'])}{session}{sources}"
    lines = [f"{proposal['id']}  {to_local_time(proposal['at'])}  {author}"]
    lines += [f"    - {text}" for text in proposal["replaced"] if text is not None]
    lines += [f"    + {operation['content']}" for operation in proposal["operations"] if "content" in operation]
    return "\n".join(lines)
