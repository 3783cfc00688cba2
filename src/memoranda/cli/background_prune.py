"""Prunes old sessions while a long-running command runs, if the settings ask for it."""

from contextlib import AbstractContextManager, nullcontext

from memoranda.sessions.settings import RetentionSettings
from memoranda.support.home import Home


def prune_while_open(home: Home, settings: RetentionSettings) -> AbstractContextManager[None]:
    """Deletes what is due in a thread; by default it does nothing, and loads nothing."""
    if not settings.auto_prune:
        return nullcontext()
    from memoranda.app.automatic_prune import prune_in_background  # noqa: PLC0415

    return prune_in_background(home.state_db, settings)
