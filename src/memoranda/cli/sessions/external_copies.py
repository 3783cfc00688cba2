"""What external memories have, of sessions that a person deletes."""

from collections.abc import Collection
from pathlib import Path

from memoranda.external.vendors.sent_record import providers_with_sessions


def describe_copies(home: Path, session_ids: Collection[str], server_url: str = "") -> list[str]:
    """Say which services have received parts of the sessions, and how to delete them there."""
    return [
        f"{name} has received messages of them: 'memoranda provider forget {name} --session ID' deletes them there."
        for name in providers_with_sessions(home, session_ids, server_url)
    ]
