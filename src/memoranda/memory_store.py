"""`MemoryStore` as its users construct it: without arguments it is the curated memory of the default home."""

from dataclasses import replace
from pathlib import Path

from memoranda import config
from memoranda.curated.settings import CuratedSettings
from memoranda.curated.store import MemoryStore as CuratedStore
from memoranda.errors import ConfigError


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


def _check_limit(name: str, limit: int | None, default: int) -> int:
    if limit is None:
        return default
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ConfigError(f"{name} must be a positive whole number, not {limit!r}.")
    return limit
