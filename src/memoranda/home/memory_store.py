"""`MemoryStore` as its users construct it: without arguments it is the curated memory of the default home.

`CuratedMemories` opens the curated memory of every user of a home, wherever the home keeps it.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.errors import ConfigError
from memoranda.home import config
from memoranda.memory.curated.settings import CuratedSettings
from memoranda.memory.curated.store import MemoryStore as CuratedStore
from memoranda.support.home import Home

if TYPE_CHECKING:
    from memoranda.storage.lazy_database import LazyDatabase


class MemoryStore(CuratedStore):
    """Curated memory in one directory; code inside Memoranda knows its directory and uses the base class."""

    def __init__(
        self,
        directory: str | Path | None = None,
        settings: CuratedSettings | None = None,
        *,
        memory_char_limit: int | None = None,
        user_char_limit: int | None = None,
    ) -> None:
        """Use a directory, or `memories` of the default home with the settings of its config.yaml.

        The limits are how many characters MEMORY.md and USER.md may have, and take precedence over `settings`.
        Raises ConfigError for a limit that is not a positive number.
        """
        if directory is None:
            home = config.locate_home()
            home.refuse_if_foreign()
            directory = home.memories()
            settings = settings or config.load(home).curated
        settings = settings or CuratedSettings()
        super().__init__(
            directory,
            replace(
                settings,
                memory_char_limit=_check_limit("memory_char_limit", memory_char_limit, settings.memory_char_limit),
                user_char_limit=_check_limit("user_char_limit", user_char_limit, settings.user_char_limit),
            ),
        )


class CuratedMemories:
    """The curated memories of one home: directories of it, or tables on the server that `store.url` names."""

    def __init__(self, home: Home, settings: config.Config) -> None:
        self._home = home
        self._settings = settings
        self._server: LazyDatabase | None = None
        if settings.store.url:
            from memoranda.memory.curated.schema import SCHEMA  # noqa: PLC0415
            from memoranda.storage import lazy_database  # noqa: PLC0415

            url = str(config.record_location(home, settings))
            wait = settings.curated.lock_timeout
            self._server = lazy_database.LazyDatabase(Path(), SCHEMA, 0, server_url=url, wait=wait)

    def open(self, user: str | None) -> CuratedStore:
        """The memory of one user; None is the owner of the home. The server is not used before the memory is."""
        if self._server is None:
            return MemoryStore(self._home.memories(user), self._settings.curated)
        from memoranda.memory.curated.table_storage import TableStorage  # noqa: PLC0415

        return CuratedStore.over(TableStorage(self._server.open, user), self._settings.curated)

    def users(self) -> list[str]:
        """Every user with a memory on the server."""
        from memoranda.memory.curated.schema import SCHEMA  # noqa: PLC0415
        from memoranda.storage.lazy_database import users_of  # noqa: PLC0415

        return [] if self._server is None else users_of(self._server.open(), SCHEMA.user_tables)

    def delete(self, user: str) -> None:
        """Delete everything that the tables have of a user; the directories of files stay."""
        from memoranda.memory.curated.table_storage import delete_user  # noqa: PLC0415

        if self._server is not None:
            delete_user(self._server.open(), user)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()


def _check_limit(name: str, limit: int | None, default: int) -> int:
    if limit is None:
        return default
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ConfigError(f"{name} must be a positive whole number, not {limit!r}.")
    return limit
