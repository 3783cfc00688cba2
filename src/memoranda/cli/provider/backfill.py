"""`memoranda provider backfill`: gives a newly chosen provider what was remembered and said before."""

import time
from typing import NamedTuple

import click

from memoranda.api.session import Session
from memoranda.cli.completion import complete_provider
from memoranda.cli.confirmation import PlannedChange, confirm_and_run
from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.open_home import open_home
from memoranda.cli.provider.output import (
    CommandOutput,
    open_outbox,
    owned_home,
    provider_command,
    providers_in_use,
    require_one,
)
from memoranda.cli.provider.sessions import provider_session
from memoranda.cli.terminal_text import count_of, terminal_line
from memoranda.errors import ProviderError, StorageError
from memoranda.external.outbox.backfill import EarlierTurn, earlier_turns, entry_job
from memoranda.external.outbox.jobs import Backlog, NewJob
from memoranda.external.outbox.outbox import Outbox
from memoranda.models.tokens import estimate_text

_BATCH = 100
_ROUND_SECONDS = 5.0
# A service that extracts facts takes up to half a minute for a turn.
_STALL_SECONDS = 60.0
_PAUSE_SECONDS = 0.2


class _Plan(NamedTuple):
    """What a provider would receive, how many turns are left for later, and how many deliveries wait already."""

    turns: list[EarlierTurn]
    entries: list[NewJob]
    later: int
    waiting: int

    @property
    def tokens(self) -> int:
        return sum(turn.tokens for turn in self.turns) + sum(estimate_text(job.args["content"]) for job in self.entries)


@click.command()
@click.argument("name", required=False, shell_complete=complete_provider)
@click.option("-n", "--limit", type=click.IntRange(1), help="At most this many turns; the next call continues.")
@click.option("--price", type=click.FloatRange(0), help="Dollars per million tokens, for the estimate.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent, and about how many tokens.")
@click.option("-y", "--yes", is_flag=True, help="Send without asking.")
@memory_options
def backfill(
    invocation: Invocation, name: str | None, limit: int | None, price: float | None, dry_run: bool, yes: bool
) -> None:
    """Give a provider what was remembered and said before it was chosen.

    Entries of MEMORY.md and USER.md, then completed turns, oldest first. A call that was interrupted is repeated and
    continues; nothing is sent twice.
    """
    try:
        home = owned_home(invocation)
        chosen = require_one(home, name, "'memoranda provider backfill NAME'")
        if chosen not in providers_in_use(home):
            raise ProviderError(f"{chosen} is not in use. 'memoranda provider use {chosen}' chooses it.")
        with open_outbox(home) as outbox:
            plan = _plan(invocation, outbox, chosen, limit)
    except (ProviderError, StorageError) as error:
        invocation.fail(terminal_line(str(error)))
    confirm_and_run(
        invocation,
        _describe(chosen, plan, price),
        lambda: _send(invocation, name=chosen, plan=plan),
        dry_run=dry_run,
        yes=yes,
    )


def _plan(invocation: Invocation, outbox: Outbox, name: str, limit: int | None) -> _Plan:
    """What the provider has not been given yet."""
    state = outbox.backfill_state(name, invocation.user or "")
    with open_home(invocation) as memory:
        hidden = frozenset(memory.config.recall.hidden_sources)
        turns = earlier_turns(memory.sessions, name, hidden) if memory.services.has_record else []
        entries = [
            entry_job(target, memory.curated.visible_text(target, text))
            for target in memory.config.curated.targets()
            for text in memory.curated.valid_entries(target)
        ]
    turns = [turn for turn in turns if turn.last_message > state.last_message]
    chosen = turns if limit is None else turns[:limit]
    new = [job for job in entries if job.key not in state.entries]
    backlog = outbox.backlog(name, invocation.user or "")
    return _Plan(chosen, new, len(turns) - len(chosen), backlog.waiting + backlog.parked)


def _describe(name: str, plan: _Plan, price: float | None) -> PlannedChange:
    sessions = len({turn.session_id for turn in plan.turns})
    said = f"{count_of(len(plan.turns), 'turn')} of {count_of(sessions, 'conversation')}"
    entries = f"{len(plan.entries):,} {'entry' if len(plan.entries) == 1 else 'entries'}"
    text = f"{name} would get {said} and {entries} of curated memory: about {plan.tokens:,} tokens."
    cost = None if price is None else round(plan.tokens * price / 1e6, 4)
    if cost is not None:
        text += f" At ${price:g} per million tokens that is ${cost:,.2f}; a service that asks a model may charge more."
    if plan.later:
        text += f" {count_of(plan.later, 'more turn')} would be left for the next call."
    if plan.waiting:
        text += f" {plan.waiting:,} that it has not received yet would be delivered, too."
    data = {
        "success": True, "dry_run": True, "provider": name, "turns": len(plan.turns), "entries": len(plan.entries),
        "tokens": plan.tokens, "cost_usd": cost, "later": plan.later, "waiting": plan.waiting,
    }  # fmt: skip
    has_work = bool(plan.turns or plan.entries or plan.waiting)
    if not has_work:
        text = f"{name} has been given everything that was there before it."
    hint = "Nothing is sent without --yes." if has_work else ""
    return PlannedChange(terminal_line(text), data, f"Send it to {name}", hint, default=False, has_work=has_work)


@provider_command
def _send(invocation: Invocation, name: str, plan: _Plan) -> CommandOutput:
    home, user = owned_home(invocation), invocation.user or ""
    queued, total = plan.waiting, plan.waiting + len(plan.turns) + len(plan.entries)
    with open_outbox(home) as outbox, provider_session(invocation, name) as session:
        outbox.retry_failed(name, user)
        entries, left = plan.entries, Backlog()
        for start in range(0, max(len(plan.turns), 1), _BATCH):
            turns = plan.turns[start : start + _BATCH]
            outbox.backfill(name, user, turns, entries)
            queued, entries = queued + len(turns) + len(entries), []
            left = _deliver(invocation, session, outbox, name, user, queued, total)
            if left.waiting:
                break
    waiting = left.waiting + left.parked
    delivered, later = max(0, queued - waiting), plan.later + total - queued
    lines = [f"{name} has received {delivered:,} of {queued:,}."]
    if waiting:
        lines.append(f"{waiting:,} wait and are delivered later: {left.last_error or 'it has not answered yet'}")
    if later:
        lines.append(f"{count_of(later, 'turn')} of before are left: repeat the command.")
    data = {"success": not waiting, "provider": name, "delivered": delivered, "waiting": waiting, "later": later}
    return CommandOutput("\n".join(map(terminal_line, lines)), data, not waiting)


def _deliver(
    invocation: Invocation, session: Session, outbox: Outbox, name: str, user: str, queued: int, total: int
) -> Backlog:
    """Deliver what is queued, with progress, until nothing waits or nothing moves; returns what is left."""
    left = outbox.backlog(name, user)
    moved = time.monotonic()
    while left.waiting and time.monotonic() - moved < _STALL_SECONDS:
        session.external.deliver(_ROUND_SECONDS)
        now = outbox.backlog(name, user)
        if now.waiting < left.waiting:
            moved = time.monotonic()
        elif now.last_error and time.monotonic() - moved > _ROUND_SECONDS:
            return now
        else:
            time.sleep(_PAUSE_SECONDS)
        left = now
        if not invocation.as_json:
            click.echo(f"{max(0, queued - left.waiting):,} of {total:,}", err=True)
    return left
