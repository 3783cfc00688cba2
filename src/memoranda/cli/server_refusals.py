"""Commands that a home whose record is on a server refuses, because they would work on files that it does not have."""

from memoranda.cli.context import EXIT_REFUSED, Invocation
from memoranda.home.config import load, shown_value

BACKUP = (
    "a backup of the home would contain neither conversations nor memory. Back up the server with pg_dump, or copy it "
    "into another home with 'memoranda server migrate' and back that up."
)
RESTORE = "a backup restores files. Restore it into another home, and copy that with 'memoranda server migrate'."
SYNC = "machines that use the same server see the same memory; only files are synchronised."
VACUUM = "its autovacuum makes the space of deleted rows free, without a pause for anyone."


def refuse_on_server(invocation: Invocation, reason: str) -> None:
    """Ends a command with the reason, if `store.url` is set."""
    url = load(invocation.locate_home()).store.url
    if url:
        invocation.fail(f"The record is on {shown_value(url)}: {reason}", code=EXIT_REFUSED)
