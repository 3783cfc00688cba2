"""Maintains the record while a long-running command runs: completes an older one, removes expired items, prunes."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from memoranda.home.config import load, record_location
from memoranda.memory.record.settings import RetentionSettings
from memoranda.support.home import Home


@contextmanager
def maintain_while_open(home: Home, settings: RetentionSettings) -> Iterator[None]:
    """Works in threads that start after some seconds; sessions are pruned only if the settings ask for it."""
    from memoranda.api.expired_items import remove_expired_in_background  # noqa: PLC0415
    from memoranda.api.record_upgrade import upgrade_record_in_background  # noqa: PLC0415

    location = record_location(home, load(home))
    with ExitStack() as tasks:
        tasks.enter_context(upgrade_record_in_background(location))
        tasks.enter_context(remove_expired_in_background(location))
        if settings.auto_prune:
            from memoranda.api.automatic_prune import prune_in_background  # noqa: PLC0415

            tasks.enter_context(prune_in_background(location, settings))
        yield
