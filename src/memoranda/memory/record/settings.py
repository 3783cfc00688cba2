"""Settings of the record: where it is, and what is deleted automatically, which is nothing by default."""

from memoranda.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """With `auto_prune`, ended sessions without a message for `retention_days` are deleted at intervals."""

    auto_prune: bool = False
    retention_days: int = 90
    min_interval_hours: int = 24
    vacuum_after_prune: bool = True


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """`url` is the PostgreSQL server with the record; if it is empty, the record is `state.db` in the home.

    `servers` are further ones, among which users are distributed.
    """

    url: str = ""
    servers: tuple[str, ...] = ()
