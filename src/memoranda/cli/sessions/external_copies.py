"""What external memories have, or would still receive, of sessions that a person deletes."""

from collections.abc import Collection
from contextlib import closing
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.providers.outbox import Outbox
from memoranda.providers.vendors.sent_record import providers_with_sessions


def drop_deliveries(home: Path, session_ids: Collection[str]) -> tuple[int, str]:
    """Drop what waits to be delivered of these sessions, with its text; returns how much, and the problem if any."""
    with closing(Outbox(home)) as outbox:
        try:
            return outbox.drop(None, None, session_ids), ""
        except StorageError as error:
            return 0, f"Deliveries of the sessions still wait for an external memory: {error}"


def describe_copies(home: Path, session_ids: Collection[str]) -> list[str]:
    """Say which services have received parts of the sessions, and how to delete them there."""
    return [
        f"{name} has received messages of them: 'memoranda provider forget {name} --session ID' deletes them there."
        for name in providers_with_sessions(home, session_ids)
    ]
