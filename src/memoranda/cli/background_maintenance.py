"""Maintains the record while a long-running command runs: old messages get checksums, old sessions are pruned."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from memoranda.sessions.settings import RetentionSettings
from memoranda.support.home import Home


@contextmanager
def maintain_while_open(home: Home, settings: RetentionSettings) -> Iterator[None]:
    """Works in threads that start after some seconds; sessions are pruned only if the settings ask for it."""
    from memoranda.app.missing_checksums import fill_checksums_in_background  # noqa: PLC0415

    with ExitStack() as tasks:
        tasks.enter_context(fill_checksums_in_background(home.state_db))
        if settings.auto_prune:
            from memoranda.app.automatic_prune import prune_in_background  # noqa: PLC0415

            tasks.enter_context(prune_in_background(home.state_db, settings))
        yield
