"""`memoranda provider forget`: deletes what a provider's service has received from this home."""

from collections import Counter
from contextlib import closing
from typing import Any

import click

from memoranda.cli.completion import complete_provider
from memoranda.cli.confirmation import PlannedChange, confirm_and_run
from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.provider.output import (
    CommandOutput,
    find_provider,
    inspect_in_home,
    open_outbox,
    owned_home,
    provider_command,
    require_one,
)
from memoranda.cli.terminal_text import terminal_line
from memoranda.errors import ProviderError, StorageError
from memoranda.external.loading.setup import read_settings
from memoranda.external.provider import has_own
from memoranda.external.vendors.scope import VendorScope, read_peer_name
from memoranda.external.vendors.sent_record import SentRecord, describe_items
from memoranda.home import config
from memoranda.support.home import Home
from memoranda.upkeep.forgetting.started_provider import start_provider

# A vendor may have to delete memories one by one.
_FORGET_SECONDS = 3_600.0


@click.command()
@click.argument("name", required=False, shell_complete=complete_provider)
@click.option("--session", "session_ids", multiple=True, metavar="ID", help="Only what belongs to this session.")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted.")
@click.option("-y", "--yes", is_flag=True, help="Delete without asking.")
@memory_options
def forget(invocation: Invocation, name: str | None, session_ids: tuple[str, ...], dry_run: bool, yes: bool) -> None:
    """Delete what a provider's service has received from this home, and list what it keeps.

    Deliveries that still wait are dropped. The conversations in this home stay.
    """
    try:
        home = owned_home(invocation)
        chosen = require_one(home, name, "'memoranda provider forget NAME'")
        find_provider(home, chosen)
        planned = _plan(home, chosen, session_ids, invocation.user or "")
    except (ProviderError, StorageError) as error:
        invocation.fail(terminal_line(str(error)))
    confirm_and_run(
        invocation,
        planned,
        lambda: _forget(invocation, name=chosen, session_ids=list(session_ids) or None),
        dry_run=dry_run,
        yes=yes,
    )


def _plan(home: Home, name: str, session_ids: tuple[str, ...], user: str) -> PlannedChange:
    """Describe what the record of this home says that the provider has received."""
    with closing(_sent_record(home, name, user)) as record:
        items = record.of_sessions(session_ids or None)
        others = [_user_of(scope) for scope in record.scopes() if scope != record.scope]
    with open_outbox(home) as outbox:
        waiting = outbox.count(name, user, session_ids or None)
    counts = Counter(item.kind for item in items)
    of_whom = f"user {user}" if user else "the owner of the home"
    if items:
        text = f"{name} has received {', '.join(describe_items(items))} for {of_whom}."
    else:
        text = f"This home has no record of what {name} has received for {of_whom}; it is asked to delete what it has."
    if waiting:
        text += f" {_count_deliveries(waiting)} will be dropped."
    if others:
        text += f" It also has data of {', '.join(others)}; --user selects a user."
    data: dict[str, Any] = {"success": True, "dry_run": True, "provider": name, "received": dict(counts)}
    data |= {"waiting": waiting, "other_users": others}
    return PlannedChange(
        terminal_line(text),
        data,
        f"Delete it at {name}",
        "Nothing is deleted without --yes.",
        default=False,
    )


@provider_command
def _forget(invocation: Invocation, name: str, session_ids: list[str] | None) -> CommandOutput:
    home = owned_home(invocation)
    user = invocation.user or ""
    provider = inspect_in_home(home, find_provider(home, name), read_settings(home.root, name)).provider
    if not has_own(provider, "forget"):
        raise ProviderError(f"{name} has no way to delete what it has received. Nothing was changed.")
    # First: a delivery that waits would be stored again afterwards.
    with open_outbox(home) as outbox:
        dropped = outbox.drop(name, user, session_ids)
    try:
        with start_provider(home, name, provider, user) as started:
            report: Any = started.call("forget", {"session_ids": session_ids}, _FORGET_SECONDS)
    except ProviderError as error:
        done = f" Dropped: {_count_deliveries(dropped)}." if dropped else ""
        raise ProviderError(f"{error}{done} The command can be repeated.") from error
    deleted, remaining = ([str(line) for line in report.get(key) or ()] for key in ("deleted", "remaining"))
    lines = [f"Deleted at {name}: {', '.join(deleted) or 'nothing'}."]
    if dropped:
        lines.append(f"Dropped: {_count_deliveries(dropped)}.")
    lines += [f"Remains at {name}: {line}." for line in remaining]
    data = {"success": True, "provider": name, "deleted": deleted, "remaining": remaining, "dropped": dropped}
    return CommandOutput("\n".join(terminal_line(line) for line in lines), data)


def _count_deliveries(number: int) -> str:
    return f"{number} waiting {'delivery' if number == 1 else 'deliveries'}"


def _user_of(scope: str) -> str:
    """The id of a user in the record, as `--user` expects it; the name at the vendor for the owner of a profile."""
    try:
        return read_peer_name(scope)[1] or scope
    except ProviderError:
        return scope


def _sent_record(home: Home, name: str, user: str) -> SentRecord:
    return SentRecord(home.root, name, VendorScope(home.root, home.profile, user, server_url=config.server_url(home)))
