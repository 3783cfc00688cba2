"""`memoranda server key`: the API keys of the HTTP service. A key is printed once, when it is created."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import click

from memoranda.cli.context import Invocation, common_options, printable
from memoranda.cli.terminal_text import local_time
from memoranda.errors import AccessError
from memoranda.home import config
from memoranda.home.access.keys import SCOPES, ApiKey, ApiKeys
from memoranda.home.access.oauth_grants import GrantStore
from memoranda.home.access.request_log import AuditEntry, AuditLog
from memoranda.home.access.schema import DEFAULT_TENANT
from memoranda.home.access.service_database import ServiceDatabase

_EPILOG = """\b
Examples:
  memoranda server key create --name "Ana's phone" --user ana --scope read --scope append
  memoranda server key create --tenant acme --scope read --scope append --scope curate --days 90
  memoranda server key list
  memoranda server key revoke 3f9a1c2b4d5e
  memoranda server key audit
  memoranda server key programs                   what people have connected through OAuth
"""
_DAY = 86_400.0


@click.group(epilog=_EPILOG)
@common_options
def command() -> None:
    """Create, list and revoke the API keys of 'memoranda server serve'. Only a hash of a key is stored."""


@contextmanager
def _open_database(invocation: Invocation) -> Iterator[ServiceDatabase]:
    home = invocation.locate_home()
    home.refuse_if_foreign()
    database = ServiceDatabase(home.root, config.record_location(home, config.load(home)))
    try:
        yield database
    finally:
        database.close()


@contextmanager
def _open_keys(invocation: Invocation) -> Iterator[ApiKeys]:
    with _open_database(invocation) as database:
        yield ApiKeys(database)


@command.command()
@click.option("--name", default="", help="What to call it in lists.")
@click.option("--tenant", default=DEFAULT_TENANT, show_default=True,
              help="Whose users it may act for; the default tenant is the home itself.")  # fmt: skip
@click.option("--user", help="The only user that it may act as.")
@click.option("--scope", "scopes", multiple=True, type=click.Choice(SCOPES), required=True,
              help="What it allows. Can be repeated.")  # fmt: skip
@click.option("--days", type=click.FloatRange(min=0, min_open=True), help="After how many days it expires.")
@common_options
def create(
    invocation: Invocation, name: str, tenant: str, user: str | None, scopes: tuple[str, ...], days: float | None
) -> None:
    """Create a key and print it. It cannot be printed again.

    read: search and list. append: create and import sessions, append messages. curate: change curated memory and
    items. admin: delete, forget, and read the audit log.
    """
    expires_at = None if days is None else time.time() + days * _DAY
    try:
        with _open_keys(invocation) as keys:
            key, token = keys.create(scopes, name=name, tenant=tenant, user=user, expires_at=expires_at)
    except AccessError as error:
        invocation.fail(str(error))
    invocation.respond(token, {"key": token, **_as_data(key)})


@command.command("list")
@common_options
def list_keys(invocation: Invocation) -> None:
    """List the keys, with those that were revoked or have expired."""
    with _open_keys(invocation) as keys:
        found = keys.list_keys()
    lines = [_format(key) for key in found]
    invocation.respond("\n".join(lines) or "There are no keys.", [_as_data(key) for key in found])


@command.command()
@click.argument("key_id")
@common_options
def revoke(invocation: Invocation, key_id: str) -> None:
    """Revoke a key by its id, or by the key itself; a running service refuses it within a second."""
    key_id = key_id.split("_")[1] if key_id.startswith("mk_") and key_id.count("_") > 1 else key_id
    with _open_keys(invocation) as keys:
        revoked = keys.revoke(key_id)
    if not revoked:
        invocation.fail(f"There is no valid key {printable(key_id[:60])}. 'memoranda server key list' lists them.")
    invocation.respond(f"Revoked {key_id}.", {"success": True, "id": key_id})


@command.command()
@common_options
def programs(invocation: Invocation) -> None:
    """List the programs that people have given access through OAuth, and the key of each."""
    with _open_database(invocation) as database:
        found = GrantStore(database.open).list_programs() if database.exists() else []
    lines = [
        printable(f"{each.id}  {each.name}  {','.join(each.scopes)}  key {each.key_id}  {local_time(each.created)}")
        for each in found
    ]
    data = [
        {
            "id": each.id,
            "name": each.name,
            "key": each.key_id,
            "scopes": list(each.scopes),
            "connected_at": _iso(each.created),
        }
        for each in found
    ]
    invocation.respond("\n".join(lines) or "No program is connected.", data)


@command.command()
@click.argument("program_id")
@common_options
def disconnect(invocation: Invocation, program_id: str) -> None:
    """End the access of one program, by its id; the key with which it was approved stays valid."""
    with _open_database(invocation) as database:
        ended = database.exists() and GrantStore(database.open).disconnect(program_id)
    if not ended:
        name = printable(program_id[:60])
        invocation.fail(f"There is no program {name}. 'memoranda server key programs' lists them.")
    invocation.respond(f"Disconnected {program_id}.", {"success": True, "id": program_id})


@command.command()
@click.option(
    "-n", "--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="How many, newest first."
)
@click.option("--tenant", help="Only what keys of this tenant did.")
@common_options
def audit(invocation: Invocation, limit: int, tenant: str | None) -> None:
    """Show what keys changed in curated memory and deleted: time, key, user, action, subject and request."""
    with _open_database(invocation) as database:
        entries = AuditLog(database).read(tenant=tenant, limit=limit)
    lines = [_format_entry(entry) for entry in entries]
    data = [asdict(entry) | {"at": _iso(entry.at)} for entry in entries]
    invocation.respond("\n".join(lines) or "Nothing was changed through the service.", data)


def _format_entry(entry: AuditEntry) -> str:
    user, key = entry.user or entry.tenant, entry.key_id or "(no key)"
    parts = (local_time(entry.at), key, user, entry.action, entry.subject, entry.request_id)
    return printable("  ".join(filter(None, parts)))


def _as_data(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "tenant": key.tenant,
        "user": key.user,
        "scopes": [scope for scope in SCOPES if scope in key.scopes],
        "created_at": _iso(key.created_at),
        "expires_at": _iso(key.expires_at),
        "last_used_at": _iso(key.last_used_at),
        "revoked_at": _iso(key.revoked_at),
    }


def _iso(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def _format(key: ApiKey) -> str:
    owner = key.tenant if key.user is None else f"{key.tenant}/{key.user}"
    scopes = ",".join(scope for scope in SCOPES if scope in key.scopes)
    if key.revoked_at is not None:
        state = f"revoked {local_time(key.revoked_at)}"
    elif not key.is_valid(time.time()):
        state = f"expired {local_time(key.expires_at or 0)}"
    else:
        state = "never used" if key.last_used_at is None else f"used {local_time(key.last_used_at)}"
    return printable("  ".join(filter(None, (key.id, owner, scopes, state, key.name))))
